/**
 * IP addresses and networks: strict parsing, canonical text, grouping, membership.
 * Knows nothing of requests or rules. IPv4 is read by hand because it is on the decision path;
 * IPv6 is left to ipaddr.js (see docs/decisions/0003-ipaddr-in-the-core.md).
 */
import ipaddr from 'ipaddr.js'

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
  if (text.length > 64 || !text.includes(':')) return null
  const hex = withHexTail(text)
  if (hex === null || !ipaddr.IPv6.isValid(hex)) return null
  const words = ipaddr.IPv6.parse(hex).parts
  if (isMapped(words)) return { family: 4, word: words[6]! * 65536 + words[7]! }
  return { family: 6, words }
}

/** `::ffff:192.0.2.7` as `::ffff:c000:207`: ipaddr.js would take `::192.0.2.7` for the same address. */
function withHexTail(text: string): string | null {
  const zone = text.indexOf('%')
  const bare = zone < 0 ? text : text.slice(0, zone)
  if (!bare.includes('.')) return bare
  const tail = bare.lastIndexOf(':') + 1
  const word = parseIpv4(bare.slice(tail))
  if (word < 0) return null
  return `${bare.slice(0, tail)}${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`
}

function isMapped(words: readonly number[]): boolean {
  return words.slice(0, 5).every(word => word === 0) && words[5] === 0xffff
}

/** The canonical text of an address: dotted IPv4, or RFC 5952 IPv6. Null when it is no address. */
export function canonicalIp(text: string): string | null {
  const bits = parseIp(text)
  return bits === null ? null : formatIp(bits)
}

function formatIp(bits: IpBits): string {
  if (bits.family === 4) return formatIpv4(bits.word)
  return new ipaddr.IPv6([...bits.words]).toRFC5952String()
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
  const network = { family: 6, words: maskWords(bits.words, ipv6ClientBits) } as const
  return `${formatIp(network)}/${ipv6ClientBits}`
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
