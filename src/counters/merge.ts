/**
 * Joins what other origins said with what is known (counters.md §2). Totals are merged by maximum,
 * so loss, repetition and reordering are harmless; what is *new* is then charged to the counter's
 * level: the difference to a known entry as of the time it covers, the whole since its epoch for an
 * unknown one.
 */
import type { WireEntry } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily, gaugeFamily, logFamily } from './family.js'
import { othersPart } from './split.js'

/** After a split this long, an origin's first report tells what the other side used meanwhile. */
const reunionMs = 5000
/** Offers that took longer than this to arrive tell nothing of the last moments, milliseconds. */
const surgeMemoryMs = 150
/** An origin not heard of for longer may have paused, and then begun anew, milliseconds. */
const steadyMs = 300
/** Units that it used steadily are charged as of so long ago at most, milliseconds. */
const lostMs = 150
/** A claim beyond this many capacities plus what could have been refilled is not charged. */
const plausibleCapacities = 4

export class EntryMerger {
  readonly #table: CounterTable
  /** Entries that claimed more than is plausible; the excess was not charged. */
  implausible = 0
  /** Entries for which there was no room: what they tell is not counted here. */
  refused = 0
  /** How late the last merged entry was: since the middle of what it tells, milliseconds. */
  lastAgeMs = 0

  constructor(table: CounterTable) {
    this.#table = table
  }

  /**
   * Merges one entry that took `transitMs` to arrive. `charge` false: the level contains it
   * already. Returns its place when it brought news, else -1. The caller adds up demand afterwards.
   */
  merge(
    slot: number,
    wire: WireEntry,
    origin: number,
    transitMs: number,
    charge: boolean,
    monotonicMs: number,
    wallMs: number,
  ): number {
    const { slots, entries } = this.#table
    let entry = entries.find(slots.firstEntry[slot] as number, origin)
    if (entry < 0) {
      entry = this.#newEntry(slot, origin, monotonicMs, wallMs)
      if (entry < 0) return -1
    }
    if (wire.epoch < (entries.epoch[entry] as number)) return -1
    const publishedAt = monotonicMs - wire.holdMs - transitMs
    this.lastAgeMs = wire.holdMs + transitMs + wire.spanMs
    const family = slots.family[slot] as number
    const isNews =
      family === bucketFamily
        ? this.#mergeBucket(slot, entry, wire, publishedAt, charge, monotonicMs)
        : family === logFamily
          ? this.#mergeLog(slot, entry, wire, wallMs)
          : this.#mergeWindow(slot, entry, wire, wallMs)
    const isKnown = entries.epoch[entry] === wire.epoch
    const offers = wire.offered - (isKnown ? (entries.offered[entry] as number) : 0)
    entries.epoch[entry] = wire.epoch
    if (offers > 0) {
      entries.offered[entry] = wire.offered
      // Buckets do not ask for it, and what stays unwritten takes no memory.
      if (family !== bucketFamily && publishedAt > (slots.othersAskedAt[slot] as number)) {
        slots.othersAskedAt[slot] = publishedAt
      }
      const knownMs = publishedAt - (entries.publishedAt[entry] as number)
      // The first news after a quiet time tells of the last moments alone, however long it was.
      const overMs = isKnown ? Math.min(knownMs, wire.spanMs + wire.holdMs) : wire.mark
      if (charge && overMs < surgeMemoryMs) this.#table.demand.noteSurge(slot, offers, monotonicMs)
    }
    // News about demand is the newest word, not the greatest.
    const isNewer = publishedAt >= (entries.publishedAt[entry] as number) - 1
    const refreshed = isNews || publishedAt > (entries.publishedAt[entry] as number) + 5
    if (isNewer) {
      if (wire.demand >= 0) entries.demand[entry] = wire.demand / 1000
      entries.publishedAt[entry] = publishedAt
    }
    return refreshed ? entry : -1
  }

  #newEntry(slot: number, origin: number, monotonicMs: number, wallMs: number): number {
    const { slots, entries, eviction, origins } = this.#table
    if (entries.isFull && !eviction.freeEntries(monotonicMs, wallMs)) {
      this.refused++
      return -1
    }
    const entry = entries.take(origin, slots.firstEntry[slot] as number)
    slots.firstEntry[slot] = entry
    origins.entries[origin] = (origins.entries[origin] as number) + 1
    return entry
  }

  #mergeBucket(
    slot: number,
    entry: number,
    wire: WireEntry,
    publishedAt: number,
    charge: boolean,
    monotonicMs: number,
  ): boolean {
    const { entries, levels } = this.#table
    const isKnown = entries.epoch[entry] === wire.epoch
    const before = isKnown
      ? (entries.consumed[entry] as number) - (entries.returned[entry] as number)
      : 0
    if (!isKnown) {
      entries.consumed[entry] = 0
      entries.returned[entry] = 0
      entries.offered[entry] = 0
    }
    if (!this.#raise(entry, wire) && isKnown) return false
    const after = (entries.consumed[entry] as number) - (entries.returned[entry] as number)
    const lastHeard = entries.publishedAt[entry] as number
    entries.mark[entry] = publishedAt - wire.mark
    entries.tail[entry] = wire.tail
    if (!charge) return true
    if (isKnown) {
      const units = this.#plausible(slot, after - before, publishedAt - lastHeard)
      const asOfMs = publishedAt - wire.spanMs
      const early = this.#usualSince(entry, units, lastHeard, publishedAt)
      const fromMs = Math.min(asOfMs, Math.max(lastHeard, asOfMs - lostMs))
      if (early > 0) this.#charge(slot, entry, early, fromMs, monotonicMs, lastHeard)
      if (units !== early) this.#charge(slot, entry, units - early, asOfMs, monotonicMs, lastHeard)
      return true
    }
    const whole = Math.min(after, Math.max(0, wire.tail))
    if (whole > 0) {
      const units = this.#plausible(slot, whole, wire.mark)
      levels.chargeNews(slot, units, publishedAt - wire.mark, monotonicMs)
    }
    return true
  }

  /**
   * How many of these units an origin used as steadily as it was asked before, the whole time since
   * it was last heard of: packets that told of them may be lost. All of them charged to the last
   * moments would leave out what was refilled meanwhile, where a small bucket looked full.
   */
  #usualSince(entry: number, units: number, lastHeardMs: number, publishedAt: number): number {
    const sinceMs = publishedAt - lastHeardMs
    if (units <= 0 || sinceMs <= 0 || sinceMs > steadyMs) return 0
    return Math.min(units, (this.#table.entries.demand[entry] as number) * sinceMs)
  }

  /** What an origin may have used in `elapsedMs`, by a generous measure. */
  #plausible(slot: number, units: number, elapsedMs: number): number {
    const { slots } = this.#table
    const refilled = 2 * (slots.rate[slot] as number) * Math.max(0, elapsedMs)
    const most = plausibleCapacities * (slots.capacity[slot] as number) + refilled
    if (units <= most) return units
    this.implausible++
    return most
  }

  #charge(
    slot: number,
    entry: number,
    units: number,
    asOfMs: number,
    monotonicMs: number,
    lastHeardMs: number,
  ): void {
    const { levels, origins, entries, slots, fleet } = this.#table
    const backAt = origins.backAt[entries.origin[entry] as number] as number
    const isReunion = monotonicMs - backAt < reunionMs && lastHeardMs <= backAt
    const isSplit = (slots.splitCapacity[slot] as number) > 0
    const policy = this.#table.shapes.at(slots.shape[slot] as number).onPartition
    if (isReunion && policy === 'open') {
      this.#levelWith(slot, units, monotonicMs - lastHeardMs, monotonicMs)
      return
    }
    const isAcross = isReunion || (policy === 'closed' && fleet.visible < fleet.known)
    if (isSplit && isAcross) {
      const before = othersPart(slots, slot)
      slots.splitUsed[slot] = (slots.splitUsed[slot] as number) + units
      // While the split lasts the others' part is theirs; afterwards it is everybody's.
      const owed = fleet.visible < fleet.known ? 0 : othersPart(slots, slot) - before
      if (owed !== 0) levels.chargeBucket(slot, owed, monotonicMs, monotonicMs)
      return
    }
    if (units !== 0) levels.chargeNews(slot, units, asOfMs, monotonicMs)
  }

  /**
   * Both sides of an open split had the whole bucket: afterwards the emptier view holds for all.
   */
  #levelWith(slot: number, units: number, elapsedMs: number, monotonicMs: number): void {
    const { slots } = this.#table
    const refilled = (slots.rate[slot] as number) * elapsedMs
    const capacity = slots.capacity[slot] as number
    const theirs = Math.min(capacity, Math.max(0, units - refilled))
    const level = monotonicMs + theirs * (slots.periodMs[slot] as number)
    if (level > (slots.level[slot] as number)) slots.level[slot] = level
  }

  /** Per-field maximum; true when something grew. */
  #raise(entry: number, wire: WireEntry): boolean {
    const { entries } = this.#table
    let grew = false
    if (wire.consumed > (entries.consumed[entry] as number)) {
      entries.consumed[entry] = wire.consumed
      grew = true
    }
    if (wire.returned > (entries.returned[entry] as number)) {
      entries.returned[entry] = wire.returned
      grew = true
    }
    return grew
  }

  #mergeWindow(slot: number, entry: number, wire: WireEntry, wallMs: number): boolean {
    const { entries, slots, levels } = this.#table
    const isGauge = slots.family[slot] === gaugeFamily
    if (!isGauge) levels.roll(slot, levels.clock(slot).idAt(wallMs))
    const id = slots.level[slot] as number
    // Clocks differ a little; a window further ahead than the next one is no window of this fleet.
    if (!isGauge && wire.mark > id + 1) {
      this.implausible++
      return false
    }
    const presentBefore = isGauge ? levels.gaugePart(entry) : levels.windowPart(entry, id)
    const earlierBefore = isGauge ? 0 : levels.windowPart(entry, id - 1)
    const isLater =
      wire.epoch > (entries.epoch[entry] as number) || wire.mark > (entries.mark[entry] as number)
    if (!isLater && wire.mark < (entries.mark[entry] as number)) return false
    if (isLater) {
      entries.consumed[entry] = wire.consumed
      entries.returned[entry] = wire.returned
      entries.mark[entry] = wire.mark
      entries.tail[entry] = wire.tail
    } else {
      const grew = this.#raise(entry, wire)
      if (!isGauge && wire.tail > (entries.tail[entry] as number)) entries.tail[entry] = wire.tail
      else if (!grew) return false
    }
    const present = isGauge ? levels.gaugePart(entry) : levels.windowPart(entry, id)
    const earlier = isGauge ? 0 : levels.windowPart(entry, id - 1)
    slots.othersUsed[slot] = (slots.othersUsed[slot] as number) + present - presentBefore
    slots.othersPrevious[slot] = (slots.othersPrevious[slot] as number) + earlier - earlierBefore
    return true
  }

  #mergeLog(slot: number, entry: number, wire: WireEntry, wallMs: number): boolean {
    const { entries, slots, slices } = this.#table
    const periodMs = slots.periodMs[slot] as number
    const isLater = wire.epoch > (entries.epoch[entry] as number)
    // Under another window length the same moments stand in other slices.
    const isRecut = entries.mark[entry] !== wire.mark && (entries.epoch[entry] as number) > 0
    if (isLater || isRecut) this.#forgetLog(slot, entry)
    if (isLater) {
      entries.consumed[entry] = 0
      entries.returned[entry] = 0
    }
    let grew = this.#raise(entry, wire)
    let list = slices.dropUntil(entries.log[entry] as number, wallMs - 2 * periodMs)
    for (let index = 0; index < wire.sliceCount; index++) {
      const time = wire.sliceTime[index] as number
      if (time <= wallMs - 1.1 * periodMs) continue
      if (time > wallMs + periodMs) {
        this.implausible++
        continue
      }
      const added = wire.sliceAdded[index] as number
      list = slices.raise(list, time, added, wire.sliceReturned[index] as number)
      const gained = slices.gained
      if (gained === 0) continue
      grew = true
      slots.othersLog[slot] = slices.change(slots.othersLog[slot] as number, time, gained)
      slots.othersUsed[slot] = (slots.othersUsed[slot] as number) + slices.gained
    }
    entries.log[entry] = list
    entries.mark[entry] = wire.mark
    return grew
  }

  /** Takes an origin's slices out of the sum again. */
  #forgetLog(slot: number, entry: number): void {
    const { entries, slots, slices } = this.#table
    const list = entries.log[entry] as number
    if (list < 0) return
    let node = slices.first(list)
    for (;;) {
      const time = slices.time[node] as number
      const net = -slices.net(node)
      slots.othersLog[slot] = slices.change(slots.othersLog[slot] as number, time, net)
      slots.othersUsed[slot] = (slots.othersUsed[slot] as number) + slices.gained
      if (node === list) break
      node = slices.next[node] as number
    }
    entries.log[entry] = slices.dropUntil(list, Number.POSITIVE_INFINITY)
  }
}
