/** What is valid in the sidecar file and yet surprises later. Each code is in docs/config.md. */
import { parseCidr } from '../limiter/cidr.js'
import type { Reporter } from './locator.js'
import { isWildcard } from './sidecar-checks.js'
import type { ListenAddress, SidecarConfig } from './sidecar-config.js'

/** Shorter prefixes hold a good part of all addresses: nobody owns a /7 of proxies. */
const trustBitsMin = { 4: 8, 6: 16 } as const

export function reportSidecarSurprises(config: SidecarConfig, report: Reporter): void {
  config.proxy?.trustedProxies.forEach((text, index) => {
    const network = parseCidr(text)
    if (network === null || network.prefixBits >= trustBitsMin[network.address.family]) return
    const message = `X-Forwarded-For of all in ${text} is believed: clients choose their address`
    report.warning(['proxy', 'trustedProxies', index], 'trusts-everyone', message)
  })
  if (config.counters.secret === null) {
    const message = 'counter hashes are keyed by the gossip label, which is no secret'
    report.warning(['counters'], 'counters-secret-derived', message)
  }
  const { bind, encryptionKeys } = config.gossip
  if (encryptionKeys.length === 0 && !isLoopback(bind.host)) {
    const message = 'gossip is neither encrypted nor authenticated: anybody near can change counts'
    report.warning(['gossip'], 'gossip-plain', message)
  }
  const { static: seeds, dns, kubernetes } = config.discovery
  if (seeds.length === 0 && dns === null && kubernetes === null) {
    const message = 'no discovery: this sidecar finds no peers and holds each limit alone'
    report.warning(['discovery'], 'no-discovery', message)
  }
  for (const section of ['api', 'admin'] as const) {
    if (!isExposed(config[section].listen)) continue
    const message = `${section} has no authentication and listens beyond this pod`
    report.warning([section, 'listen'], `${section}-exposed`, message)
  }
}

function isExposed(address: ListenAddress): boolean {
  return address.kind === 'tcp' && !isLoopback(address.host)
}

function isLoopback(host: string): boolean {
  return !isWildcard(host) && (host === 'localhost' || host === '::1' || host.startsWith('127.'))
}
