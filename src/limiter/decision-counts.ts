/** How often each rule decided what, per interface; plain numbers that an exporter reads. */
import type { DecisionInterface } from '../vocabulary.js'

const results = ['allowed', 'denied', 'shadow_denied', 'delayed'] as const
const interfaces = ['proxy', 'check', 'auth'] as const

export const resultAllowed = 0
export const resultDenied = 1
export const resultShadowDenied = 2
export const resultDelayed = 3

export type DecisionTable = Readonly<
  Record<(typeof results)[number], Readonly<Record<DecisionInterface, number>>>
>

export class DecisionCounts {
  readonly #counts = new Float64Array(results.length * interfaces.length)

  count(result: number, via: DecisionInterface): void {
    const place = via === 'proxy' ? 0 : via === 'check' ? 1 : 2
    const index = result * interfaces.length + place
    this.#counts[index] = (this.#counts[index] as number) + 1
  }

  /** Every result and interface, at 0 from the start. */
  view(): DecisionTable {
    const row = (result: number) => ({
      proxy: this.#counts[result * 3] as number,
      check: this.#counts[result * 3 + 1] as number,
      auth: this.#counts[result * 3 + 2] as number,
    })
    return { allowed: row(0), denied: row(1), shadow_denied: row(2), delayed: row(3) }
  }
}
