/**
 * Which counters have something to tell, and how soon (counters.md §4). A request only marks its
 * counter; the replicator empties the lists. A counter stands at most once on each list.
 */
import { bucketFamily } from './family.js'
import type { Levels } from './levels.js'
import type { SlotColumns } from './slot-columns.js'

/** Unpublished consumption matters to the others now. */
export const urgentList = 0
/** Shares or usage moved: within `soonMs`. */
export const soonList = 1
/** Long windows: within `slowMs`, so that a quota survives the loss of any pod. */
export const slowList = 2
/** Totals of others that this pod was asked to hand on. */
export const relayList = 3
/** Published and quiet since: to be said again. */
export const repeatList = 4
const listCount = 5

/** From here on a window is a quota that must not be lost with a pod, milliseconds. */
const longWindowMs = 60_000

class SlotList {
  readonly slots: Int32Array
  count = 0
  /** When the oldest mark was made, monotonic; Infinity for an empty list. */
  sinceMs = Number.POSITIVE_INFINITY

  constructor(slotsMax: number) {
    this.slots = new Int32Array(slotsMax)
  }
}

export class SendQueue {
  /** Pods that share the counters, own included; 1: nobody to tell. */
  pods = 1
  readonly #slots: SlotColumns
  readonly #levels: Levels
  readonly #lists: readonly SlotList[]
  readonly #room = new Float64Array(1)

  constructor(parts: { readonly slots: SlotColumns; readonly levels: Levels }) {
    this.#slots = parts.slots
    this.#levels = parts.levels
    const slotsMax = parts.slots.slotsMax
    this.#lists = Array.from({ length: listCount }, () => new SlotList(slotsMax))
  }

  count(list: number): number {
    return (this.#lists[list] as SlotList).count
  }

  sinceMs(list: number): number {
    return (this.#lists[list] as SlotList).sinceMs
  }

  mark(slot: number, list: number, monotonicMs: number): void {
    const bit = 1 << list
    const queue = this.#slots.queue
    if ((queue[slot] as number) & bit) return
    queue[slot] = (queue[slot] as number) | bit
    const target = this.#lists[list] as SlotList
    if (target.count === 0) target.sinceMs = monotonicMs
    target.slots[target.count++] = slot
  }

  isMarked(slot: number, list: number): boolean {
    return ((this.#slots.queue[slot] as number) & (1 << list)) !== 0
  }

  /**
   * Moves a list's oldest slots, at most `countMax`, into `out`; returns how many. What stays is as
   * old as the list was.
   */
  drain(list: number, out: Int32Array, countMax = Number.POSITIVE_INFINITY): number {
    const source = this.#lists[list] as SlotList
    const keep = ~(1 << list)
    const queue = this.#slots.queue
    const count = Math.min(source.count, countMax)
    for (let index = 0; index < count; index++) {
      const slot = source.slots[index] as number
      queue[slot] = (queue[slot] as number) & keep
      out[index] = slot
    }
    source.slots.copyWithin(0, count, source.count)
    source.count -= count
    if (source.count === 0) source.sinceMs = Number.POSITIVE_INFINITY
    return count
  }

  /**
   * After own usage or demand changed: how soon must the others know? `room` is what the fleet has
   * left in this pod's eyes, units, negative in debt.
   */
  note(slot: number, room: number, monotonicMs: number): void {
    this.#room[0] = room
    this.noteListed(slot, this.#room, 0, monotonicMs)
  }

  /** As `note`; the room stands in a list, where the number needs no heap. */
  noteListed(slot: number, rooms: Float64Array, place: number, monotonicMs: number): void {
    const room = rooms[place] as number
    const slots = this.#slots
    const unsent = Math.abs(this.#levels.ownUsage(slot) - (slots.sentUsage[slot] as number))
    const since = slots.dirtySince[slot] as number
    if (unsent > 0 && Number.isNaN(since)) slots.dirtySince[slot] = monotonicMs
    if (this.pods < 2 || (slots.queue[slot] as number) & 1) return
    if (unsent > 0 && unsent > pressureUnits(room, this.pods)) {
      this.mark(slot, urgentList, monotonicMs)
      return
    }
    const capacity = slots.capacity[slot] as number
    if (slots.scarce[slot] === 1 || room < capacity / 2) {
      const demand = slots.ownDemand[slot] as number
      const sent = slots.sentDemand[slot] as number
      if (demand > 2 * sent) this.mark(slot, urgentList, monotonicMs)
      else if (slots.scarce[slot] === 1 || Math.abs(demand - sent) > 0.1 * sent) {
        this.mark(slot, soonList, monotonicMs)
      }
    }
    if (unsent > 0.01 * capacity) this.mark(slot, soonList, monotonicMs)
    else if (unsent > 0 && this.#isLong(slot)) this.mark(slot, slowList, monotonicMs)
  }

  #isLong(slot: number): boolean {
    const slots = this.#slots
    const period = slots.periodMs[slot] as number
    if (slots.family[slot] !== bucketFamily) return period >= longWindowMs
    return period >= 1000 || period * (slots.capacity[slot] as number) >= longWindowMs
  }
}

/**
 * Unpublished units above which a counter is due at once: a tenth of a pod's even part of what is
 * left.
 */
export function pressureUnits(room: number, pods: number): number {
  return room > 0 ? (0.1 * room) / pods : 0
}
