/**
 * Whose request is this? The direct peer, unless that is a trusted proxy: then the right-most
 * address of X-Forwarded-For that is not one. Everything to the left of it is hearsay.
 * conventions.md §4; knows nothing of rules.
 */
import { type Cidr, CidrSet, canonicalIp, parseCidr } from '../limiter/cidr.js'

/** What stands for the peer of a unix socket, which has no address. */
export const unixPeer = 'unix'

/** Hops walked at most; a longer chain of trusted proxies is not believed any further. */
const hopsMax = 32

/** The networks of `trustedProxies`; text that is no network is left out (validated earlier). */
export function trustedNetworks(cidrs: readonly string[]): CidrSet {
  return new CidrSet(cidrs.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== null))
}

const loopback = trustedNetworks(['127.0.0.0/8', '::1/128'])

/** A peer on this machine: loopback or a unix socket. `peer` is a socket's remote address. */
export function isLocalPeer(peer: string): boolean {
  return peer === unixPeer || loopback.contains(peer)
}

/** A socket's remote address as text; a unix socket has none. */
export function peerText(remoteAddress: string | undefined): string {
  return remoteAddress === undefined || remoteAddress === '' ? unixPeer : remoteAddress
}

/**
 * The client's address in canonical text, IPv4-mapped addresses as IPv4, zone ids dropped.
 * `trusts` says which hops may be believed; `forwardedFor` is the whole header, its lines joined by
 * commas. An entry that is no address ends the walk at the hop that reported it; when every entry
 * is a trusted proxy, the left-most one is the client.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusts: (address: string) => boolean,
): string {
  let client = canonicalIp(peer) ?? peer
  if (forwardedFor === undefined || !trusts(client)) return client
  let end = forwardedFor.length
  for (let hops = 0; hops < hopsMax && end >= 0; hops++) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
    const entry = addressOf(forwardedFor.slice(comma + 1, end).trim())
    if (entry === null) return client
    client = entry
    if (!trusts(client)) return client
    end = comma
  }
  return client
}

/** The address of one entry, which may carry a port: `192.0.2.1:80`, `[2001:db8::1]:80`. */
function addressOf(entry: string): string | null {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry)
  if (bracketed) return canonicalIp(bracketed[1] ?? '')
  const withPort = /^([\d.]+):\d{1,5}$/.exec(entry)
  return canonicalIp(withPort ? (withPort[1] ?? '') : entry)
}
