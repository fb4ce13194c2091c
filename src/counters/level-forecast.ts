/** When a counter will have room again if nobody takes more: for `Retry-After` and reset times. */
import { bucketUsed, bucketWaitMs } from '../lib/bucket-level.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily, fixedFamily, gaugeFamily, logFamily, slicesPerWindow } from './family.js'

/** Nobody knows when requests in flight end. */
const gaugeWaitMs = 1000

/**
 * A decision asks it, and allocates nothing: numbers with fractions go from method to method in
 * fields, as results they may each need a place on the heap.
 */
export class LevelForecast {
  readonly #table: CounterTable
  /** What was looked for last, milliseconds. */
  foundMs = Number.NaN
  /** Of the counter at hand: its limit and what is used of it, units. */
  #capacity = Number.NaN
  #used = Number.NaN
  /** Units of it that have to leave a log. */
  #excess = Number.NaN
  /** Of the window at hand: its length, and what is left of it. */
  #lengthMs = Number.NaN
  #leftMs = Number.NaN
  /** When so much of a log has left as was looked at, wall clock. */
  #goneAtMs = Number.NaN

  constructor(table: CounterTable) {
    this.#table = table
  }

  /**
   * Finds how long it takes until `units` more fit; 0 when they fit now. A cost above the limit
   * never does: Infinity.
   */
  findWait(slot: number, units: number, monotonicMs: number, wallMs: number): void {
    const { slots, levels } = this.#table
    this.#capacity = slots.capacity[slot] as number
    this.#used = levels.used(slot, monotonicMs, wallMs)
    this.foundMs = 0
    if (this.#used + units <= this.#capacity + 1e-9) return
    this.foundMs = Number.POSITIVE_INFINITY
    if (units > this.#capacity) return
    const family = slots.family[slot] as number
    if (family === bucketFamily) {
      const periodMs = slots.periodMs[slot] as number
      this.foundMs = bucketWaitMs(this.#used, this.#capacity, units, periodMs)
    } else if (family === gaugeFamily) {
      this.foundMs = gaugeWaitMs
    } else if (family === logFamily) {
      this.#excess = this.#used + units - this.#capacity
      this.#findLogWait(slot, wallMs)
    } else {
      this.#findWindow(slot, wallMs)
      this.foundMs = this.#leftMs
      if (family !== fixedFamily) this.#findSlidingWait(slot, units)
    }
  }

  /** Finds how long until the counter is untouched again; a fixed window: until it ends. */
  findReset(slot: number, monotonicMs: number, wallMs: number): void {
    const { slots, slices, levels } = this.#table
    const family = slots.family[slot] as number
    const periodMs = slots.periodMs[slot] as number
    this.foundMs = 0
    if (family === gaugeFamily) return
    if (family === bucketFamily) {
      this.foundMs = bucketUsed(slots.level[slot] as number, monotonicMs, periodMs) * periodMs
      return
    }
    if (family === logFamily) {
      const own = slots.ownLog[slot] as number
      const others = slots.othersLog[slot] as number
      const ownMs = own < 0 ? 0 : (slices.time[own] as number) + periodMs - wallMs
      const sliceMs = periodMs / slicesPerWindow
      const othersMs =
        others < 0 ? 0 : (slices.time[others] as number) + periodMs + sliceMs - wallMs
      this.foundMs = Math.max(0, ownMs, othersMs)
      return
    }
    this.#findWindow(slot, wallMs)
    const isUsed = levels.ownUsage(slot) + (slots.othersUsed[slot] as number) > 0
    if (family === fixedFamily) this.foundMs = this.#leftMs
    else if (isUsed) this.foundMs = this.#leftMs + periodMs
    else if (levels.published(slot, monotonicMs, wallMs) > 0) this.foundMs = this.#leftMs
  }

  /** The window that is counted in; after a clock went back a little that is the next one. */
  #findWindow(slot: number, wallMs: number): void {
    const clock = this.#table.levels.clock(slot)
    const isAhead = (this.#table.slots.level[slot] as number) > clock.idAt(wallMs)
    this.#lengthMs = clock.endMs(wallMs) - clock.startMs(wallMs)
    this.#leftMs = clock.endMs(wallMs) - wallMs + (isAhead ? clock.lengthMs : 0)
  }

  /** Until two weighted windows leave room for `units`; > 0. */
  #findSlidingWait(slot: number, units: number): void {
    const { slots, levels } = this.#table
    const present = levels.ownUsage(slot) + (slots.othersUsed[slot] as number)
    const previous = (slots.previous[slot] as number) + (slots.othersPrevious[slot] as number)
    const limit = this.#capacity - (slots.reserved[slot] as number)
    const lengthMs = this.#lengthMs
    if (present + units <= limit) {
      // The part of the window before that may still be in view.
      const inView = previous > 0 ? (limit - present - units) / previous : 1
      this.foundMs = Math.max(0, this.#leftMs - lengthMs * inView)
    } else {
      const inView = present > 0 ? Math.max(0, (limit - units) / present) : 1
      this.foundMs = this.#leftMs + lengthMs * Math.max(0, 1 - inView)
    }
  }

  /** Until the oldest moments that hold the excess have left the window. */
  #findLogWait(slot: number, wallMs: number): void {
    const { slots, slices } = this.#table
    const lengthMs = slots.periodMs[slot] as number
    const sliceMs = lengthMs / slicesPerWindow
    let own = slots.ownLog[slot] as number
    let others = slots.othersLog[slot] as number
    const ownEnd = own
    const othersEnd = others
    if (own >= 0) own = slices.first(own)
    if (others >= 0) others = slices.first(others)
    let left = this.#excess - 1e-9
    this.#goneAtMs = wallMs
    while (left > 0 && (own >= 0 || others >= 0)) {
      const ownAt = own < 0 ? Number.POSITIVE_INFINITY : (slices.time[own] as number) + lengthMs
      const othersAt =
        others < 0 ? Number.POSITIVE_INFINITY : (slices.time[others] as number) + lengthMs + sliceMs
      if (ownAt <= othersAt) {
        this.#goneAtMs = Math.max(this.#goneAtMs, ownAt)
        left -= slices.net(own)
        own = own === ownEnd ? -1 : (slices.next[own] as number)
      } else {
        const time = slices.time[others] as number
        const net = slices.net(others)
        this.#table.levels.findGone(slot, others, wallMs)
        const { gone } = this.#table.levels
        // A slice leaves evenly: not all of it need be gone.
        const needed = net > 0 ? Math.min(1, gone + left / net) : 1
        this.#goneAtMs = Math.max(this.#goneAtMs, time + lengthMs + needed * sliceMs)
        left -= net * (1 - gone)
        others = others === othersEnd ? -1 : (slices.next[others] as number)
      }
    }
    this.foundMs = left > 0 ? lengthMs : Math.max(0, this.#goneAtMs - wallMs)
  }
}
