import { describe, expect, it } from 'vitest'
import { compressFrame } from '../../../../src/swim/codec/compression.js'
import { encrypt } from '../../../../src/swim/codec/encryption.js'
import { Keyring, type RingKey } from '../../../../src/swim/codec/keyring.js'
import { encodeStream, encodeStreamMessage } from '../../../../src/swim/codec/stream.js'
import {
  StreamDecoder,
  type StreamResult,
  type StreamRole,
} from '../../../../src/swim/codec/stream-decoder.js'
import { createWire, type Wire, type WireOptions } from '../../../../src/swim/codec/wire.js'
import type { NodeRecord, PushPull, StreamMessage } from '../../../../src/swim/messages.js'
import type { MemberName } from '../../../../src/vocabulary.js'
import {
  fixedEntropy,
  fromHex,
  goStructOf,
  toHex,
  type Vector,
  vectorsUnder,
} from '../../../helpers/memberlist-vectors.js'

const nonce = 'a0a1a2a3a4a5a6a7a8a9aaab'
const keyHex = '000102030405060708090a0b0c0d0e0f'
const megabyte = 1024 * 1024
const nothing = new Uint8Array(0)

function wireWith(options: Omit<WireOptions, 'entropy'> = {}): Wire {
  return createWire({ entropy: fixedEntropy(nonce), enableCompression: false, ...options })
}

function keyed(options: Omit<WireOptions, 'entropy'> = {}): Wire {
  return wireWith({ keyring: new Keyring([fromHex(keyHex)]), ...options })
}

/** The settings of the node that wrote a recorded stream. */
function writerOf(vector: Vector): Wire {
  const { compression, keyHex: key, keyHexDialer, keyHexListener } = vector.params ?? {}
  const encrypted = vector.decoded?.nonceHex !== undefined
  const anyKey = key ?? keyHexDialer ?? keyHexListener
  return createWire({
    enableCompression: compression === true,
    label: String(vector.params?.label ?? ''),
    keyring: encrypted ? new Keyring([fromHex(String(anyKey))]) : null,
    protocolVersion: Number(vector.params?.protocolVersion ?? 2),
    entropy: fixedEntropy(vector.decoded?.nonceHex ?? ''),
  })
}

function roleOf(vector: Vector): StreamRole {
  return vector.name.includes('listener-to-dialer') ? 'dialler' : 'listener'
}

function inChunksOf(size: number, bytes: Uint8Array, wire: Wire, role: StreamRole) {
  const decoder = new StreamDecoder(wire, role)
  let result: StreamResult | null = null
  for (let at = 0; at < bytes.length; at += size) {
    expect(result, `a result before byte ${at} of ${bytes.length}`).toBeNull()
    result = decoder.push(bytes.subarray(at, at + size))
  }
  return result
}

function whole(hex: string, wire: Wire, role: StreamRole = 'listener'): StreamResult {
  const decoder = new StreamDecoder(wire, role)
  return decoder.push(fromHex(hex)) ?? decoder.end()
}

/** The stated message in the form `goStructOf` gives. */
function statedOf(vector: Vector): unknown {
  const { type: _, msg, header, payload, nodes, userState } = vector.decoded.message
  if (msg !== undefined) return msg
  return nodes === undefined ? { payload } : { header, nodes, userState }
}

const recorded = vectorsUnder('stream/').filter(vector => vector.decoded !== undefined)

describe('a recorded stream', () => {
  it('there are recordings of all kinds', () => {
    expect(recorded.length).toBe(86)
  })

  it.each(recorded)('$name decodes to its stated message, in chunks of any size', vector => {
    const bytes = fromHex(vector.hex)
    for (const size of [1, 2, 7, bytes.length]) {
      const result = inChunksOf(size, bytes, writerOf(vector), roleOf(vector))
      if (result === null || !result.ok) throw new Error(`chunks of ${size}: ${result?.error}`)
      expect(goStructOf(result.message), `chunks of ${size}`).toEqual(statedOf(vector))
      expect(result.encrypted).toBe(vector.decoded.nonceHex !== undefined)
    }
  })

  it.each(recorded.filter(vector => !vector.name.includes('@v0.3.1')))(
    '$name encodes to the same bytes',
    vector => {
      const direction = roleOf(vector) === 'listener' ? 'request' : 'reply'
      const wire = writerOf(vector)
      const result = inChunksOf(vector.hex.length, fromHex(vector.hex), wire, roleOf(vector))
      if (result === null || !result.ok) throw new Error('not decoded')

      expect(toHex(encodeStream(result.message, wire, direction))).toBe(vector.hex)
    },
  )
})

describe('a stream that is not served', () => {
  const sent = (name: string) => vectorsUnder(`stream/error/${name}`)[0]?.hex as string
  const labelled = wireWith({ label: 'cluster-a' })

  it.each([
    ['unknown-type', wireWith(), 'unknownType'],
    ['immediate-close', wireWith(), 'closedUnused'],
    ['suspect-on-stream', wireWith(), 'unknownType'],
    ['unexpected-label', wireWith(), 'labelMismatch'],
    ['empty-label', wireWith(), 'labelMalformed'],
    ['missing-label', labelled, 'labelMismatch'],
  ])('%s is closed without a reply', (name, wire, error) => {
    expect(whole(sent(name), wire)).toEqual({ ok: false, error, reply: null })
  })

  it('pings for nobody and for others are messages like any other', () => {
    for (const name of ['wrong-name-ping', 'empty-name-ping'])
      expect(whole(sent(name), wireWith()), name).toMatchObject({ message: { kind: 'ping' } })
  })

  it('an encrypted stream to a node without keys is answered as Go answers it', () => {
    const result = whole(sent('encrypted-to-plain/dialer-to-listener'), wireWith())

    expect(result).toMatchObject({ ok: false, error: 'noKey' })
    const text = result.ok ? '' : (result.reply as string)
    const reply = encodeStream({ kind: 'error', text }, wireWith(), 'reply')
    expect(toHex(reply)).toBe(sent('encrypted-to-plain/listener-to-dialer'))
  })

  it('a plain stream to a node with keys is answered as Go answers it, encrypted', () => {
    const vector = vectorsUnder('stream/error/plain-to-encrypted/listener-to-dialer')[0] as Vector
    const result = whole(sent('plain-to-encrypted/dialer-to-listener'), keyed())

    expect(result).toMatchObject({ ok: false, error: 'notEncrypted' })
    const text = result.ok ? '' : (result.reply as string)
    const reply = encodeStream({ kind: 'error', text }, writerOf(vector), 'reply')
    expect(toHex(reply)).toBe(vector.hex)
  })

  it('a dialler is told the same errors, but has nothing to answer', () => {
    const plain = vectorsUnder('stream/plain/pushpull-join/listener-to-dialer')[0]?.hex as string

    const result = whole(plain, keyed(), 'dialler')

    expect(result).toEqual({ ok: false, error: 'notEncrypted', reply: null })
    expect(whole(plain, keyed({ gossipVerifyIncoming: false }), 'dialler').ok).toBe(true)
  })

  it('requests are not accepted as replies, nor replies as requests', () => {
    const error = 'unknownType'
    const ping = vectorsUnder('stream/plain/ping/dialer-to-listener')[0]?.hex as string
    const ack = vectorsUnder('stream/plain/ping/listener-to-dialer')[0]?.hex as string
    const user = vectorsUnder('stream/plain/user/dialer-to-listener')[0]?.hex as string

    for (const [hex, role] of [
      [ping, 'dialler'],
      [user, 'dialler'],
      [ack, 'listener'],
      ['0d80', 'listener'],
    ] as const)
      expect(whole(hex, wireWith(), role), hex).toEqual({ ok: false, error, reply: null })
  })

  it.each([
    ['an encrypt frame above 20 MiB', '0a01400001', keyed(), 'tooLarge', true],
    ['an encrypt frame of 20 MiB cut short', '0a01400000', keyed(), 'truncated', false],
    ['an encrypt frame around nothing', '0a00000000', keyed(), 'empty', true],
    [
      'an encrypt frame no key opens',
      `0a0000001d01${'00'.repeat(28)}`,
      keyed(),
      'undecryptable',
      true,
    ],
    [
      'compression of another kind',
      '0982a4416c676f01a3427566a3010203',
      wireWith(),
      'compressionUnknown',
      true,
    ],
    [
      'compression around nothing',
      '0982a4416c676f00a3427566a3000302',
      wireWith(),
      'frameEmpty',
      true,
    ],
    ['compression without bytes', '0981a4416c676f00', wireWith(), 'compressionMalformed', true],
    ['compressed bytes above 20 MiB', '0981a3427566db01400001', wireWith(), 'tooLarge', true],
    ['a negative count of nodes', '0681a54e6f646573ff', wireWith(), 'negativeLength', false],
    [
      'a negative length of user state',
      '0681ac5573657253746174654c656ed1ffff',
      wireWith(),
      'negativeLength',
      false,
    ],
    ['too many nodes', '0681a54e6f646573ce00010001', wireWith(), 'tooLarge', false],
    ['2^53 nodes', '0681a54e6f646573cf0020000000000000', wireWith(), 'valueRange', false],
    [
      'user state above 20 MiB',
      '0681ac5573657253746174654c656ece01400001',
      wireWith(),
      'tooLarge',
      false,
    ],
    [
      'a user message above 20 MiB',
      '0881aa557365724d73674c656ece01400001',
      wireWith(),
      'tooLarge',
      false,
    ],
    [
      'a negative user message',
      '0881aa557365724d73674c656eff',
      wireWith(),
      'negativeLength',
      false,
    ],
    ['a record that is no map', '0681a54e6f64657302a178', wireWith(), 'valueType', false],
    [
      "a name above a record's size",
      '0681a54e6f6465730181a44e616d65db00020001',
      wireWith(),
      'tooLarge',
      false,
    ],
    ['a label cut short', 'f40961', wireWith({ label: 'cluster-a' }), 'truncated', false],
  ])('%s is refused', (_, hex, wire, error, answered) => {
    const result = whole(hex, wire)

    expect(result).toMatchObject({ ok: false, error })
    expect(!result.ok && result.reply !== null, 'answered with an error message').toBe(answered)
  })

  it('an encrypted stream around nothing is refused', () => {
    const { keyring } = keyed()
    const key = keyring?.primary as RingKey
    const head = fromHex('0a0000001d')
    const unit = encrypt(key, 1, new Uint8Array(0), head, fixedEntropy(nonce))

    const result = whole(toHex(head) + toHex(unit), keyed())

    expect(result).toMatchObject({ ok: false, error: 'frameEmpty' })
  })

  it('a message cut short inside a frame is refused at once, not waited for', () => {
    const user = encodeStreamMessage({ kind: 'user', payload: new Uint8Array(50) })
    const frame = compressFrame(user.subarray(0, 40), 4096) as Uint8Array

    const result = new StreamDecoder(wireWith(), 'listener').push(frame)

    expect(result).toEqual({ ok: false, error: 'truncated', reply: null })
  })

  it('more than 1048576 nodes are never accepted, whatever is asked for', () => {
    const wire = wireWith({ exchangeNodesMax: 10_000_000 })

    expect(wire.exchangeNodesMax).toBe(1_048_576)
  })
})

describe('the end of a message', () => {
  const name = 'n'.repeat(20) as MemberName
  const record: NodeRecord = {
    name,
    addressBytes: Uint8Array.of(10, 0, 0, 1),
    port: 7946,
    incarnation: 1,
    meta: new Uint8Array(300).fill(7),
    state: 0,
    versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
  }
  const pushPull = (nodes: number, userStateBytes: number): PushPull => ({
    kind: 'pushPull',
    join: true,
    nodes: new Array(nodes).fill(record),
    userState: new Uint8Array(userStateBytes).fill(9),
  })

  it('a push/pull ends with its user state, without an end of stream', () => {
    for (const message of [pushPull(0, 0), pushPull(3, 0), pushPull(0, 5), pushPull(300, 70_000)]) {
      const bytes = encodeStream(message, wireWith(), 'request')
      const result = inChunksOf(1000, bytes, wireWith(), 'listener')
      expect(result).toEqual({ ok: true, message, encrypted: false })
    }
  })

  it('an end of stream before it is a truncation, after it no news', () => {
    const bytes = encodeStream(pushPull(2, 5), wireWith(), 'request')
    const decoder = new StreamDecoder(wireWith(), 'listener')
    expect(decoder.push(bytes.subarray(0, bytes.length - 1))).toBeNull()

    expect(decoder.end()).toEqual({ ok: false, error: 'truncated', reply: null })

    const other = new StreamDecoder(wireWith(), 'listener')
    const result = other.push(bytes)
    expect(other.push(Uint8Array.of(1, 2, 3))).toBe(result)
    expect(other.end()).toBe(result)
  })

  it('a user message may be empty', () => {
    const message: StreamMessage = { kind: 'user', payload: new Uint8Array(0) }
    const bytes = encodeStream(message, keyed({ label: 'a' }), 'request')

    const result = inChunksOf(3, bytes, keyed({ label: 'a' }), 'listener')

    expect(result).toEqual({ ok: true, message, encrypted: true })
  })

  it('parts arrive whole through every layer, small ones compressed and large ones not', () => {
    const wire = keyed({ label: 'a', enableCompression: true })
    for (const [stateBytes, lengthMax] of [
      [40_000, 15_000],
      [3 * megabyte, 3.1 * megabyte],
    ] as const) {
      const message = pushPull(20, stateBytes)
      const bytes = encodeStream(message, wire, 'request')
      expect(bytes.length).toBeLessThan(lengthMax)
      const result = inChunksOf(stateBytes > megabyte ? 65_536 : 100, bytes, wire, 'listener')
      const read = result?.ok === true && result.message.kind === 'pushPull' ? result.message : null
      expect(read?.nodes).toEqual(message.nodes)
      expect(Buffer.compare(read?.userState ?? nothing, message.userState)).toBe(0)
    }
    // LZW takes 20 ns a byte: a request would wait for a state of megabytes.
    expect(encodeStream(pushPull(0, 3 * megabyte), wire, 'request').length).toBeGreaterThan(
      3 * megabyte,
    )
  })

  it('the sender may change its bytes after pushing them', () => {
    const bytes = encodeStream(pushPull(1, 4), wireWith(), 'request')
    const decoder = new StreamDecoder(wireWith(), 'listener')
    decoder.push(bytes.subarray(0, 60))
    const rest = bytes.slice(60)
    bytes.fill(0)

    const result = decoder.push(rest)
    rest.fill(0)

    expect(result).toEqual({ ok: true, message: pushPull(1, 4), encrypted: false })
  })
})
