/**
 * Who makes room when a table is full: only what is back to untouched may go, so that nothing is
 * handed out by forgetting it (counters.md §6). Two hands go round the slots, one for counters and
 * one for what other pods said of them; each looks at a few and gives up.
 */
import type { CounterTable } from './counter-table.js'
import { bucketFamily, gaugeFamily } from './family.js'
import { relayList } from './send-queue.js'

/** A full table looks at this many slots for one that may go before it gives up. */
const slotLooksMax = 64
/** The same for entries, which come in thousands a second; a find frees those of a whole fleet. */
const entryLooksMax = 16
/**
 * So long a bucket must have been untouched: by then each pod counts its usage anew, and what it
 * says next holds nothing that was charged before.
 */
const settledMs = 1000

export class Eviction {
  /** Counters that gave their place to new ones. */
  counters = 0
  /** Entries of other pods that gave their place to new ones. */
  entries = 0
  readonly #table: CounterTable
  #counterHand = 0
  #entryHand = 0

  constructor(table: CounterTable) {
    this.#table = table
  }

  /** Forgets one counter that is back to untouched, if a few looks find one. */
  freeSlot(monotonicMs: number, wallMs: number): boolean {
    const { slots } = this.#table
    for (let look = 0; look < slotLooksMax; look++) {
      const slot = this.#counterHand
      this.#counterHand = (slot + 1) % slots.slotsMax
      if (!slots.isTaken(slot) || !this.#mayGo(slot, monotonicMs, wallMs)) continue
      this.counters++
      this.#table.forget(slot)
      return true
    }
    return false
  }

  /** Forgets what others said of one counter that is back to untouched, if a few looks find one. */
  freeEntries(monotonicMs: number, wallMs: number): boolean {
    const table = this.#table
    const { slots, entries } = table
    for (let look = 0; look < entryLooksMax; look++) {
      const slot = this.#entryHand
      this.#entryHand = (slot + 1) % slots.slotsMax
      if (!slots.isTaken(slot) || slots.firstEntry[slot] === -1) continue
      if (!this.#isSettled(slot, monotonicMs, wallMs)) continue
      const before = entries.used
      table.forgetOthers(slot, monotonicMs)
      this.entries += before - entries.used
      return true
    }
    return false
  }

  /** Nothing used, nothing in flight, nothing to tell: forgetting it hands nothing out. */
  #mayGo(slot: number, monotonicMs: number, wallMs: number): boolean {
    const { slots } = this.#table
    if ((slots.reserved[slot] as number) > 0 || slots.queue[slot] !== 0) return false
    if ((slots.repeats[slot] as number) > 0) return false
    if (!this.#isUntouched(slot, monotonicMs, wallMs)) return false
    if (slots.family[slot] !== bucketFamily && slots.family[slot] !== gaugeFamily) return true
    // A gauge's own totals stay while peers could still count it in flight.
    return monotonicMs - (slots.sentAt[slot] as number) > settledMs
  }

  #isUntouched(slot: number, monotonicMs: number, wallMs: number): boolean {
    const { slots, levels } = this.#table
    if (levels.published(slot, monotonicMs, wallMs) > 0) return false
    const family = slots.family[slot]
    if (family === bucketFamily || family === gaugeFamily) return true
    return (slots.previous[slot] as number) + (slots.othersPrevious[slot] as number) <= 0
  }

  /** Untouched, and whatever is said of it next can be charged whole. */
  #isSettled(slot: number, monotonicMs: number, wallMs: number): boolean {
    const { slots, queue } = this.#table
    if (queue.isMarked(slot, relayList) || slots.othersLog[slot] !== -1) return false
    if (!this.#isUntouched(slot, monotonicMs, wallMs)) return false
    if (slots.family[slot] !== bucketFamily) return true
    return (slots.level[slot] as number) <= monotonicMs - settledMs
  }
}
