import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { crc32 } from '../../../../src/swim/codec/checksum.js'
import { makeCompound, readCompound, splitParts } from '../../../../src/swim/codec/compound.js'
import { compressFrame, decompressFrame } from '../../../../src/swim/codec/compression.js'
import {
  decrypt,
  type EncryptionVersion,
  encrypt,
  encryptedLength,
  encryptOverhead,
} from '../../../../src/swim/codec/encryption.js'
import { Keyring, type RingKey } from '../../../../src/swim/codec/keyring.js'
import { lzwDecode } from '../../../../src/swim/codec/lzw-decoder.js'
import { lzwEncode } from '../../../../src/swim/codec/lzw-encoder.js'
import { decodePacket } from '../../../../src/swim/codec/packet.js'
import { createWire, labelProblem } from '../../../../src/swim/codec/wire.js'
import {
  fixedEntropy,
  fromHex,
  memberlistVectors,
  toHex,
  type Vector,
  vectorsUnder,
} from '../../../helpers/memberlist-vectors.js'

const { tables, packetRejection } = memberlistVectors
const noLimit = Number.MAX_SAFE_INTEGER
const bytesMax = 1 << 20

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

describe('compound', () => {
  it.each(vectorsUnder('compound/'))('$name comes apart as stated', vector => {
    const compound = readCompound(fromHex(vector.hex))

    if (vector.decoded.err !== null) {
      expect(compound).toEqual({ ok: false, error: 'truncated' })
      return
    }
    if (!compound.ok) throw new Error(compound.error)
    expect(compound.value.parts.map(toHex)).toEqual(vector.decoded.parts)
    expect(compound.value.truncated).toBe(vector.decoded.truncated)
  })

  it.each(vectorsUnder('compound/').filter(v => /three|one|nested/.test(v.name)))(
    '$name is put together to the same bytes',
    vector => {
      const parts = vector.decoded.parts.map(fromHex)

      expect(toHex(makeCompound(parts))).toBe(vector.hex)
    },
  )

  it('lists split at 255 messages as in the compoundSplit table', () => {
    for (const row of tables.compoundSplit.rows) {
      const parts = Array.from({ length: row.messages }, () => Uint8Array.of(8, 1))
      const groups = splitParts(parts)
      expect(
        groups.map(group => group.length),
        `${row.messages}`,
      ).toEqual(row.compoundCounts)
      expect(groups.map(group => makeCompound(group)[1])).toEqual(row.compoundCounts)
    }
    expect(splitParts([])).toEqual([])
  })

  it('256 parts, which would wrap the count to 0, trip an assertion', () => {
    const parts = Array.from({ length: 256 }, () => Uint8Array.of(8, 1))

    expect(() => makeCompound(parts)).toThrow('broken invariant')
    expect(() => makeCompound([new Uint8Array(0)])).toThrow('broken invariant')
  })
})

describe('checksum', () => {
  it('is CRC-32 as zlib has it, from any start', () => {
    const digits = new TextEncoder().encode('0123456789')

    expect(crc32(digits, 1)).toBe(0xcbf43926)
    expect(crc32(new Uint8Array(0))).toBe(0)
  })

  it.each(vectorsUnder('crc/'))('$name holds the checksum of what follows it', vector => {
    const bytes = fromHex(vector.hex)

    expect(toHex(bytes.subarray(5))).toBe(vector.decoded.inner)
    expect(crc32(bytes, 5).toString(16).padStart(8, '0')).toBe(toHex(bytes.subarray(1, 5)))
  })
})

describe('compression', () => {
  const vectors = vectorsUnder('compress/').filter(v => v.hex !== '')

  it.each(vectors)('$name is read, and written to the same bytes', vector => {
    const plain = decompressFrame(fromHex(vector.hex), bytesMax)

    if (!plain.ok) throw new Error(plain.error)
    expect(plain.value.length).toBe(vector.decoded.innerLen)
    expect(sha256(plain.value)).toBe(vector.decoded.innerSha256)
    expect(toHex(compressFrame(plain.value, noLimit) as Uint8Array)).toBe(vector.hex)
  })

  it('compress/lcg-20000-digest: incompressible bytes through several table resets', () => {
    const { decoded } = vectorsUnder('compress/lcg-20000-digest')[0] as Vector
    const plain = new Uint8Array(20_000)
    let state = 12_345
    for (let index = 0; index < plain.length; index++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      plain[index] = state >>> 24
    }
    expect(sha256(plain)).toBe(decoded.innerSha256)

    const frame = compressFrame(plain, noLimit) as Uint8Array

    expect([frame.length, sha256(frame)]).toEqual([decoded.frameLen, decoded.frameSha256])
    expect(decompressFrame(frame, 20_000)).toEqual({ ok: true, value: plain })
  })

  it('stops as soon as the output is longer than allowed, both ways', () => {
    const run = new Uint8Array(100_000)
    const frame = compressFrame(run, noLimit) as Uint8Array

    expect(compressFrame(run, frame.length - 1)).toBeNull()
    expect(compressFrame(run, frame.length)).toEqual(frame)
    expect(decompressFrame(frame, 99_999)).toEqual({ ok: false, error: 'tooLarge' })
    expect(decompressFrame(frame, 100_000)).toEqual({ ok: true, value: run })
  })

  it('an encoding that was given up leaves no trace in the next one', () => {
    const noise = Uint8Array.from({ length: 3000 }, (_, i) => (i * i * 7 + (i >> 3) * 13) & 0xff)
    const before = lzwEncode(noise, noLimit)

    expect(lzwEncode(noise, 100)).toBeNull()
    expect(lzwEncode(noise, noLimit)).toEqual(before)
  })

  it('a full dictionary without a clear code stays in use', () => {
    const codes = Array.from({ length: 6000 }, (_, index) => (index * 37) & 0xff)
    const packed = packLsb([...codes, 4095, 4095, 300, 257])

    const plain = lzwDecode(packed, bytesMax)

    if (!plain.ok) throw new Error(plain.error)
    expect([...plain.value.subarray(0, 6000)]).toEqual(codes)
    expect(plain.value.length).toBe(6000 + 3 * 2)
  })
})

/** LZW codes as a stream whose decoder never sees a clear code: the width only grows, to 12. */
function packLsb(codes: readonly number[]): Uint8Array {
  const bytes: number[] = []
  let bits = 0
  let bitCount = 0
  codes.forEach((code, index) => {
    bits |= code << bitCount
    bitCount += Math.min(12, Math.max(9, Math.floor(Math.log2(257 + index)) + 1))
    for (; bitCount >= 8; bitCount -= 8) {
      bytes.push(bits & 0xff)
      bits >>>= 8
    }
  })
  return Uint8Array.from([...bytes, bits & 0xff])
}

describe('encryption', () => {
  it.each(vectorsUnder('encrypt/'))('$name opens, and closes to the same bytes', vector => {
    const { aadHex, encryptionVersion, keyHex, nonceHex, expectedLen } = vector.params as {
      [name: string]: string
    }
    const version = Number(encryptionVersion) as EncryptionVersion
    const keyring = new Keyring([fromHex(keyHex as string)])
    const aad = fromHex(aadHex as string)
    const plain = fromHex(vector.decoded.plaintext)

    expect(decrypt(keyring, fromHex(vector.hex), aad)).toEqual({ ok: true, value: plain })
    const entropy = fixedEntropy(nonceHex as string)
    const unit = encrypt(keyring.primary as RingKey, version, plain, aad, entropy)
    expect(toHex(unit)).toBe(vector.hex)
    expect(encryptedLength(version, plain.length)).toBe(Number(expectedLen))
  })

  it('lengths are those of the encryptOverhead and encryptedLength tables', () => {
    const { v0, v1 } = tables.encryptOverhead.data
    expect([encryptOverhead(0), encryptOverhead(1)]).toEqual([v0, v1])
    for (const row of tables.encryptedLength.rows) {
      const lengths = { plain: row.plain, v0: encryptedLength(0, row.plain) }
      expect({ ...lengths, v1: encryptedLength(1, row.plain) }).toEqual(row)
    }
  })
})

describe('what Go rejects', () => {
  const key = '000102030405060708090a0b0c0d0e0f'
  const stranger = '101112131415161718191a1b1c1d1e1f'
  const kinds: Readonly<Record<string, string | null>> = {
    'decompress/garbage': 'compressionMalformed',
    'decompress/no-clear-code': null,
    'decompress/no-eof': 'compressionMalformed',
    'decompress/unknown-algo': 'compressionUnknown',
    'decompress/with-clear-code': null,
    'decrypt/bad-tag': 'undecryptable',
    'decrypt/empty': 'empty',
    'decrypt/min-v0-44': 'encryptionMalformed',
    'decrypt/second-key': null,
    'decrypt/short-v1': 'encryptionMalformed',
    // Go opens it and cuts bytes that are no padding; here padding has to look like padding.
    'decrypt/v1-labelled-as-v0': 'encryptionMalformed',
    'decrypt/version-2': 'encryptionMalformed',
    'decrypt/wrong-aad': 'undecryptable',
    'decrypt/wrong-key': 'undecryptable',
    'label/only-type': 'labelMalformed',
    'label/short': 'labelMalformed',
    'label/size-zero': 'labelMalformed',
  }

  it.each(packetRejection.filter(entry => entry.name !== 'label/too-long'))(
    '$name ends the same way here',
    entry => {
      const bytes = fromHex(entry.hex)
      const kind = kinds[entry.name]
      const ring = (...keys: string[]) => new Keyring(keys.map(fromHex))
      const keyrings: Readonly<Record<string, Keyring>> = {
        'decrypt/second-key': ring(stranger, key),
        'decrypt/wrong-key': ring(stranger),
      }
      const aad = entry.name === 'decrypt/wrong-aad' ? fromHex('78') : fromHex('')

      const [layer] = entry.name.split('/')
      const result =
        layer === 'decompress'
          ? decompressFrame(bytes, bytesMax)
          : layer === 'decrypt'
            ? decrypt(keyrings[entry.name] ?? ring(key), bytes, aad)
            : decodePacket(bytes, createWire({ label: 'abcde', entropy: fixedEntropy('') }))

      expect(result.ok ? null : result.error).toBe(kind)
      const strictHere = entry.name === 'decrypt/v1-labelled-as-v0'
      expect(entry.results.at(-1)?.error === null, 'Go agrees').toBe(kind === null || strictHere)
    },
  )

  it('label/too-long: a label of 256 bytes has a problem, one of 255 has none', () => {
    expect(labelProblem('L'.repeat(256))).toMatch('256 bytes')
    expect(labelProblem('é'.repeat(128))).toMatch('256 bytes')
    expect(labelProblem('L'.repeat(255))).toBeNull()
  })

  it('every entry is covered by one of these tests', () => {
    const names = packetRejection.map(entry => entry.name)

    expect(names.toSorted()).toEqual([...Object.keys(kinds), 'label/too-long'].toSorted())
  })

  it('padding that is longer than the block or the text is not believed', () => {
    const keyring = new Keyring([fromHex(key)])
    for (const last of [0, 17, 255]) {
      const plain = new Uint8Array(32).fill(last)
      const entropy = fixedEntropy('a0a1a2a3a4a5a6a7a8a9aaab')
      const unit = encrypt(keyring.primary as RingKey, 1, plain, fromHex(''), entropy)
      unit[0] = 0
      const opened = decrypt(keyring, unit, fromHex(''))
      expect(opened, `${last}`).toEqual({ ok: false, error: 'encryptionMalformed' })
    }
  })
})
