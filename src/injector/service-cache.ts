/** Services by namespace, asked for at most once in a while, and never waited for for long. */
import type { ServicePorts } from './pod-template.js'

export interface ServiceCachePorts {
  readonly read: (namespace: string) => Promise<readonly ServicePorts[]>
  readonly monotonicMs: () => number
  readonly failed: (error: unknown) => void
}

/** How long an answer is good, in milliseconds; pods of a rollout come in quick succession. */
const freshMs = 10_000
/** Well below the webhook's own timeout of 5 s. */
const waitMs = 1_500
const namespacesMax = 1_000

export class ServiceCache {
  readonly #ports: ServiceCachePorts
  readonly #known = new Map<string, { atMs: number; services: Promise<readonly ServicePorts[]> }>()

  constructor(ports: ServiceCachePorts) {
    this.#ports = ports
  }

  /** Empty when the API does not answer in time: reporting bypasses is a courtesy. */
  async services(namespace: string): Promise<readonly ServicePorts[]> {
    const nowMs = this.#ports.monotonicMs()
    let entry = this.#known.get(namespace)
    if (entry === undefined || nowMs - entry.atMs >= freshMs) {
      if (this.#known.size >= namespacesMax) this.#known.clear()
      entry = { atMs: nowMs, services: this.#ask(namespace) }
      this.#known.set(namespace, entry)
    }
    return await entry.services
  }

  async #ask(namespace: string): Promise<readonly ServicePorts[]> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), waitMs)
    })
    try {
      return await Promise.race([this.#ports.read(namespace), late])
    } catch (error) {
      this.#ports.failed(error)
      return []
    } finally {
      clearTimeout(timer)
    }
  }
}
