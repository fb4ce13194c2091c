/** Between configuration, proxy and metrics: the same things in each one's own shape. Pure. */
import type { SidecarConfig } from '../config/sidecar-config.js'
import type { CidrSet } from '../limiter/cidr.js'
import type { ProxyOptions, UpstreamTarget } from '../proxy/options.js'

type ProxyConfig = NonNullable<SidecarConfig['proxy']>

export function proxyOptions(
  config: ProxyConfig,
  headers: SidecarConfig['headers'],
  trusted: CidrSet,
): ProxyOptions {
  return {
    listen: config.listen,
    upstream: upstreamTarget(config.upstream),
    trusts: address => trusted.contains(address),
    headers,
  }
}

function upstreamTarget({ protocol, address }: ProxyConfig['upstream']): UpstreamTarget {
  return address.kind === 'unix'
    ? { kind: 'unix', path: address.path }
    : { kind: protocol, host: address.host, port: address.port }
}
