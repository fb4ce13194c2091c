/** `discovery.static`: a list of addresses, host names among them if need be. */
import type { Address } from '../vocabulary.js'
import type { Discovery } from './discovery.js'
import { type Lookup, NameDiscovery, systemLookup } from './name-lookup.js'

export function staticDiscovery(
  addresses: readonly Address[],
  lookup: Lookup = systemLookup,
): Discovery {
  return new NameDiscovery('static', addresses, { lookup })
}
