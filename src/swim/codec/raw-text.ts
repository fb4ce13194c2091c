/**
 * Text that is bytes on the wire. Go treats names as raw bytes, so two names that differ only in
 * bytes that are no UTF-8 are two names. Such bytes become lone surrogates U+DC80..U+DCFF (the way
 * of Python's PEP 383), which no valid UTF-8 decodes to; every byte string therefore has exactly
 * one text and comes back unchanged.
 */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Names are nearly always short ASCII, for which a loop beats the general decoder. */
const shortTextBytesMax = 64

const escapeBase = 0xdc00

/** The text of `bytes[start, end)`. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= shortTextBytesMax) {
    let text = ''
    let index = start
    for (; index < end; index++) {
      const byte = bytes[index] as number
      if (byte >= 0x80) break
      text += String.fromCharCode(byte)
    }
    if (index === end) return text
  }
  const part = bytes.subarray(start, end)
  try {
    return decoder.decode(part)
  } catch {
    return escapedTextOf(part)
  }
}

export function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= 0x80) return false
  }
  return true
}

/** The bytes of a text, escapes turned back. A lone surrogate that is no escape becomes U+FFFD. */
export function bytesOfText(text: string): Uint8Array {
  if (text.isWellFormed()) return encoder.encode(text)
  const parts: number[] = []
  for (const character of text) {
    const code = character.codePointAt(0) as number
    if (code >= escapeBase + 0x80 && code <= escapeBase + 0xff) parts.push(code - escapeBase)
    else for (const byte of encoder.encode(character)) parts.push(byte)
  }
  return Uint8Array.from(parts)
}

/** Decodes valid runs as UTF-8 and escapes each byte that belongs to none. */
function escapedTextOf(bytes: Uint8Array): string {
  let text = ''
  let index = 0
  while (index < bytes.length) {
    const length = sequenceLengthAt(bytes, index)
    if (length === 0) {
      text += String.fromCharCode(escapeBase + (bytes[index] as number))
      index += 1
    } else {
      text += decoder.decode(bytes.subarray(index, index + length))
      index += length
    }
  }
  return text
}

/** Length of the valid UTF-8 sequence at `index` (RFC 3629 §4), 0 if there is none. */
function sequenceLengthAt(bytes: Uint8Array, index: number): number {
  const first = bytes[index] as number
  if (first < 0x80) return 1
  if (first < 0xc2 || first > 0xf4) return 0
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  if (index + length > bytes.length) return 0
  const second = bytes[index + 1] as number
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  if (second < low || second > high) return 0
  for (let next = index + 2; next < index + length; next++) {
    if (((bytes[next] as number) & 0xc0) !== 0x80) return 0
  }
  return length
}
