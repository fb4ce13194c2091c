/**
 * Addresses between sockets and the core: one spelling per host, whichever family a socket has.
 * Knows nothing of members or packets.
 */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Address } from '../vocabulary.js'

const mappedPrefix = '::ffff:'

/** An address as a socket reports it, with an IPv4-mapped host unwrapped and the zone dropped. */
export function fromSocket(host: string | undefined, port: number | undefined): Address {
  return { host: plainHost(host ?? ''), port: port ?? 0 }
}

export function plainHost(host: string): string {
  const zone = host.indexOf('%')
  const bare = zone === -1 ? host : host.slice(0, zone)
  if (!bare.toLowerCase().startsWith(mappedPrefix)) return bare
  const inner = bare.slice(mappedPrefix.length)
  return isIP(inner) === 4 ? inner : bare
}

/** The host as a socket of the given family wants it; null when that family cannot reach it. */
export function hostForFamily(host: string, family: 4 | 6): string | null {
  const kind = isIP(host)
  if (kind === family) return host
  return kind === 4 ? mappedPrefix + host : null
}

export function formatAddress(address: Address): string {
  return address.host.includes(':')
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`
}

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

/**
 * What to advertise when nothing is configured: the bound host if it is one, else this machine's
 * first outward address, private networks first (as memberlist picks it), else loopback.
 */
export function defaultAdvertiseHost(boundHost: string): string {
  if (!isWildcard(boundHost)) return boundHost
  const outward = Object.values(networkInterfaces())
    .flatMap(entries => entries ?? [])
    .filter(entry => !entry.internal && entry.family === 'IPv4')
    .map(entry => entry.address)
  return outward.find(isPrivateIpv4) ?? outward[0] ?? '127.0.0.1'
}

/** RFC 1918 and the shared range of RFC 6598. */
function isPrivateIpv4(host: string): boolean {
  const [first = 0, second = 0] = host.split('.').map(Number)
  return (
    first === 10 ||
    (first === 172 && second >= 16 && second <= 31) ||
    (first === 192 && second === 168) ||
    (first === 100 && second >= 64 && second <= 127)
  )
}
