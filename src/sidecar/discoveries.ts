/** The ways of finding peers that the configuration asks for. */
import { isIP } from 'node:net'
import type { SidecarConfig } from '../config/sidecar-config.js'
import { gossipPort } from '../config/sidecar-schema.js'
import type { Discovery } from '../discovery/discovery.js'
import { dnsDiscovery } from '../discovery/dns.js'
import { ClusterApi } from '../discovery/kube-api.js'
import { KubernetesDiscovery } from '../discovery/kubernetes.js'
import { staticDiscovery } from '../discovery/static.js'
import { defaultAdvertiseHost } from '../gossip/socket-address.js'
import type { Clock, Random } from '../ports.js'

export interface Discoveries {
  readonly all: readonly Discovery[]
  /** Null: not configured. */
  readonly kubernetes: KubernetesDiscovery | null
}

export function makeDiscoveries(
  config: SidecarConfig,
  ports: { readonly clock: Clock; readonly random: Random },
): Discoveries {
  const { discovery } = config
  const all: Discovery[] = []
  if (discovery.static.length > 0) all.push(staticDiscovery(discovery.static))
  if (discovery.dns !== null) all.push(dnsDiscovery(discovery.dns.host, discovery.dns.port))
  if (discovery.kubernetes === null) return { all, kubernetes: null }
  const { service, namespace } = discovery.kubernetes
  const options = { service, namespace, ...gossipEnd(config) }
  const kubernetes = new KubernetesDiscovery(options, { ...ports, api: new ClusterApi() })
  return { all: [...all, kubernetes], kubernetes }
}

/** How peers, who are configured as this pod is, will advertise themselves. */
function gossipEnd({ gossip }: SidecarConfig): { port: number; family: 4 | 6 } {
  const own = gossip.advertise ?? gossip.bind
  const family = isIP(defaultAdvertiseHost(own.host)) === 6 ? 6 : 4
  return { family, port: own.port || gossip.bind.port || gossipPort }
}
