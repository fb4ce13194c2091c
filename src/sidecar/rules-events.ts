/**
 * Tells invalid rules where operators look: as a Kubernetes Event, on the ConfigMap that is watched
 * or on the pod that reads a mounted one. Needs the right to create events; without it a log line
 * says so once, and metric and log have to do.
 */
import { type KubeApi, KubeError } from '../discovery/kube-api.js'
import type { ObjectReference } from './config-map-source.js'

export interface RulesEventsOptions {
  readonly about: () => Promise<ObjectReference>
  /** Which pod says so. */
  readonly node: string
}

export interface RulesEventsPorts {
  readonly api: Pick<KubeApi, 'post'>
  readonly wallMs: () => number
  readonly warn: (text: string) => void
}

/** Most characters of a message; the API takes 1024. */
const messageCharsMax = 1_000
/** Object names have at most 253 characters. */
const nameCharsMax = 230
const digestChars = 16

export class RulesEvents {
  readonly #options: RulesEventsOptions
  readonly #ports: RulesEventsPorts
  #told: string | null = null
  #warned = false

  constructor(options: RulesEventsOptions, ports: RulesEventsPorts) {
    this.#options = options
    this.#ports = ports
  }

  /** Once for the same content, however often it is refused. Never rejects. */
  async refused(digest: string, errors: readonly string[]): Promise<void> {
    if (digest === this.#told) return
    this.#told = digest
    try {
      const about = await this.#options.about()
      const path = `/api/v1/namespaces/${encodeURIComponent(about.namespace)}/events`
      await this.#ports.api.post(path, this.#event(about, digest, errors))
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      // Another pod of the fleet has told of the same content.
      if (error.failure === 'conflict' || this.#warned) return
      this.#warned = true
      this.#ports.warn(`no Event could be created: ${error.message}`)
    }
  }

  /** Named for its content: a fleet of a thousand pods makes one Event of one mistake. */
  #event(about: ObjectReference, digest: string, errors: readonly string[]): unknown {
    const now = new Date(this.#ports.wallMs()).toISOString()
    const text = `invalid rules, those in force stay: ${errors.join('; ')}`
    const name = `${about.name.slice(0, nameCharsMax)}.${digest.slice(0, digestChars)}`
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: about.namespace },
      involvedObject: about,
      type: 'Warning',
      reason: 'InvalidRules',
      message: text.slice(0, messageCharsMax),
      source: { component: 'grapevine', host: this.#options.node },
      reportingComponent: 'grapevine.dev/sidecar',
      reportingInstance: this.#options.node,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    }
  }
}
