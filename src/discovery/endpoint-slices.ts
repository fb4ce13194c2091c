/**
 * EndpointSlices to addresses of peers. Pure; reads what the API sent without trusting its shape.
 *
 * A gossip Service publishes pods that are not Ready, and for such a Service `conditions.ready` is
 * always true. `conditions.serving` is the pod's own readiness in any case; it is absent only where
 * an old controller wrote the slice, and absent means "as ready" (discovery.k8s.io/v1).
 */
import { isIP } from 'node:net'
import { fieldsOf, listOf, textOf } from '../lib/untrusted.js'
import type { Address } from '../vocabulary.js'

export interface SlicePeers {
  /** Pods that serve and are not on their way out: who should answer. */
  readonly ready: readonly Address[]
  /** Ready or not, those on their way out left out: worth asking. */
  readonly all: readonly Address[]
  /** Addresses left out because there were too many. */
  readonly dropped: number
}

export interface SliceOptions {
  /** Port of peers whose slice names none for gossip. */
  readonly port: number
  /** Which addresses of dual-stack pods count: those of the family that pods gossip with. */
  readonly family: 4 | 6
}

/** As many members as a fleet is made for, with room for the old ones of a rolling update. */
const addressesMax = 5_000

export function peersOfSlices(slices: readonly unknown[], options: SliceOptions): SlicePeers {
  const all = new Map<string, Address>()
  const ready = new Map<string, Address>()
  let dropped = 0
  for (const slice of slices) {
    const fields = fieldsOf(slice)
    const port = gossipPortOf(fields.ports) ?? options.port
    for (const endpoint of listOf(fields.endpoints)) {
      const { addresses, conditions } = fieldsOf(endpoint)
      const { serving, ready: isReady, terminating } = fieldsOf(conditions)
      // By contract all addresses of an endpoint are one pod's, and only the first is to be used.
      const [host] = listOf(addresses)
      if (typeof host !== 'string' || isIP(host) !== options.family) continue
      if (terminating === true) continue
      const key = `${host} ${port}`
      if (!all.has(key) && all.size >= addressesMax) {
        dropped += 1
        continue
      }
      all.set(key, { host, port })
      // A pod may stand in two slices for a moment; one that knows it Ready is enough.
      if ((serving ?? isReady) !== false) ready.set(key, { host, port })
    }
  }
  return { ready: [...ready.values()], all: [...all.values()], dropped }
}

/** The port named for gossip, else the only one there is; null: the slice does not say. */
function gossipPortOf(ports: unknown): number | null {
  const known = listOf(ports).flatMap(port => {
    const { name, port: number } = fieldsOf(port)
    return typeof number === 'number' ? [{ name: textOf(name), number }] : []
  })
  const named = known.find(({ name }) => name.includes('gossip'))
  if (named !== undefined) return named.number
  const numbers = new Set(known.map(({ number }) => number))
  return numbers.size === 1 ? known[0]!.number : null
}
