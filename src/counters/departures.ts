/**
 * Takes what a departed origin was asked for, and what it had in flight, out of every counter's
 * sums. One walk over the table serves any number of departures, and a large table is walked in
 * steps between which requests are answered.
 */
import type { CounterTable } from './counter-table.js'
import { gaugeFamily } from './family.js'
import { originDeparted } from './origin-registry.js'

/** Counters and entries, together, looked at in one step: less than a millisecond's work. */
const workAtOnceMax = 1000
const stepGapMs = 2

export class DepartureSweep {
  readonly #table: CounterTable
  /** Slots that the walk has still to visit. */
  #left = 0
  #hand = 0
  #dueAtMs = Number.POSITIVE_INFINITY

  constructor(table: CounterTable) {
    this.#table = table
  }

  /** An origin has departed: small tables are done at once. */
  begin(monotonicMs: number): void {
    this.#left = this.#table.slots.slotsMax
    this.#dueAtMs = monotonicMs
    this.advance(monotonicMs)
  }

  nextDeadlineMs(): number {
    return this.#dueAtMs
  }

  advance(monotonicMs: number): void {
    if (monotonicMs < this.#dueAtMs) return
    const { slots } = this.#table
    for (let work = 0; this.#left > 0 && work < workAtOnceMax; this.#left--) {
      const slot = this.#hand
      this.#hand = (slot + 1) % slots.slotsMax
      work += slots.isTaken(slot) ? this.#visit(slot, monotonicMs) : 0.1
    }
    this.#dueAtMs = this.#left > 0 ? monotonicMs + stepGapMs : Number.POSITIVE_INFINITY
  }

  #visit(slot: number, monotonicMs: number): number {
    const { slots, entries, origins, demand, levels } = this.#table
    let work = 1
    let hasLost = false
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      work++
      if (origins.state[entries.origin[entry] as number] !== originDeparted) continue
      entries.demand[entry] = 0
      hasLost = true
    }
    if (!hasLost) return work
    demand.sumOthers(slot, monotonicMs)
    if (slots.family[slot] === gaugeFamily) levels.sumOthers(slot)
    return 2 * work
  }
}
