/**
 * How much of a counter the fleet has used, as this pod sees it: one arithmetic per family over the
 * same columns. Own consumption shows at once, others' when news brings it. Nothing here decides or
 * sends.
 */
import { bucketCharged, bucketUsed } from '../lib/bucket-level.js'
import type { WindowClock } from '../lib/window-clock.js'
import { bucketFamily, fixedFamily, gaugeFamily, logFamily, slicesPerWindow } from './family.js'
import type { OriginEntries } from './origin-entries.js'
import { type OriginRegistry, originDeparted } from './origin-registry.js'
import type { ShapeList } from './shape-list.js'
import type { SlicePool } from './slice-pool.js'
import type { SlotColumns } from './slot-columns.js'

/** A log keeps single moments up to this fraction of its window apart only when there are many. */
const ownLogNodesMin = 256

/** A bucket that was full for so long is taken to be full for everybody: news takes less time. */
const untouchedMs = 1000

/** After a stall, what was told meanwhile is read and told again within this, milliseconds. */
const catchUpMs = 300
/** Buckets whose refill of a stall is remembered; beyond them news is charged as if it were new. */
const catchUpSlotsMax = 4096

/** A wall clock is slewed by less than this between two requests; more is a step. */
const clockStepMs = 1000

export class Levels {
  readonly #slots: SlotColumns
  readonly #entries: OriginEntries
  readonly #origins: OriginRegistry
  readonly #shapes: ShapeList
  readonly #slices: SlicePool
  /** Units that were owed beyond the bound and are not collected any more. */
  debtForgiven = 0
  /** The latest stall of this process: since when, and until when its news is being read. */
  #stalledAtMs = Number.NEGATIVE_INFINITY
  #catchUpUntilMs = Number.NEGATIVE_INFINITY
  /** Refill of the stall that own consumption passed over, milliseconds, by slot. */
  readonly #passedOver = new Map<number, number>()
  // What was found last: a number with a fraction that a function returns may need the heap.
  #units = Number.NaN
  #leaving = Number.NaN
  /** What `findGone` found. */
  gone = Number.NaN

  constructor(parts: {
    readonly slots: SlotColumns
    readonly entries: OriginEntries
    readonly origins: OriginRegistry
    readonly shapes: ShapeList
    readonly slices: SlicePool
  }) {
    this.#slots = parts.slots
    this.#entries = parts.entries
    this.#origins = parts.origins
    this.#shapes = parts.shapes
    this.#slices = parts.slices
  }

  /**
   * This process stood still between the two. What others used meanwhile is read only now, though
   * the bucket was refilled while they used it.
   */
  stalled(sinceMs: number, monotonicMs: number): void {
    // One that stands still again before it has read everything has been still since the first.
    if (!this.isCatchingUp(monotonicMs)) this.#stalledAtMs = sinceMs
    this.#catchUpUntilMs = monotonicMs + catchUpMs
    this.#passedOver.clear()
  }

  /** Since a stall, not everything that others told meanwhile may have been read. */
  isCatchingUp(monotonicMs: number): boolean {
    return monotonicMs < this.#catchUpUntilMs
  }

  /** Units in use now, reservations included; may exceed the capacity (a debt), never negative. */
  used(slot: number, monotonicMs: number, wallMs: number): number {
    this.#findUnits(slot, monotonicMs, wallMs)
    return this.#units + (this.#slots.reserved[slot] as number)
  }

  /** Puts the units that are left now into a list. Negative: a debt. */
  readRoom(
    slot: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
    wallMs: number,
  ): void {
    this.#findUnits(slot, monotonicMs, wallMs)
    const slots = this.#slots
    const used = this.#units + (slots.reserved[slot] as number)
    rooms[place] = (slots.capacity[slot] as number) - used
  }

  /** As `used`, without the reservations of requests in flight. */
  published(slot: number, monotonicMs: number, wallMs: number): number {
    this.#findUnits(slot, monotonicMs, wallMs)
    return this.#units
  }

  #findUnits(slot: number, monotonicMs: number, wallMs: number): void {
    const slots = this.#slots
    if (slots.family[slot] !== bucketFamily) {
      this.#findCounted(slot, wallMs)
      return
    }
    const unitMs = slots.periodMs[slot] as number
    const used = bucketUsed(slots.level[slot] as number, monotonicMs, unitMs)
    const usedMax = 2 * (slots.capacity[slot] as number)
    this.#units = Math.min(used, usedMax)
    if (used <= usedMax) return
    // More than a debt can be: the clock went back, or the limit fell. Neither may shut for long.
    this.debtForgiven += used - usedMax
    slots.level[slot] = monotonicMs + usedMax * unitMs
  }

  /** What a gauge, a log or a window counts. */
  #findCounted(slot: number, wallMs: number): void {
    const slots = this.#slots
    const family = slots.family[slot] as number
    if (family === logFamily) {
      this.#dropOld(slot, wallMs)
      this.#findLeaving(slot, wallMs)
      const others = (slots.othersUsed[slot] as number) - this.#leaving
      this.#units = Math.max(0, (slots.previous[slot] as number) + others)
      return
    }
    if (family !== gaugeFamily) this.roll(slot, this.clock(slot).idAt(wallMs))
    const present = this.ownUsage(slot) + (slots.othersUsed[slot] as number)
    this.#units = Math.max(0, present)
    if (family === gaugeFamily || family === fixedFamily) return
    const clock = this.clock(slot)
    const elapsedMs = wallMs - clock.startMs(wallMs)
    const lengthMs = clock.endMs(wallMs) - clock.startMs(wallMs)
    const before = (slots.previous[slot] as number) + (slots.othersPrevious[slot] as number)
    const bounded = Math.min(before, 2 * (slots.capacity[slot] as number))
    this.#units = Math.max(0, slidingUsage(bounded, present, elapsedMs, lengthMs))
  }

  clock(slot: number): WindowClock {
    return this.#shapes.clock(this.#slots.shape[slot] as number)
  }

  /** Own usage as it is published: of the epoch, or of the present window. */
  ownUsage(slot: number): number {
    return (this.#slots.consumed[slot] as number) - (this.#slots.returned[slot] as number)
  }

  /** Takes `units` > 0. */
  consume(slot: number, units: number, monotonicMs: number, wallMs: number): void {
    const slots = this.#slots
    const family = slots.family[slot] as number
    if (family === bucketFamily) {
      const isCatchingUp = this.isCatchingUp(monotonicMs)
      if (isCatchingUp) this.#passOver(slot, monotonicMs)
      const fullUntilMs = isCatchingUp ? this.#stalledAtMs : monotonicMs
      if ((slots.level[slot] as number) <= fullUntilMs - untouchedMs) {
        slots.fullBase[slot] = this.ownUsage(slot)
        slots.fullAt[slot] = monotonicMs
      }
      this.chargeBucket(slot, units, monotonicMs, monotonicMs)
    } else if (family === logFamily) {
      this.#dropOld(slot, wallMs)
      const length = slots.periodMs[slot] as number
      const fine = (slots.capacity[slot] as number) <= ownLogNodesMin
      const resolutionMs = fine ? 0 : length / ownLogNodesMin
      slots.ownLog[slot] = this.#slices.append(
        slots.ownLog[slot] as number,
        wallMs,
        units,
        resolutionMs,
      )
      slots.previous[slot] = (slots.previous[slot] as number) + units
    } else if (family !== gaugeFamily) {
      this.roll(slot, this.clock(slot).idAt(wallMs))
    }
    slots.consumed[slot] = (slots.consumed[slot] as number) + units
  }

  /** Gives up to `units` > 0 back, never beyond untouched; returns what was given back. */
  giveBack(slot: number, units: number, monotonicMs: number, wallMs: number): number {
    const slots = this.#slots
    const family = slots.family[slot] as number
    let given = Math.min(units, this.published(slot, monotonicMs, wallMs))
    if (family === bucketFamily) {
      const back = given * (slots.periodMs[slot] as number)
      slots.level[slot] = (slots.level[slot] as number) - back
    } else if (family === logFamily) {
      given = this.#slices.giveBack(slots.ownLog[slot] as number, given)
      slots.previous[slot] = (slots.previous[slot] as number) - given
    } else if (family === gaugeFamily) {
      given = Math.min(given, Math.max(0, this.ownUsage(slot)))
    }
    slots.returned[slot] = (slots.returned[slot] as number) + given
    return given
  }

  /**
   * Charges a bucket as of an earlier moment; a debt beyond one capacity is forgiven and counted.
   */
  chargeBucket(slot: number, units: number, asOfMs: number, monotonicMs: number): void {
    const slots = this.#slots
    const unitMs = slots.periodMs[slot] as number
    const asOf = Math.min(asOfMs, monotonicMs)
    let level = bucketCharged(slots.level[slot] as number, asOf, units, unitMs)
    const latest = monotonicMs + 2 * (slots.capacity[slot] as number) * unitMs
    if (level > latest) {
      this.debtForgiven += (level - latest) / unitMs
      level = latest
    }
    slots.level[slot] = level
  }

  /** As `chargeBucket`, for units that others used: what they took during a stall was refilled. */
  chargeNews(slot: number, units: number, asOfMs: number, monotonicMs: number): void {
    if (!this.isCatchingUp(monotonicMs) || units <= 0) {
      this.chargeBucket(slot, units, asOfMs, monotonicMs)
      return
    }
    const unitMs = this.#slots.periodMs[slot] as number
    const passedOverMs = this.#passedOver.get(slot) ?? 0
    const refilled = Math.min(units, passedOverMs / unitMs)
    if (refilled > 0) this.#passedOver.set(slot, passedOverMs - refilled * unitMs)
    const left = units - refilled
    if (left > 0) this.chargeBucket(slot, left, Math.min(asOfMs, this.#stalledAtMs), monotonicMs)
  }

  /** Own consumption is as of now: the refill that it leaves behind still pays for others' news. */
  #passOver(slot: number, monotonicMs: number): void {
    const level = this.#slots.level[slot] as number
    if (level >= monotonicMs || this.#passedOver.size >= catchUpSlotsMax) return
    const refillMs = monotonicMs - Math.max(level, this.#stalledAtMs)
    this.#passedOver.set(slot, (this.#passedOver.get(slot) ?? 0) + refillMs)
    this.#slots.level[slot] = monotonicMs
  }

  /** The slot is given up. */
  forget(slot: number): void {
    this.#passedOver.delete(slot)
  }

  /** Enters the window `id`: the present one becomes the one before if it is the neighbour. */
  roll(slot: number, id: number): void {
    const slots = this.#slots
    const present = slots.level[slot] as number
    if (id === present) return
    // A clock that steps back a little stays in its window; one that jumps begins anew.
    if (id === present - 1) return
    slots.previous[slot] = id === present + 1 ? this.ownUsage(slot) : 0
    slots.consumed[slot] = 0
    slots.returned[slot] = 0
    slots.sentUsage[slot] = 0
    slots.dirtySince[slot] = Number.NaN
    slots.level[slot] = id
    this.sumOthers(slot)
  }

  /** Adds up what others used; after a window ended, an origin departed, or a shape changed. */
  sumOthers(slot: number): void {
    const slots = this.#slots
    const entries = this.#entries
    const family = slots.family[slot] as number
    if (family === bucketFamily || family === logFamily) return
    const id = slots.level[slot] as number
    let present = 0
    let before = 0
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      if (family === gaugeFamily) present += this.gaugePart(entry)
      else {
        present += this.windowPart(entry, id)
        before += this.windowPart(entry, id - 1)
      }
    }
    slots.othersUsed[slot] = present
    slots.othersPrevious[slot] = before
  }

  /** What an origin has in flight; a departed one holds nothing. */
  gaugePart(entry: number): number {
    const entries = this.#entries
    const origin = entries.origin[entry] as number
    if (this.#origins.state[origin] === originDeparted) return 0
    return Math.max(0, (entries.consumed[entry] as number) - (entries.returned[entry] as number))
  }

  /** What an origin used in window `id`, as far as its latest totals tell. */
  windowPart(entry: number, id: number): number {
    const entries = this.#entries
    const mark = entries.mark[entry] as number
    if (mark === id) {
      return (entries.consumed[entry] as number) - (entries.returned[entry] as number)
    }
    return mark === id + 1 ? (entries.tail[entry] as number) : 0
  }

  /**
   * A wall clock that was set back would keep a log's moments for as long as it went back. The own
   * ones move with it, the newest to now; other pods' slices are dropped, their next news brings
   * them again.
   */
  #followClock(slot: number, lengthMs: number, wallMs: number): void {
    const slots = this.#slots
    const slices = this.#slices
    const own = slots.ownLog[slot] as number
    const aheadMs = own < 0 ? 0 : (slices.time[own] as number) - wallMs
    if (aheadMs > clockStepMs) slices.shift(own, -aheadMs)
    const others = slots.othersLog[slot] as number
    if (others < 0 || (slices.time[others] as number) <= wallMs + lengthMs + clockStepMs) return
    slots.othersLog[slot] = slices.dropUntil(others, Number.POSITIVE_INFINITY)
    slots.othersUsed[slot] = 0
    const entries = this.#entries
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      entries.log[entry] = slices.dropUntil(entries.log[entry] as number, Number.POSITIVE_INFINITY)
    }
  }

  /**
   * What of others' oldest slice has left the window: when exactly its moments were nobody knows,
   * so it goes evenly.
   */
  #findLeaving(slot: number, wallMs: number): void {
    const slices = this.#slices
    const list = this.#slots.othersLog[slot] as number
    this.#leaving = 0
    if (list < 0) return
    const oldest = slices.first(list)
    this.findGone(slot, oldest, wallMs)
    this.#leaving = slices.net(oldest) * this.gone
  }

  /** Finds which part of a slice of others' log has left the window, 0..1. */
  findGone(slot: number, slice: number, wallMs: number): void {
    const lengthMs = this.#slots.periodMs[slot] as number
    this.gone = sliceGone(this.#slices.time[slice] as number, lengthMs, wallMs)
  }

  #dropOld(slot: number, wallMs: number): void {
    const slots = this.#slots
    const slices = this.#slices
    const length = slots.periodMs[slot] as number
    this.#followClock(slot, length, wallMs)
    const own = slots.ownLog[slot] as number
    if (own >= 0 && (slices.time[slices.first(own)] as number) <= wallMs - length) {
      slots.ownLog[slot] = slices.dropUntil(own, wallMs - length)
      const left = (slots.previous[slot] as number) + slices.gained
      slots.previous[slot] = slots.ownLog[slot] === -1 ? 0 : left
    }
    const others = slots.othersLog[slot] as number
    if (others < 0) return
    // A slice counts until its last moment has left the window.
    const gone = wallMs - length - length / slicesPerWindow
    if ((slices.time[slices.first(others)] as number) > gone) return
    slots.othersLog[slot] = slices.dropUntil(others, gone)
    const left = (slots.othersUsed[slot] as number) + slices.gained
    slots.othersUsed[slot] = slots.othersLog[slot] === -1 ? 0 : left
  }
}

/** The part of a slice, 0..1, that has left a window of `lengthMs`; `time`: its beginning. */
export function sliceGone(time: number, lengthMs: number, wallMs: number): number {
  const goneMs = wallMs - lengthMs - time
  return Math.min(1, Math.max(0, (goneMs * slicesPerWindow) / lengthMs))
}

/** Two counters as one sliding window: the window before counts by the part of it still in view. */
export function slidingUsage(
  previous: number,
  present: number,
  elapsedMs: number,
  lengthMs: number,
): number {
  return previous * Math.max(0, 1 - elapsedMs / lengthMs) + present
}
