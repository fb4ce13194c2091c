/**
 * IP addresses and networks: strict parsing, canonical text (RFC 5952), grouping, membership.
 * Knows nothing of requests or rules. Read by hand because it is on the decision path; ipaddr.js is
 * the oracle of its tests (see docs/decisions/0003-ipaddr-in-the-core.md).
 */

/** The bits of an IPv6 address that name one client: a subscriber is usually given a /64. */
export const ipv6ClientBits = 64

/** An address as numbers: one unsigned 32-bit word for IPv4, eight 16-bit words for IPv6. */
export type IpBits =
  | { readonly family: 4; readonly word: number }
  | { readonly family: 6; readonly words: readonly number[] }

/** A network: an address whose host bits are zero, and how many leading bits count. */
export interface Cidr {
  readonly address: IpBits
  /** 0..32 for IPv4, 0..128 for IPv6. */
  readonly prefixBits: number
}

const zero = 48
const nine = 57
const dot = 46

/**
 * Four decimal octets as an unsigned 32-bit number, or -1. Leading zeros, hex and short forms are
 * refused: readers disagree on what they mean.
 */
export function parseIpv4(text: string): number {
  const length = text.length
  if (length < 7 || length > 15) return -1
  let word = 0
  let octet = -1
  let octets = 0
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index)
    if (code === dot) {
      if (octet < 0 || octets === 3) return -1
      word = word * 256 + octet
      octets++
      octet = -1
    } else {
      if (code < zero || code > nine || octet === 0) return -1
      octet = (octet < 0 ? 0 : octet * 10) + (code - zero)
      if (octet > 255) return -1
    }
  }
  return octets === 3 && octet >= 0 ? word * 256 + octet : -1
}

/** The dotted form of an unsigned 32-bit IPv4 address. */
export function formatIpv4(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/**
 * An address in any usual text form, or null. IPv4-mapped IPv6 becomes IPv4 (decided by its bits,
 * so every spelling counts) and a zone id is dropped.
 */
export function parseIp(text: string): IpBits | null {
  const word = parseIpv4(text)
  if (word >= 0) return { family: 4, word }
  if (text.length > ipv6LengthMax || !text.includes(':')) return null
  const hex = withHexTail(text)
  const words = hex === null ? null : parseIpv6(hex)
  if (words === null) return null
  if (isMapped(words)) return { family: 4, word: words[6]! * 65536 + words[7]! }
  return { family: 6, words }
}

/** An address of 45 characters with a dotted tail, and a zone id of a usual length. */
const ipv6LengthMax = 64

/** `::ffff:192.0.2.7` as `::ffff:c000:207`, without its zone; null when the tail is no IPv4. */
function withHexTail(text: string): string | null {
  const zone = text.indexOf('%')
  const bare = zone < 0 ? text : text.slice(0, zone)
  if (!bare.includes('.')) return bare
  const tail = bare.lastIndexOf(':') + 1
  const word = parseIpv4(bare.slice(tail))
  if (word < 0) return null
  return `${bare.slice(0, tail)}${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
}

/** Eight words from groups of hex digits with at most one `::`, which stands for one or more. */
function parseIpv6(text: string): number[] | null {
  const words: number[] = []
  let gap = text.startsWith('::') ? 0 : -1
  let index = gap === 0 ? 2 : 0
  while (index < text.length) {
    const start = index
    let word = 0
    for (; index < text.length && index < start + 5; index++) {
      const digit = hexDigit(text.charCodeAt(index))
      if (digit < 0) break
      word = word * 16 + digit
    }
    if (index === start || index > start + 4 || words.push(word) > 8) return null
    if (index === text.length) break
    // A group is followed by a colon and another group, or by the gap.
    if (text[index] !== ':' || ++index === text.length) return null
    if (text[index] === ':') {
      if (gap >= 0) return null
      gap = words.length
      index++
    }
  }
  if (gap < 0) return words.length === 8 ? words : null
  if (words.length > 7) return null
  words.splice(gap, 0, ...new Array<number>(8 - words.length).fill(0))
  return words
}

function hexDigit(code: number): number {
  if (code >= zero && code <= nine) return code - zero
  const lower = code | 0x20
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

function isMapped(words: readonly number[]): boolean {
  if (words[5] !== 0xffff) return false
  return (words[0]! | words[1]! | words[2]! | words[3]! | words[4]!) === 0
}

/** The canonical text of an address: dotted IPv4, or RFC 5952 IPv6. Null when it is no address. */
export function canonicalIp(text: string): string | null {
  const bits = parseIp(text)
  return bits === null ? null : formatIp(bits)
}

function formatIp(bits: IpBits): string {
  if (bits.family === 4) return formatIpv4(bits.word)
  return formatIpv6(bits.words)
}

/** Lower case, no leading zeros, the first of the longest runs of two or more zeros as `::`. */
function formatIpv6(words: readonly number[]): string {
  let runStart = 0
  let runLength = 1
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && words[end] === 0) end++
    if (end - start > runLength) {
      runStart = start
      runLength = end - start
    }
  }
  const hex = (part: readonly number[]) => part.map(word => word.toString(16)).join(':')
  if (runLength === 1) return hex(words)
  return `${hex(words.slice(0, runStart))}::${hex(words.slice(runStart + runLength))}`
}

/**
 * What stands for a client in an `ip` key: an IPv4 address as it is, an IPv6 one as its /64
 * (`2001:db8:1:2::/64`). Text that is no address is returned unchanged: a unix socket's peer, say.
 */
export function clientGroup(text: string): string {
  if (!text.includes(':')) return text
  const bits = parseIp(text)
  if (bits === null) return text
  if (bits.family === 4) return formatIpv4(bits.word)
  return formatIpv6Group(bits.words)
}

/** The network of the first four words: its zeros at the end are always the longest run. */
function formatIpv6Group(words: readonly number[]): string {
  let last = 3
  while (last >= 0 && words[last] === 0) last--
  let text = ''
  for (let index = 0; index <= last; index++) {
    text += index === 0 ? words[0]!.toString(16) : `:${words[index]!.toString(16)}`
  }
  return `${text}::/${ipv6ClientBits}`
}

/**
 * A network in CIDR form, or a lone address as a network of one; null when it is neither. Host bits
 * are cleared. A network inside ::ffff:0:0/96 becomes its IPv4 network.
 */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf('/')
  const host = slash < 0 ? text : text.slice(0, slash)
  const address = parseIp(host)
  if (address === null || host.includes('%')) return null
  const bitsMax = address.family === 4 ? 32 : 128
  if (slash < 0) return { address, prefixBits: bitsMax }
  const suffix = text.slice(slash + 1)
  if (!/^(0|[1-9]\d{0,2})$/.test(suffix)) return null
  let prefixBits = Number(suffix)
  if (address.family === 4 && host.includes(':')) prefixBits -= 96
  if (prefixBits < 0 || prefixBits > bitsMax) return null
  return { address: maskIp(address, prefixBits), prefixBits }
}

function maskIp(bits: IpBits, prefixBits: number): IpBits {
  if (bits.family === 6) return { family: 6, words: maskWords(bits.words, prefixBits) }
  return { family: 4, word: maskWord(bits.word, prefixBits) }
}

function maskWord(word: number, prefixBits: number): number {
  // A shift by 32 is a shift by 0 in JavaScript, hence the special case.
  return prefixBits === 0 ? 0 : (word & (0xffffffff << (32 - prefixBits))) >>> 0
}

function maskWords(words: readonly number[], prefixBits: number): number[] {
  return words.map((word, index) => {
    const bits = Math.min(16, Math.max(0, prefixBits - index * 16))
    return word & ((0xffff << (16 - bits)) & 0xffff)
  })
}

/** Does `network` hold `bits`? Families never match each other. */
export function cidrContains(network: Cidr, bits: IpBits): boolean {
  const { address, prefixBits } = network
  if (address.family === 4) {
    return bits.family === 4 && maskWord(bits.word, prefixBits) === address.word
  }
  if (bits.family !== 6) return false
  for (let index = 0; index * 16 < prefixBits; index++) {
    const free = Math.max(0, 16 - (prefixBits - index * 16))
    if (bits.words[index]! >> free !== address.words[index]! >> free) return false
  }
  return true
}

/** A fixed list of networks, asked by address text. */
export class CidrSet {
  readonly #networks: readonly Cidr[]
  #lastText = ''
  #lastAnswer = false

  constructor(networks: readonly Cidr[]) {
    this.#networks = networks
  }

  get size(): number {
    return this.#networks.length
  }

  /** False for text that is no address. The last question is remembered: peers come in runs. */
  contains(text: string): boolean {
    if (this.#networks.length === 0) return false
    if (text === this.#lastText) return this.#lastAnswer
    const bits = parseIp(text)
    const answer = bits !== null && this.#networks.some(network => cidrContains(network, bits))
    this.#lastText = text
    this.#lastAnswer = answer
    return answer
  }
}
