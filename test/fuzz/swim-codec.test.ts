/**
 * Every decoder against bytes nobody meant to send: random ones, and recorded ones with a few bytes
 * changed, cut, doubled or spliced. Nothing may throw, and what comes out is bounded. Findings
 * belong into `findings` below. FUZZ_SEED and FUZZ_ROUNDS override the seed and the number of
 * rounds.
 */
import { describe, expect, it } from 'vitest'
import { readCompound } from '../../src/swim/codec/compound.js'
import { decompressFrame } from '../../src/swim/codec/compression.js'
import { decodeMessage } from '../../src/swim/codec/decode-message.js'
import { encodeMessage } from '../../src/swim/codec/encode-message.js'
import { decrypt } from '../../src/swim/codec/encryption.js'
import { Keyring } from '../../src/swim/codec/keyring.js'
import { lzwDecode } from '../../src/swim/codec/lzw-decoder.js'
import { decodePacket, encodePacket } from '../../src/swim/codec/packet.js'
import { StreamDecoder } from '../../src/swim/codec/stream-decoder.js'
import { createWire } from '../../src/swim/codec/wire.js'
import { wireErrors } from '../../src/swim/codec/wire-error.js'
import { fromHex, memberlistVectors, toHex } from '../helpers/memberlist-vectors.js'

const seed = Number(process.env.FUZZ_SEED ?? 71_946)
const rounds = Number(process.env.FUZZ_ROUNDS ?? 20_000)

const kinds: ReadonlySet<string> = new Set(wireErrors)
const key = fromHex('000102030405060708090a0b0c0d0e0f')
const plainBytesMax = 100_000
const packetPlainBytesMax = 256 * 1024

/** Bytes that broke a decoder, or that stand at the edge of one of its bounds, as hex. */
const findings: readonly string[] = [
  // One more array element than the input has bytes; a skipped map of 2^31 pairs.
  '0281a75061796c6f6164dc000100',
  '0281a178df80000000',
]

/** Mulberry32: small, fast, good enough to choose bytes. */
function generator(start: number): (below: number) => number {
  let state = start | 0
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * below)
  }
}

const corpus = [
  ...memberlistVectors.vectors.map(vector => vector.hex),
  ...memberlistVectors.decoderAcceptance.map(entry => `03${entry.hex}`),
  ...memberlistVectors.packetRejection.map(entry => entry.hex),
  ...findings,
]
  .filter(hex => hex.length > 0)
  .map(fromHex)

/** The tags, types and lengths that decoders look at, more often than chance has them. */
const telling = [0, 1, 7, 9, 10, 12, 31, 127, 128, 143, 144, 160, 192, 198, 219, 221, 223, 244, 255]

function mutated(pick: (below: number) => number): Uint8Array {
  const bytes = Array.from(corpus[pick(corpus.length)] as Uint8Array)
  for (let change = pick(4); change >= 0; change--) {
    const at = pick(bytes.length + 1)
    const kind = pick(6)
    if (kind === 0) bytes[at] = pick(256)
    else if (kind === 1) bytes[at] = telling[pick(telling.length)] as number
    else if (kind === 2) bytes.length = Math.min(bytes.length, at)
    else if (kind === 3) bytes.splice(at, pick(8))
    else if (kind === 4) bytes.splice(at, 0, ...bytes.slice(at, at + pick(40)))
    else bytes.splice(at, 0, ...(corpus[pick(corpus.length)] as Uint8Array).subarray(0, pick(90)))
  }
  return Uint8Array.from(bytes.map(byte => byte ?? 0))
}

function random(pick: (below: number) => number): Uint8Array {
  return Uint8Array.from({ length: pick(200) }, () =>
    pick(3) === 0 ? (telling[pick(telling.length)] as number) : pick(256),
  )
}

const entropy = (length: number) => new Uint8Array(length).fill(3)
const wires = [
  createWire({ entropy }),
  createWire({ entropy, label: 'cluster-a' }),
  createWire({ entropy, keyring: new Keyring([key]) }),
  createWire({ entropy, keyring: new Keyring([key]), gossipVerifyIncoming: false }),
  createWire({ entropy, label: 'cluster-a', skipInboundLabelCheck: true }),
]

function expectKnown(result: { readonly ok: boolean; readonly error?: string }): void {
  if (!result.ok && !kinds.has(result.error as string)) throw new Error(`kind ${result.error}`)
}

function tryLayers(bytes: Uint8Array): void {
  const keyring = new Keyring([key])
  const parts = readCompound(bytes)
  expectKnown(parts)
  expectKnown(decrypt(keyring, bytes, fromHex('')))
  for (const plain of [decompressFrame(bytes, plainBytesMax), lzwDecode(bytes, plainBytesMax)]) {
    expectKnown(plain)
    if (plain.ok && plain.value.length > plainBytesMax) throw new Error('too much output')
  }
}

function tryMessage(bytes: Uint8Array): void {
  const message = decodeMessage(bytes)
  expectKnown(message)
  if (!message.ok) return
  // Whatever is accepted can be said again, and then means the same.
  const again = decodeMessage(encodeMessage(message.value))
  expect(again).toEqual(message)
}

function tryPacket(bytes: Uint8Array): void {
  for (const wire of wires) {
    const contents = decodePacket(bytes, wire)
    expectKnown(contents)
    if (!contents.ok) continue
    const { messages, refused } = contents.value
    if (messages.length > 1024 || refused.length > 1024) throw new Error('too many messages')
    const size = messages.reduce((sum, message) => sum + encodeMessage(message).length, 0)
    if (size > packetPlainBytesMax + 64 * 1024) throw new Error('too many bytes')
  }
}

function tryStream(bytes: Uint8Array, pick: (below: number) => number): void {
  const wire = wires[pick(wires.length)] as (typeof wires)[number]
  for (const role of ['listener', 'dialler'] as const) {
    const whole = new StreamDecoder(wire, role)
    const once = whole.push(bytes) ?? whole.end()
    expectKnown(once)
    const pieces = new StreamDecoder(wire, role)
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + pick(40)
      pieces.push(bytes.subarray(at, at + size))
      at += size
    }
    // How the bytes are cut does not matter.
    expect(pieces.end()).toEqual(once)
  }
}

/** Runs one round and adds to a failure what is needed to see it again. */
function round(bytes: Uint8Array, pick: (below: number) => number): void {
  try {
    tryLayers(bytes)
    tryMessage(bytes)
    tryPacket(bytes)
    tryStream(bytes, pick)
  } catch (cause) {
    throw new Error(`seed ${seed}, bytes ${toHex(bytes)}`, { cause })
  }
}

describe('every decoder of the memberlist wire', () => {
  it('survives its kept findings', () => {
    for (const hex of findings) round(fromHex(hex), generator(seed))
  })

  it('survives random bytes', () => {
    const pick = generator(seed)
    for (let count = 0; count < rounds / 4; count++) round(random(pick), pick)
  })

  it('survives recorded bytes with changes', () => {
    const pick = generator(seed + 1)
    for (let count = 0; count < rounds / 4; count++) round(mutated(pick), pick)
  })

  it('survives changed bytes behind valid encryption and checksum', () => {
    const pick = generator(seed + 2)
    const wire = createWire({
      entropy,
      label: 'a',
      keyring: new Keyring([key]),
      enableCompression: false,
    })
    for (let count = 0; count < rounds / 4; count++) {
      const bytes = mutated(pick)
      if (bytes.length === 0) continue
      const packet = encodePacket([bytes], wire, { checksum: pick(2) === 0 })
      const contents = decodePacket(packet, wire)
      expectKnown(contents)
      if (!contents.ok && contents.error === 'undecryptable') throw new Error('own packet refused')
    }
  })
})
