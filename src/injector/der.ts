/**
 * Writing DER (X.690): the few types that a certificate is made of. Nothing here reads DER; Node's
 * own `X509Certificate` does that.
 */

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

export function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthBytes(content.length), content])
}

/** Short form below 128, else the count of length bytes and those. */
function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export const sequence = (...parts: readonly Uint8Array[]) => tagged(tags.sequence, ...parts)
export const set = (...parts: readonly Uint8Array[]) => tagged(tags.set, ...parts)
export const octetString = (content: Uint8Array) => tagged(tags.octetString, content)
export const utf8String = (text: string) => tagged(tags.utf8String, Buffer.from(text, 'utf8'))
export const truth = (value: boolean) => tagged(tags.boolean, Buffer.from([value ? 0xff : 0]))

/** `[number]` around whole values (EXPLICIT, constructed). */
export const explicit = (number: number, ...parts: readonly Uint8Array[]) =>
  tagged(0xa0 | number, ...parts)

/** `[number]` in place of a primitive type's own tag (IMPLICIT). */
export const implicit = (number: number, content: Uint8Array) => tagged(0x80 | number, content)

/** Magnitude, big-endian; a leading zero keeps it positive. */
export function integer(magnitude: Uint8Array): Buffer {
  let start = 0
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++
  const bytes = magnitude.subarray(start)
  const sign = (bytes[0] ?? 0) >= 0x80 ? Buffer.from([0]) : Buffer.alloc(0)
  return tagged(tags.integer, sign, bytes)
}

export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return tagged(tags.bitString, Buffer.from([unusedBits]), bytes)
}

/** From dotted text. The first two arcs share one byte, the others take seven bits a byte. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const septets = [arc & 0x7f]
    for (let left = arc >>> 7; left > 0; left >>>= 7) septets.unshift(0x80 | (left & 0x7f))
    bytes.push(...septets)
  }
  return tagged(tags.oid, Buffer.from(bytes))
}

/** A moment to the second; UTCTime until 2049, GeneralizedTime from then (RFC 5280 §4.1.2.5). */
export function time(wallMs: number): Buffer {
  const digits = `${new Date(wallMs).toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`
  return Number(digits.slice(0, 4)) < 2050
    ? tagged(tags.utcTime, Buffer.from(digits.slice(2), 'ascii'))
    : tagged(tags.generalizedTime, Buffer.from(digits, 'ascii'))
}
