/**
 * Several messages in one:
 *
 *     07 | count u8 | count x length u16 | parts back to back
 *
 * Source: memberlist util.go (makeCompoundMessage, decodeCompoundMessage).
 */
import { assert } from '../../lib/assert.js'
import { messageType } from '../messages.js'
import { type Decoded, refused } from './wire-error.js'

/** The count is one byte. */
export const compoundPartsMax = 255
/** A part's length is two bytes. */
export const compoundPartBytesMax = 0xffff
export const compoundHeaderBytes = 2
export const compoundPartOverhead = 2

/** `parts`: 1..255 messages of 1..65535 bytes each. */
export function makeCompound(parts: readonly Uint8Array[]): Uint8Array {
  assert(parts.length >= 1 && parts.length <= compoundPartsMax, 'a compound holds 1..255 parts')
  let length = compoundHeaderBytes
  for (const part of parts) {
    assert(part.length >= 1 && part.length <= compoundPartBytesMax, 'a part has 1..65535 bytes')
    length += compoundPartOverhead + part.length
  }
  const compound = new Uint8Array(length)
  compound[0] = messageType.compound
  compound[1] = parts.length
  let table = compoundHeaderBytes
  let offset = compoundHeaderBytes + parts.length * compoundPartOverhead
  for (const part of parts) {
    compound[table++] = part.length >>> 8
    compound[table++] = part.length
    compound.set(part, offset)
    offset += part.length
  }
  return compound
}

/** Cuts a list of messages into groups that each fit one compound by count. */
export function splitParts(parts: readonly Uint8Array[]): readonly (readonly Uint8Array[])[] {
  if (parts.length <= compoundPartsMax) return parts.length === 0 ? [] : [parts]
  const groups: (readonly Uint8Array[])[] = []
  for (let start = 0; start < parts.length; start += compoundPartsMax)
    groups.push(parts.slice(start, start + compoundPartsMax))
  return groups
}

export interface CompoundParts {
  /** Views of the input. A part may be empty; it is no message. */
  readonly parts: readonly Uint8Array[]
  /** How many announced parts the bytes end before. */
  readonly truncated: number
}

/** Takes a compound (type byte first) apart. One cut in its length table yields nothing. */
export function readCompound(bytes: Uint8Array): Decoded<CompoundParts> {
  const count = bytes[1]
  if (count === undefined) return refused('truncated')
  let offset = compoundHeaderBytes + count * compoundPartOverhead
  if (bytes.length < offset) return refused('truncated')
  const parts: Uint8Array[] = []
  for (let index = 0; index < count; index++) {
    const entry = compoundHeaderBytes + index * compoundPartOverhead
    const length = ((bytes[entry] as number) << 8) | (bytes[entry + 1] as number)
    if (offset + length > bytes.length)
      return { ok: true, value: { parts, truncated: count - index } }
    parts.push(bytes.subarray(offset, offset + length))
    offset += length
  }
  return { ok: true, value: { parts, truncated: 0 } }
}
