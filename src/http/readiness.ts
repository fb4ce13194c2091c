/** When the pod may be sent traffic (product.md §6, §8). */
import type { Clock } from '../ports.js'

export interface ReadinessPorts {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The first state pull is done. */
  readonly synced: () => boolean
}

export interface ReadinessOptions {
  /** How long the first state pull may hold readiness back, from construction, in ms. */
  readonly syncTimeoutMs: number
}

export const readinessDefaults: ReadinessOptions = { syncTimeoutMs: 2_000 }

/** Null: yes. Otherwise the reason why not, for people. */
export type NotYet = string | null

export class Readiness {
  readonly #ports: ReadinessPorts
  readonly #readyAnywayAtMs: number
  #listening = false
  #rulesSettled = false
  #draining = false

  constructor(ports: ReadinessPorts, options: ReadinessOptions = readinessDefaults) {
    this.#ports = ports
    this.#readyAnywayAtMs = ports.clock.monotonicMs() + options.syncTimeoutMs
  }

  /** All listeners are up. */
  listenersUp(): void {
    this.#listening = true
  }

  /** Rules are loaded, or failed and the process goes on without. */
  rulesSettled(): void {
    this.#rulesSettled = true
  }

  /** From now on the pod asks for no new traffic; it goes on serving what comes. */
  startDraining(): void {
    this.#draining = true
  }

  get draining(): boolean {
    return this.#draining
  }

  startup(): NotYet {
    if (!this.#listening) return 'listeners are not up yet'
    return this.#rulesSettled ? null : 'rules are not loaded yet'
  }

  ready(): NotYet {
    if (this.#draining) return 'draining'
    const startup = this.startup()
    if (startup !== null) return startup
    if (this.#ports.synced()) return null
    if (this.#ports.clock.monotonicMs() >= this.#readyAnywayAtMs) return null
    return 'waiting for the first state from a peer'
  }
}
