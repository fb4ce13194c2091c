import { describe, expect, it } from 'vitest'
import { makeCompound } from '../../../../src/swim/codec/compound.js'
import { compressFrame } from '../../../../src/swim/codec/compression.js'
import { encodeMessage } from '../../../../src/swim/codec/encode-message.js'
import { Keyring } from '../../../../src/swim/codec/keyring.js'
import {
  checksumFrameBytes,
  decodePacket,
  encodePacket,
} from '../../../../src/swim/codec/packet.js'
import {
  createWire,
  gossipOverhead,
  piggybackOverhead,
  type Wire,
  type WireOptions,
} from '../../../../src/swim/codec/wire.js'
import {
  fixedEntropy,
  fromHex,
  type GoStruct,
  goStructOf,
  memberlistVectors,
  toHex,
  type Vector,
  vectorsUnder,
} from '../../../helpers/memberlist-vectors.js'

const nonce = 'a0a1a2a3a4a5a6a7a8a9aaab'
const keyHex = '000102030405060708090a0b0c0d0e0f'
const user = (...bytes: number[]) => Uint8Array.of(8, ...bytes)

function wireWith(options: Omit<WireOptions, 'entropy'> = {}): Wire {
  return createWire({ entropy: fixedEntropy(nonce), ...options })
}

function keyed(options: Omit<WireOptions, 'entropy'> = {}): Wire {
  return wireWith({ keyring: new Keyring([fromHex(keyHex)]), ...options })
}

/** The settings of the node that sent a recorded packet. */
function senderOf(vector: Vector): Wire {
  const { compression, keyHex: key, label, protocolVersion } = vector.params ?? {}
  return createWire({
    enableCompression: compression === true,
    label: String(label ?? ''),
    keyring: key === undefined ? null : new Keyring([fromHex(String(key))]),
    protocolVersion: Number(protocolVersion ?? 2),
    entropy: fixedEntropy(vector.decoded.nonceHex ?? ''),
  })
}

interface Stated {
  readonly type: string
  readonly msg?: GoStruct
  readonly payload?: unknown
  readonly inner?: Stated
  readonly parts?: readonly Stated[]
}

function statedMessages(stated: Stated): readonly GoStruct[] {
  if (stated.inner !== undefined) return statedMessages(stated.inner)
  if (stated.parts !== undefined) return stated.parts.flatMap(statedMessages)
  return [stated.msg ?? { payload: stated.payload }]
}

const recorded = vectorsUnder('udp/')

describe('a recorded packet', () => {
  it('there are recordings of all kinds', () => {
    expect(recorded.length).toBe(105)
  })

  it.each(recorded)(
    '$name decodes to its stated messages and encodes to the same bytes',
    vector => {
      const wire = senderOf(vector)
      const contents = decodePacket(fromHex(vector.hex), wire)

      if (!contents.ok) throw new Error(contents.error)
      const { messages } = contents.value
      expect(contents.value.refused).toEqual([])
      expect(messages.map(goStructOf)).toEqual(statedMessages(vector.decoded.message))
      const checksum = vector.decoded.message.type === 'crc'
      expect(toHex(encodePacket(messages.map(encodeMessage), wire, { checksum }))).toBe(vector.hex)
    },
  )

  it.each(vectorsUnder('label/'))(
    '$name is accepted under its label and under no other',
    vector => {
      const label = String(vector.params?.label ?? 'L'.repeat(255))
      const packet = fromHex(vector.hex)

      const contents = decodePacket(packet, wireWith({ label }))

      if (!contents.ok) throw new Error(contents.error)
      const parts = contents.value.messages.map(encodeMessage)
      const wire = wireWith({ label, enableCompression: false })
      expect(toHex(encodePacket(parts, wire, { checksum: false }))).toBe(vector.hex)
      for (const other of ['', 'b', `${label.slice(1)}x`])
        expect(decodePacket(packet, wireWith({ label: other }))).toMatchObject({
          error: 'labelMismatch',
        })
    },
  )

  it.each(vectorsUnder('crc/'))('$name: a flipped bit is noticed', vector => {
    const packet = fromHex(vector.hex)
    expect(decodePacket(packet, wireWith()).ok).toBe(true)

    packet[packet.length - 1] = (packet[packet.length - 1] as number) ^ 1

    expect(decodePacket(packet, wireWith())).toEqual({ ok: false, error: 'checksumMismatch' })
  })
})

describe('the layers of a packet', () => {
  it('a packet of another label, key or plainness is refused', () => {
    const packet = encodePacket([user(1)], keyed({ label: 'a' }), { checksum: true })
    const stranger = new Keyring([fromHex(keyHex).reverse()])
    const plain = encodePacket([user(1)], wireWith({ label: 'a' }), { checksum: true })

    expect(decodePacket(packet, keyed({ label: 'a' })).ok).toBe(true)
    const errors = [
      decodePacket(packet, keyed({ label: 'b' })),
      decodePacket(packet, keyed()),
      decodePacket(packet.subarray(3), keyed({ label: 'a' })),
      decodePacket(packet, keyed({ label: 'a', keyring: stranger })),
      decodePacket(packet, wireWith({ label: 'a' })),
      decodePacket(plain, keyed({ label: 'a' })),
      decodePacket(new Uint8Array(0), keyed()),
    ].map(result => (result.ok ? 'accepted' : result.error))
    const mismatch = 'labelMismatch'
    expect(errors.slice(0, 3)).toEqual([mismatch, mismatch, mismatch])
    expect(errors[3]).toBe('undecryptable')
    // Ciphertext read as plain: its first byte, 1, is the type of an indirect ping.
    expect(['valueType', 'truncated', 'tooLarge']).toContain(errors[4])
    expect(errors.slice(5)).toEqual(['encryptionMalformed', 'empty'])
  })

  it('the label is authenticated', () => {
    const packet = encodePacket([user(1)], keyed({ label: 'a' }), { checksum: false })
    packet[2] = 'b'.charCodeAt(0)

    const result = decodePacket(packet, keyed({ label: 'b' }))

    expect(result).toEqual({ ok: false, error: 'undecryptable' })
  })

  it('with gossipVerifyIncoming off, a packet that does not open is read as plain', () => {
    const lenient = keyed({ gossipVerifyIncoming: false })
    const plain = encodePacket([user(7)], wireWith(), { checksum: false })
    const secret = encodePacket([user(8)], keyed(), { checksum: false })

    const payloads = [plain, secret].map(packet => {
      const contents = decodePacket(packet, lenient)
      return contents.ok ? contents.value.messages : contents.error
    })

    expect(payloads).toEqual([
      [{ kind: 'user', payload: Uint8Array.of(7) }],
      [{ kind: 'user', payload: Uint8Array.of(8) }],
    ])
  })

  it('with gossipVerifyOutgoing off, packets are plain although there is a key', () => {
    const wire = keyed({ gossipVerifyOutgoing: false })

    expect(toHex(encodePacket([user(7)], wire, { checksum: false }))).toBe('0807')
    expect([gossipOverhead(wire), piggybackOverhead(wire)]).toEqual([29, 0])
  })

  it('with skipInboundLabelCheck, a label is an error, and the own one is assumed', () => {
    const wire = keyed({ label: 'a', skipInboundLabelCheck: true })
    const packet = encodePacket([user(7)], wire, { checksum: false })

    expect(decodePacket(packet, wire)).toEqual({ ok: false, error: 'labelUnexpected' })
    expect(decodePacket(packet.subarray(3), wire).ok).toBe(true)
  })

  it('is compressed only if that makes it shorter', () => {
    const wire = wireWith()
    const short = user(1, 2, 3)
    const long = user(...new Array(100).fill(7))

    expect(encodePacket([short], wire, { checksum: false })).toEqual(short)
    const packed = encodePacket([long], wire, { checksum: false })
    expect([packed[0], packed.length < long.length]).toEqual([9, true])
  })

  it('a bad part of a compound falls alone', () => {
    const parts = [user(1), Uint8Array.of(99), Uint8Array.of(2, 0xa1), user(2)]
    const packet = makeCompound(parts)

    const contents = decodePacket(packet.subarray(0, packet.length - 1), wireWith())

    expect(contents).toEqual({
      ok: true,
      value: {
        messages: [{ kind: 'user', payload: Uint8Array.of(1) }],
        refused: ['truncated', 'unknownType', 'valueType'],
      },
    })
  })

  it('compound and compress frames may nest, up to a depth', () => {
    const nested = (levels: number) => {
      let body: Uint8Array = user(5)
      for (let level = 0; level < levels; level++)
        body = level % 2 === 0 ? makeCompound([body]) : (compressFrame(body, 4096) as Uint8Array)
      return decodePacket(body, wireWith())
    }

    expect(nested(8)).toMatchObject({ value: { messages: [{ kind: 'user' }], refused: [] } })
    expect(nested(9)).toMatchObject({ value: { messages: [], refused: ['tooDeep'] } })
  })

  it('many small bombs cost no more than one', () => {
    const zeros = new Uint8Array(200_000)
    zeros[0] = 8
    const bomb = compressFrame(zeros, 4096) as Uint8Array

    const contents = decodePacket(makeCompound(new Array(50).fill(bomb)), wireWith())

    if (!contents.ok) throw new Error(contents.error)
    expect(contents.value.messages.length).toBe(1)
    expect(contents.value.refused).toEqual(new Array(49).fill('tooLarge'))
  })

  it('reads a Buffer without keeping a hold on it', () => {
    const buffer = Buffer.from([8, 1, 2])
    const contents = decodePacket(buffer, wireWith())
    buffer.fill(0)

    const value = { messages: [{ kind: 'user', payload: Uint8Array.of(1, 2) }], refused: [] }
    expect(contents).toEqual({ ok: true, value })
  })

  it('more messages than the maximum are refused, not kept', () => {
    const inner = makeCompound(new Array(255).fill(user()))

    const contents = decodePacket(makeCompound(new Array(60).fill(inner)), wireWith())

    if (!contents.ok) throw new Error(contents.error)
    expect(contents.value.messages.length).toBe(1024)
    expect(new Set(contents.value.refused)).toEqual(new Set(['tooLarge']))
    expect(contents.value.refused.length).toBe(1024)
  })
})

describe('packet sizes', () => {
  it('are those of the gossipPacking table', () => {
    const variants: Readonly<Record<string, Wire>> = {
      plain: wireWith({ enableCompression: false }),
      'encryption v1': keyed({ enableCompression: false }),
      'encryption v0 (protocol 1)': keyed({ enableCompression: false, protocolVersion: 1 }),
      'label cluster-a': wireWith({ enableCompression: false, label: 'cluster-a' }),
      'label cluster-a + encryption v1': keyed({ enableCompression: false, label: 'cluster-a' }),
    }
    for (const row of memberlistVectors.tables.gossipPacking.rows) {
      const wire = variants[row.variant] as Wire
      const budget = 1400 - 2 - gossipOverhead(wire)
      const count = Math.min(400, Math.floor(budget / (row.messageLen + 2)))
      const parts = new Array(count).fill(user(...new Array(row.messageLen - 1).fill(0)))
      const packets = count === 0 ? [] : [encodePacket(parts, wire, { checksum: true })]
      const name = `${row.variant}, ${row.messageLen}`
      expect(count === 0 ? [] : [count], name).toEqual(row.messagesPerPacket)
      expect(
        packets.map(packet => packet.length),
        name,
      ).toEqual(row.packetLens)
    }
    expect(checksumFrameBytes).toBe(5)
  })
})
