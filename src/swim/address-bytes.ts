/**
 * Addresses as memberlist carries them (4 or 16 raw bytes) and as sockets take them (text). The
 * byte form is part of a member's identity: Go compares 10.0.0.1 in 4 bytes and in 16 bytes as
 * different addresses, so bytes are kept as received and only turned into text to reach somebody.
 */

const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

/** The text for a socket, IPv4-mapped unwrapped; null for any length but 4 and 16. */
export function hostOf(bytes: Uint8Array): string | null {
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
  if (bytes.length !== 16) return null
  if (mappedPrefix.every((value, index) => bytes[index] === value))
    return hostOf(bytes.subarray(12))
  return compressed(Array.from({ length: 8 }, (_, i) => bytes[2 * i]! * 256 + bytes[2 * i + 1]!))
}

/**
 * RFC 5952: lower case, the longest run of two or more zero groups (the first of equals) as `::`.
 */
function compressed(groups: readonly number[]): string {
  let best = { start: 0, length: 1 }
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && groups[end] === 0) end += 1
    if (end - start > best.length) best = { start, length: end - start }
  }
  const text = (part: readonly number[]) => part.map(group => group.toString(16)).join(':')
  if (best.length < 2) return text(groups)
  return `${text(groups.slice(0, best.start))}::${text(groups.slice(best.start + best.length))}`
}

/**
 * The bytes to announce for a host: 4 for IPv4 and for IPv4-mapped text, 16 for IPv6; null if the
 * text is neither. Names are not resolved here.
 */
export function addressBytesOf(host: string): Uint8Array | null {
  const v4 = parseV4(host)
  if (v4 !== null) return v4
  const v6 = parseV6(host)
  if (v6 === null) return null
  return mappedPrefix.every((value, index) => v6[index] === value) ? v6.slice(12) : v6
}

function parseV4(text: string): Uint8Array | null {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => /^(0|[1-9]\d{0,2})$/.test(part))) return null
  const numbers = parts.map(Number)
  return numbers.every(number => number <= 255) ? Uint8Array.from(numbers) : null
}

function parseV6(text: string): Uint8Array | null {
  const zone = text.indexOf('%')
  const plain = zone < 0 ? text : text.slice(0, zone)
  const halves = plain.split('::')
  if (halves.length > 2) return null
  const head = parseGroups(halves[0]!, halves.length === 1)
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : []
  if (head === null || tail === null) return null
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array<number>(missing).fill(0), ...tail]
  return Uint8Array.from(groups.flatMap(group => [group >> 8, group & 0xff]))
}

/** Groups of one half, dotted IPv4 at the end of the last half taken as two; null if malformed. */
function parseGroups(text: string, isLast: boolean): number[] | null {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const v4 = isLast && index === parts.length - 1 ? parseV4(part) : null
    if (v4 === null) return null
    groups.push(v4[0]! * 256 + v4[1]!, v4[2]! * 256 + v4[3]!)
  }
  return groups
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
