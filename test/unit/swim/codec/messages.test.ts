import { describe, expect, it } from 'vitest'
import { ByteWriter } from '../../../../src/lib/byte-writer.js'
import {
  decodeMessage,
  readErrorMessage,
  readNodeRecord,
  readPushPullHeader,
  readStreamUserHeader,
} from '../../../../src/swim/codec/decode-message.js'
import {
  encodeMessage,
  writePushPullHead,
  writeStreamUserHead,
} from '../../../../src/swim/codec/encode-message.js'
import { MsgpackReader } from '../../../../src/swim/codec/msgpack-reader.js'
import { encodeStreamMessage } from '../../../../src/swim/codec/stream.js'
import { memberStateOf, wireStateOf } from '../../../../src/swim/messages.js'
import type { MemberName } from '../../../../src/vocabulary.js'
import {
  type Acceptance,
  fromHex,
  type GoStruct,
  goRecordOf,
  goStructOf,
  memberlistVectors,
  toHex,
  vectorsUnder,
} from '../../../helpers/memberlist-vectors.js'

const raw = vectorsUnder('raw/')
const isHeader = (name: string) => /header-/.test(name)
const isRecord = (name: string) => name.startsWith('raw/nodestate')
const single = raw.filter(v => !isHeader(v.name) && !isRecord(v.name) && v.name !== 'raw/err')

function readerAt(hex: string, offset: number): MsgpackReader {
  const bytes = fromHex(hex)
  return new MsgpackReader(bytes, offset, bytes.length)
}

/** A push/pull whose head announces the given counts; the records stand as one shared empty one. */
function headerBytes(join: boolean, nodes: number, userStateBytes: number): string {
  const out = new ByteWriter()
  const list: unknown = { length: nodes, [Symbol.iterator]: () => [].values() }
  writePushPullHead(out, join, list as [], userStateBytes)
  return toHex(out.finish())
}

describe('a message of a packet', () => {
  it.each(single)('$name decodes to its stated value and encodes to the same bytes', vector => {
    const decoded = decodeMessage(fromHex(vector.hex))

    if (!decoded.ok) throw new Error(decoded.error)
    const stated = vector.decoded.msg ?? { payload: vector.decoded.payload }
    expect(goStructOf(decoded.value)).toEqual(stated)
    expect(toHex(encodeMessage(decoded.value))).toBe(vector.hex)
  })

  it('keeps names apart that differ only in bytes that are no UTF-8', () => {
    const names = ['80', 'ff', 'c3', 'c328', 'eda080', 'f8', 'efbfbd', 'efbbbf61', '61c3a9ff62']
    const texts = names.map(hex => {
      const name = fromHex(hex)
      const body = [0x03, 0x81, 0xa4, ...Buffer.from('Node'), 0xa0 + name.length, ...name]
      const decoded = decodeMessage(Uint8Array.from(body))
      if (!decoded.ok || decoded.value.kind !== 'suspect') throw new Error(`not decoded: ${hex}`)
      const again = toHex(encodeMessage(decoded.value))
      expect(again.endsWith(hex), `${hex} comes back`).toBe(true)
      return decoded.value.node
    })

    expect(new Set(texts).size).toBe(names.length)
  })

  it('a user message owns its bytes', () => {
    const packet = Uint8Array.of(8, 1, 2, 3)
    const decoded = decodeMessage(packet)
    packet.fill(0)

    expect(decoded).toEqual({ ok: true, value: { kind: 'user', payload: Uint8Array.of(1, 2, 3) } })
  })

  it.each([
    ['no bytes', '', 'empty'],
    ['a type that only streams carry', '0680', 'unknownType'],
    ['an encrypt frame', '0a00000000', 'unknownType'],
    ['a label header', 'f40161', 'unknownType'],
    ['a type nobody defined', '63010203', 'unknownType'],
    ['a map cut short', '0281', 'truncated'],
    ['a string where a map should stand', '02a161', 'valueType'],
    ['a map of four billion fields', '02dfffffffff', 'tooLarge'],
    ['an array of four billion fields', '02ddffffffff', 'tooLarge'],
    ['a number as a field name', '028101c0', 'valueType'],
    ['a byte array of four billion numbers', '0281a75061796c6f6164ddffffffff', 'tooLarge'],
    ['a byte array with a number above 255', '0281a75061796c6f616491cd0100', 'valueRange'],
    ['a payload of four billion bytes', '0281a75061796c6f6164dbffffffff', 'tooLarge'],
    ['a skipped array of four billion values', '0281a178ddffffffff', 'tooLarge'],
    ['a skipped value nested forty deep', `0281a178${'91'.repeat(40)}c0`, 'tooDeep'],
    ['the one tag that msgpack never uses', '0281a178c1', 'valueType'],
    ['a float as a flag', '0181a44e61636bca00000000', 'valueType'],
  ])('%s is refused: %s', (_, hex, error) => {
    expect(decodeMessage(fromHex(hex))).toEqual({ ok: false, error })
  })

  it('skips an unknown field of any msgpack type', () => {
    const values = [
      ...['00', '7f', 'e0', 'ff', 'c0', 'c2', 'c3', 'ca00000000', 'cb0000000000000000'],
      ...['cc00', 'cd0000', 'ce00000000', 'cf0000000000000000', 'd000', 'd10000', 'd200000000'],
      ...['d30000000000000000', 'a0', 'a178', 'd90178', 'da000178', 'db0000000178', 'c40100'],
      ...['c5000100', 'c60000000100', '90', '9101', 'dc000101', 'dd0000000101', '80', '8101c0'],
      ...['de00010102', 'df000000010102', 'c7010500', 'c800010500', 'c9000000010500', 'd40500'],
      ...['d5050000', `d605${'00'.repeat(4)}`, `d705${'00'.repeat(8)}`, `d805${'00'.repeat(16)}`],
    ]
    for (const value of values) {
      const decoded = decodeMessage(fromHex(`0b82a178${value}a55365714e6f07`))
      expect(decoded, value).toEqual({ ok: true, value: { kind: 'nack', sequence: 7 } })
    }
  })
})

describe('what Go accepts', () => {
  it.each(memberlistVectors.decoderAcceptance)('$name is treated as v0.5.4 treats it', entry => {
    expect(verdictOf(entry)).toEqual(statedVerdictOf(entry))
  })
})

/** The decoded struct, or null for a refusal. */
function verdictOf(entry: Acceptance): GoStruct | null {
  const kind = entry.name.split('/')[0] as string
  if (kind === 'header') {
    const reader = readerAt(entry.hex, 0)
    const header = readPushPullHeader(reader)
    if (reader.error !== null) return null
    return { Join: header.join, Nodes: header.nodes, UserStateLen: header.userStateBytes }
  }
  const type = { suspect: '03', alive: '04', ping: '00' }[kind]
  if (type === undefined) throw new Error(`a new kind of entry: ${kind}`)
  const decoded = decodeMessage(fromHex(type + entry.hex))
  return decoded.ok ? goStructOf(decoded.value) : null
}

function statedVerdictOf(entry: Acceptance): GoStruct | null {
  const result = entry.results.find(({ versions }) => versions.includes('v0.5.4'))
  if (result === undefined) throw new Error(`nothing stated for ${entry.name}`)
  return result.decoded ?? null
}

describe('the parts of a stream message', () => {
  it.each(raw.filter(v => v.name.includes('pushpull-header')))('$name is read', vector => {
    const reader = readerAt(vector.hex, 1)
    const { join, nodes, userStateBytes } = readPushPullHeader(reader)

    expect(reader.error).toBeNull()
    expect({ Join: join, Nodes: nodes, UserStateLen: userStateBytes }).toEqual(vector.decoded.msg)
    if (!vector.name.includes('@'))
      expect(headerBytes(join, nodes, userStateBytes)).toBe(vector.hex)
  })

  it.each(raw.filter(v => v.name.includes('user-stream-header')))('$name is read', vector => {
    const reader = readerAt(vector.hex, 1)
    const payloadBytes = readStreamUserHeader(reader)
    const out = new ByteWriter()
    writeStreamUserHead(out, payloadBytes)

    expect(reader.error).toBeNull()
    expect({ UserMsgLen: payloadBytes }).toEqual(vector.decoded.msg)
    if (!vector.name.includes('@')) expect(toHex(out.finish())).toBe(vector.hex)
  })

  it.each(raw.filter(v => isRecord(v.name)))('$name is read and written alike', vector => {
    const reader = readerAt(vector.hex, 0)
    const record = readNodeRecord(reader)
    const message = {
      kind: 'pushPull',
      join: false,
      nodes: [record],
      userState: fromHex(''),
    } as const

    expect(reader.error).toBeNull()
    expect(goRecordOf(record)).toEqual(vector.decoded.msg)
    const head = headerBytes(false, 1, 0)
    expect(toHex(encodeStreamMessage(message))).toBe(head + vector.hex)
  })

  it.each(raw.filter(v => v.name === 'raw/err'))('$name is read and written alike', vector => {
    const reader = readerAt(vector.hex, 1)
    const message = readErrorMessage(reader)

    expect(reader.error).toBeNull()
    expect(goStructOf(message)).toEqual(vector.decoded.msg)
    expect(toHex(encodeStreamMessage(message))).toBe(vector.hex)
  })

  it('state numbers and states stand for each other; unknown numbers stand for none', () => {
    const states = [0, 1, 2, 3].map(memberStateOf)

    expect(states).toEqual(['alive', 'suspect', 'dead', 'left'])
    expect(states.map(state => wireStateOf(state as 'alive'))).toEqual([0, 1, 2, 3])
    expect([-1, 4, 0.5, 2 ** 40].map(memberStateOf)).toEqual([null, null, null, null])
  })

  it('every raw vector is covered by one of these tests', () => {
    const covered = raw.filter(v => isHeader(v.name) || isRecord(v.name) || v.name === 'raw/err')

    expect(covered.length + single.length).toBe(81)
    expect(single.length).toBeGreaterThan(40)
  })

  it('an empty name is written as an empty string', () => {
    const node = '' as MemberName
    const ping = { kind: 'ping', node, sequence: 300, sourcePort: 0, sourceNode: node } as const

    const bytes = encodeMessage({ ...ping, sourceAddress: new Uint8Array(0) })

    expect(toHex(bytes)).toBe('0082a44e6f6465a0a55365714e6fcd012c')
  })
})
