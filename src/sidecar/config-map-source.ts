/**
 * `rulesFrom`: rules in the `*.yaml` entries of a ConfigMap, watched through the API, so that an
 * edit arrives in a moment and not when the kubelet next looks. Needs the rights to get, list and
 * watch that one ConfigMap (`resourceNames`).
 */
import { filesMax, type Snapshot, snapshotOf } from '../config/snapshot.js'
import { KubeError } from '../discovery/kube-api.js'
import { Reflector, type ReflectorPorts, type ReflectorStats } from '../discovery/reflector.js'
import { fieldsOf } from '../lib/untrusted.js'
import type { RulesSource } from './rules-source.js'

export interface ConfigMapSourceOptions {
  readonly configMap: string
  /** Null: the pod's own. */
  readonly namespace: string | null
  /** Told of trouble with the API; the rules in force stay. */
  readonly failed: (text: string) => void
}

/** What an Event has to say about the object it is about. */
export interface ObjectReference {
  readonly apiVersion: 'v1'
  readonly kind: 'ConfigMap' | 'Pod'
  readonly name: string
  readonly namespace: string
  readonly uid?: string
}

/** How long a start, or whoever asked for a reload, waits for the API, in milliseconds. */
const readTimeoutMs = 3_000

export class ConfigMapSource implements RulesSource {
  readonly name: string
  readonly #options: ConfigMapSourceOptions
  readonly #ports: ReflectorPorts
  readonly #reflector: Reflector
  #uid: string | null = null

  constructor(options: ConfigMapSourceOptions, ports: ReflectorPorts) {
    const { configMap } = options
    this.name = `configmap ${configMap}`
    this.#options = options
    this.#ports = ports
    this.#reflector = new Reflector(
      {
        resource: 'configmaps',
        path: async () =>
          `/api/v1/namespaces/${encodeURIComponent(await this.#namespace())}/configmaps`,
        // By name, so that a Role that names this one object is enough.
        query: { fieldSelector: `metadata.name=${configMap}` },
        objectsMax: 1,
      },
      ports,
    )
  }

  async read(): Promise<Snapshot> {
    const { configMap } = this.#options
    const late = AbortSignal.timeout(readTimeoutMs)
    try {
      const folder = `/api/v1/namespaces/${encodeURIComponent(await this.#namespace())}/configmaps`
      const path = `${folder}/${encodeURIComponent(configMap)}`
      return this.#snapshot(await this.#ports.api.get(path, {}, late))
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (error.failure === 'missing') return this.#snapshot(null)
      const reason = late.aborted ? `no answer within ${readTimeoutMs} ms` : error.message
      return snapshotOf([], `${this.name} cannot be read: ${reason}`)
    }
  }

  /** To be called once. */
  watch(onChange: (snapshot: Snapshot) => void): { close(): void } {
    this.#reflector.start({
      changed: ([object]) => onChange(this.#snapshot(object ?? null)),
      failed: text => this.#options.failed(text),
    })
    return { close: () => this.#reflector.stop() }
  }

  /** The ConfigMap, as an Event refers to it. */
  async reference(): Promise<ObjectReference> {
    const uid = this.#uid === null ? {} : { uid: this.#uid }
    const { configMap: name } = this.#options
    return { apiVersion: 'v1', kind: 'ConfigMap', name, namespace: await this.#namespace(), ...uid }
  }

  stats(): ReflectorStats {
    return this.#reflector.stats()
  }

  async #namespace(): Promise<string> {
    return this.#options.namespace ?? (await this.#ports.api.namespace())
  }

  #snapshot(object: unknown): Snapshot {
    if (object === null) return snapshotOf([], `${this.name} does not exist`)
    const { data, metadata } = fieldsOf(object)
    const { uid } = fieldsOf(metadata)
    this.#uid = typeof uid === 'string' ? uid : null
    const files = Object.entries(fieldsOf(data))
      .filter(([key, text]) => /^[^.].*\.ya?ml$/.test(key) && typeof text === 'string')
      .map(([key, text]) => ({ name: `${this.name} (${key})`, text: text as string }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    if (files.length === 0) return snapshotOf([], `${this.name} has no entry *.yaml`)
    if (files.length > filesMax) {
      return snapshotOf([], `${this.name} has more than ${filesMax} entries`)
    }
    return snapshotOf(files, null)
  }
}
