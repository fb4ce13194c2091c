/** `discovery.dns`: every address behind one name, a headless Service as a rule. */
import type { Discovery } from './discovery.js'
import { type Lookup, NameDiscovery, systemLookup } from './name-lookup.js'

/** `port` is the gossip port all pods share: DNS gives addresses only. */
export function dnsDiscovery(name: string, port: number, lookup: Lookup = systemLookup): Discovery {
  return new NameDiscovery(`dns ${name}`, [{ host: name, port }], { lookup })
}
