import { crc32 as zlibCrc32 } from 'node:zlib'
import { decode, encode } from '@msgpack/msgpack'
import fc from 'fast-check'
import * as msgpackLite from 'msgpack-lite'
import { describe, expect, it } from 'vitest'
import { crc32 } from '../../src/swim/codec/checksum.js'
import { makeCompound, readCompound } from '../../src/swim/codec/compound.js'
import { decodeMessage } from '../../src/swim/codec/decode-message.js'
import { encodeMessage } from '../../src/swim/codec/encode-message.js'
import { lzwDecode } from '../../src/swim/codec/lzw-decoder.js'
import { lzwEncode } from '../../src/swim/codec/lzw-encoder.js'
import { decodePacket, encodePacket } from '../../src/swim/codec/packet.js'
import { bytesOfText, textOf } from '../../src/swim/codec/raw-text.js'
import { encodeStream } from '../../src/swim/codec/stream.js'
import { StreamDecoder, type StreamResult } from '../../src/swim/codec/stream-decoder.js'
import type { PacketMessage } from '../../src/swim/messages.js'
import { packetMessage, replyMessage, requestMessage, wire } from '../helpers/arbitrary-messages.js'
import { type GoStruct, goStructOf } from '../helpers/memberlist-vectors.js'

const settings = { seed: 20_260_730, numRuns: 300 }
const noLimit = Number.MAX_SAFE_INTEGER

/** Repetitive, random and mixed bytes: what fills dictionaries, and what does not. */
const compressible = fc.oneof(
  fc.uint8Array({ maxLength: 3000 }),
  fc.array(fc.constantFrom(0, 1, 255), { maxLength: 6000 }).map(list => Uint8Array.from(list)),
  fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(600))
    .map(([part, times]) => Uint8Array.from(Array.from({ length: times }, () => [...part]).flat())),
)

/** A message as a plain map with its byte fields as `asBytes` makes them. */
function mapOf(message: PacketMessage, asBytes: (hex: string) => unknown): GoStruct {
  const entries = Object.entries(goStructOf(message)).map(([key, value]) => {
    const isBytes = typeof value === 'object' && value !== null && 'hex' in value
    return [key, isBytes ? asBytes(String(value.hex)) : value] as const
  })
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

const structured = packetMessage.filter(message => message.kind !== 'user')

describe('messages', () => {
  it('decoding undoes encoding', () => {
    fc.assert(
      fc.property(packetMessage, message => {
        expect(decodeMessage(encodeMessage(message))).toEqual({ ok: true, value: message })
      }),
      settings,
    )
  })

  it('the body is the msgpack that msgpack-lite writes in its raw mode', () => {
    const codec = msgpackLite.createCodec({ useraw: true })
    fc.assert(
      fc.property(structured, message => {
        const map = mapOf(message, hex => Buffer.from(hex, 'hex'))
        const body = encodeMessage(message).subarray(1)
        expect(Buffer.from(body).equals(msgpackLite.encode(map, { codec }))).toBe(true)
      }),
      settings,
    )
  })

  it('the body says to @msgpack/msgpack what the message says', () => {
    const text = (raw: unknown) => (raw instanceof Uint8Array ? Buffer.from(raw).toString() : raw)
    fc.assert(
      fc.property(structured, message => {
        const options = { rawStrings: true, mapKeyConverter: (key: unknown) => String(text(key)) }
        const map = decode(encodeMessage(message).subarray(1), options) as GoStruct
        const plain = mapOf(message, hex => Uint8Array.from(Buffer.from(hex, 'hex')))
        expect(Object.keys(map)).toEqual(Object.keys(plain))
        for (const [key, value] of Object.entries(plain))
          expect(typeof value === 'string' ? text(map[key]) : map[key], key).toEqual(value)
      }),
      settings,
    )
  })

  it('what @msgpack/msgpack writes, with str8 and bin, is read alike', () => {
    fc.assert(
      fc.property(structured, message => {
        const type = encodeMessage(message)[0] as number
        const body = encode(mapOf(message, hex => Uint8Array.from(Buffer.from(hex, 'hex'))))
        const bytes = Buffer.concat([Uint8Array.of(type), body])
        expect(decodeMessage(Uint8Array.from(bytes))).toEqual({ ok: true, value: message })
      }),
      { ...settings, numRuns: 150 },
    )
  })

  it('a prefix of a message is never that message, and never throws', () => {
    fc.assert(
      fc.property(structured, fc.double({ min: 0, max: 1, noNaN: true }), (message, share) => {
        const bytes = encodeMessage(message)
        const cut = bytes.subarray(0, Math.floor((bytes.length - 1) * share))
        const decoded = decodeMessage(cut)
        // A string announced to be longer than all there is counts as too large.
        const errors = cut.length === 0 ? ['empty'] : ['truncated', 'tooLarge']
        expect(errors).toContain(decoded.ok ? 'decoded' : decoded.error)
      }),
      settings,
    )
  })
})

describe('raw text', () => {
  it('every byte string has one text and comes back from it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), bytes => {
        expect(bytesOfText(textOf(bytes, 0, bytes.length))).toEqual(bytes)
      }),
      { ...settings, numRuns: 1000 },
    )
  })

  it('valid UTF-8 reads as its text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), text => {
        fc.pre(text.isWellFormed())
        const bytes = new TextEncoder().encode(text)
        expect(textOf(bytes, 0, bytes.length)).toBe(text)
      }),
      settings,
    )
  })
})

describe('layers', () => {
  it('decompression undoes compression, within exactly the size it has', () => {
    fc.assert(
      fc.property(compressible, plain => {
        const packed = lzwEncode(plain, noLimit) as Uint8Array
        expect(lzwDecode(packed, plain.length)).toEqual({ ok: true, value: plain })
        if (plain.length > 0)
          expect(lzwDecode(packed, plain.length - 1)).toEqual({ ok: false, error: 'tooLarge' })
        expect(lzwEncode(plain, packed.length - 1)).toBeNull()
      }),
      settings,
    )
  })

  it('the checksum is zlib’s', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
        expect(crc32(bytes)).toBe(zlibCrc32(bytes))
      }),
      settings,
    )
  })

  it('taking a compound apart undoes making it', () => {
    const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), {
      minLength: 1,
      maxLength: 255,
    })
    fc.assert(
      fc.property(parts, list => {
        const value = { parts: list, truncated: 0 }
        expect(readCompound(makeCompound(list))).toEqual({ ok: true, value })
      }),
      { ...settings, numRuns: 100 },
    )
  })
})

describe('packets', () => {
  it('decoding undoes encoding under any settings', () => {
    const messages = fc.array(packetMessage, { minLength: 1, maxLength: 30 })
    fc.assert(
      fc.property(messages, wire, fc.boolean(), (list, settingsOfNode, checksum) => {
        const parts = list.map(encodeMessage).filter(part => part.length < 60_000)
        fc.pre(parts.length > 0 && parts.reduce((sum, part) => sum + part.length, 0) < 200_000)
        const packet = encodePacket(parts, settingsOfNode, { checksum })
        const contents = decodePacket(packet, settingsOfNode)
        if (!contents.ok) throw new Error(contents.error)
        expect(contents.value.refused).toEqual([])
        expect(contents.value.messages.map(encodeMessage)).toEqual(parts)
      }),
      settings,
    )
  })
})

describe('streams', () => {
  it('decoding undoes encoding under any settings and in chunks of any sizes', () => {
    const exchange = fc.oneof(
      requestMessage.map(message => ({ message, direction: 'request' as const })),
      replyMessage.map(message => ({ message, direction: 'reply' as const })),
    )
    const sizes = fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(exchange, wire, sizes, ({ message, direction }, settingsOfNode, chunkSizes) => {
        const bytes = encodeStream(message, settingsOfNode, direction)
        const role = direction === 'request' ? 'listener' : 'dialler'
        const decoder = new StreamDecoder(settingsOfNode, role)
        let result: StreamResult | null = null
        let at = 0
        for (let turn = 0; at < bytes.length; turn++) {
          expect(result, `a result after ${at} of ${bytes.length} bytes`).toBeNull()
          const size = chunkSizes[turn % chunkSizes.length] as number
          result = decoder.push(bytes.subarray(at, at + size))
          at += size
        }
        expect(result).toMatchObject({ ok: true, message })
      }),
      settings,
    )
  })
})
