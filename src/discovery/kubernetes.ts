/**
 * `discovery.kubernetes`: the pods behind a Service, told by its EndpointSlices as they change.
 * Needs the rights to get, list and watch endpointslices in one namespace, and no other.
 */
import type { Discovery, DiscoveryListener } from './discovery.js'
import { peersOfSlices, type SliceOptions } from './endpoint-slices.js'
import { Reflector, type ReflectorPorts, type ReflectorStats } from './reflector.js'

export interface KubernetesDiscoveryOptions extends SliceOptions {
  readonly service: string
  /** Null: the pod's own. */
  readonly namespace: string | null
}

/** A slice holds a hundred endpoints as a rule, of one family. */
const slicesMax = 256

export class KubernetesDiscovery implements Discovery {
  readonly name: string
  readonly #options: KubernetesDiscoveryOptions
  readonly #reflector: Reflector
  #dropped = 0

  constructor(options: KubernetesDiscoveryOptions, ports: ReflectorPorts) {
    const { service, namespace } = options
    this.name = `kubernetes ${namespace === null ? service : `${namespace}/${service}`}`
    this.#options = options
    this.#reflector = new Reflector(
      {
        resource: 'endpointslices',
        path: async api => {
          const own = encodeURIComponent(namespace ?? (await api.namespace()))
          return `/apis/discovery.k8s.io/v1/namespaces/${own}/endpointslices`
        },
        query: { labelSelector: `kubernetes.io/service-name=${service}` },
        objectsMax: slicesMax,
      },
      ports,
    )
  }

  /** Where the API says nothing, nothing is reported and all stays as it was. */
  start(listener: DiscoveryListener): void {
    this.#reflector.start({
      changed: slices => {
        const { ready, all, dropped } = peersOfSlices(slices, this.#options)
        this.#dropped += dropped
        listener.found({ seeds: all, expected: ready })
      },
      failed: text => listener.failed({ source: this.name, text }),
    })
  }

  stop(): void {
    this.#reflector.stop()
  }

  stats(): ReflectorStats {
    const stats = this.#reflector.stats()
    return { ...stats, ignored: stats.ignored + this.#dropped }
  }
}
