/**
 * Every counter this pod knows: found by rule identity and key text, or by the 64-bit id that pods
 * use between them. Fixed size, allocated once; when it is full only counters that are back to
 * untouched make room. Holds usage and says how much of it there is; the limiter decides, the
 * replicator sends.
 */
import { assert } from '../lib/assert.js'
import { bucketTat, bucketUsed } from '../lib/bucket-level.js'
import type { CounterFamily, CounterShape, OriginId } from '../vocabulary.js'
import { CounterIds, counterIdText, longKeyDigest, parseCounterId } from './counter-id.js'
import { type CounterPart, counterParts } from './counter-parts.js'
import { Demand, type DemandNumbers } from './demand.js'
import { DepartureSweep } from './departures.js'
import { Eviction } from './eviction.js'
import { bucketFamily, familyCode, gaugeFamily, logFamily } from './family.js'
import { KeyIndex, TextHash } from './key-index.js'
import { LevelForecast } from './level-forecast.js'
import { Levels } from './levels.js'
import { OriginEntries } from './origin-entries.js'
import { OriginRegistry, originDeparted } from './origin-registry.js'
import { Overshoot } from './overshoot.js'
import { SendQueue } from './send-queue.js'
import { ShapeList } from './shape-list.js'
import { SlicePool } from './slice-pool.js'
import { SlotColumns } from './slot-columns.js'
import { divideUsage, type FleetView, splitFraction, wholeFleet } from './split.js'

/**
 * Others' entries kept at most: so many for each key, as most keys are touched by few pods, but a
 * small table too may have a thousand that every pod touches. Untouched memory is not resident.
 */
const entriesPerKey = 8
const entriesMin = 65_536

export interface CounterTableOptions {
  /** Counters tracked exactly, 1..16777216. */
  readonly keysMax: number
  /** Secret of the counter ids; null: derived from `label`. */
  readonly secret: Uint8Array | null
  readonly label: string
  /** 8 random bytes for the local hash. */
  readonly seed: Uint8Array
}

/** Longest key text that is kept as it is, characters: a header may not fill the memory. */
const keyLengthMax = 256

export class CounterTable {
  readonly slots: SlotColumns
  readonly entries: OriginEntries
  readonly origins = new OriginRegistry()
  readonly shapes = new ShapeList()
  readonly slices: SlicePool
  readonly levels: Levels
  readonly demand: Demand
  readonly forecast: LevelForecast
  readonly queue: SendQueue
  readonly overshoot = new Overshoot()
  readonly eviction: Eviction
  readonly departures: DepartureSweep
  /** Times no place could be found for a counter. */
  tableFull = 0
  #fleet: FleetView = wholeFleet
  readonly #ids: CounterIds
  readonly #hash: TextHash
  /** The slot that was opened last: the next request is often of the same key. */
  #lastOpened = -1
  readonly #byText: KeyIndex
  readonly #byId: KeyIndex
  readonly #identities = new Map<string, number>()
  readonly #identityTexts: string[] = []

  constructor(options: CounterTableOptions) {
    const { keysMax } = options
    this.slots = new SlotColumns(keysMax)
    this.entries = new OriginEntries(Math.max(entriesMin, keysMax * entriesPerKey))
    this.slices = new SlicePool(Math.max(4096, keysMax * 2))
    this.levels = new Levels(this)
    this.demand = new Demand(this)
    this.forecast = new LevelForecast(this)
    this.queue = new SendQueue(this)
    this.eviction = new Eviction(this)
    this.departures = new DepartureSweep(this)
    this.#ids = new CounterIds(options.secret, options.label)
    this.#hash = new TextHash(options.seed)
    this.seed = new DataView(options.seed.buffer, options.seed.byteOffset).getUint32(4)
    this.#byText = new KeyIndex(keysMax, this.slots.textHash)
    this.#byId = new KeyIndex(keysMax, this.slots.idLo)
  }

  get fleet(): FleetView {
    return this.#fleet
  }

  set fleet(fleet: FleetView) {
    this.#fleet = fleet
  }

  /** Random 32 bits of this process. */
  readonly seed: number
  /** Whose own totals these are; set by the replicator. */
  self = -1
  /** The node that speaks for an origin; set by the replicator. */
  nodeOf: (origin: OriginId) => string | null = () => null
  /** Typical age of other pods' news, milliseconds; the replicator keeps it up to date. */
  lagMs = 2

  get pods(): number {
    return this.queue.pods
  }

  get splitSinceMs(): number {
    return this.#fleet.splitSinceMs
  }

  used(slot: number, monotonicMs: number, wallMs: number): number {
    return this.levels.used(slot, monotonicMs, wallMs)
  }

  readRoom(
    slot: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
    wallMs: number,
  ): void {
    this.levels.readRoom(slot, rooms, place, monotonicMs, wallMs)
  }

  ownUsage(slot: number): number {
    return this.levels.ownUsage(slot)
  }

  offer(slot: number, units: number, monotonicMs: number): void {
    this.demand.offer(slot, units, monotonicMs)
  }

  readDemand(slot: number, othersAtMs: number, monotonicMs: number, into: DemandNumbers): void {
    this.demand.read(slot, othersAtMs, monotonicMs, into)
  }

  readSurge(slot: number, monotonicMs: number, into: DemandNumbers): void {
    this.demand.readSurge(slot, monotonicMs, into)
  }

  consume(slot: number, units: number, monotonicMs: number, wallMs: number): void {
    this.levels.consume(slot, units, monotonicMs, wallMs)
  }

  giveBack(slot: number, units: number, monotonicMs: number, wallMs: number): number {
    return this.levels.giveBack(slot, units, monotonicMs, wallMs)
  }

  noteChange(slot: number, rooms: Float64Array, place: number, monotonicMs: number): void {
    this.queue.noteListed(slot, rooms, place, monotonicMs)
  }

  hasSurplus(slot: number): boolean {
    return this.slots.family[slot] === bucketFamily
  }

  isWindow(slot: number): boolean {
    const family = this.slots.family[slot]
    return family !== bucketFamily && family !== gaugeFamily
  }

  familyOf(slot: number): CounterFamily {
    return this.shapes.at(this.slots.shape[slot] as number).family
  }

  /** A small number for a rule's identity text; the same for the same text, across reloads. */
  identityOf(text: string): number {
    let identity = this.#identities.get(text)
    if (identity === undefined) {
      identity = this.#identityTexts.push(text) - 1
      this.#identities.set(text, identity)
    }
    return identity
  }

  shapeOf(shape: CounterShape): number {
    return this.shapes.numberOf(shape)
  }

  /**
   * The slot of a key, asked for here or heard of; -1 when this pod does not know it. Changes
   * nothing.
   */
  find(identity: number, text: string): number {
    const key = text.length > keyLengthMax ? longKeyDigest(text) : text
    const slot = this.#findText(this.#hash.of(identity, key), identity, key)
    if (slot >= 0) return slot
    const { hi, lo } = this.#ids.of(this.#identityTexts[identity] as string, key)
    const heard = this.findById(hi, lo)
    return heard >= 0 && this.slots.identity[heard] === -1 ? heard : -1
  }

  /**
   * The slot of a key, found or made, with `shape` in force; -1 when the table is full of counters
   * that may not go.
   */
  open(identity: number, text: string, shape: number, monotonicMs: number, wallMs: number): number {
    const last = this.#lastOpened
    const { slots } = this
    if (last >= 0 && slots.identity[last] === identity && slots.key[last] === text) {
      this.touch(last, shape, monotonicMs, wallMs)
      return last
    }
    const key = text.length > keyLengthMax ? longKeyDigest(text) : text
    const hash = this.#hash.of(identity, key)
    let slot = this.#findText(hash, identity, key)
    if (slot < 0) slot = this.#adopt(hash, identity, key, shape, monotonicMs, wallMs)
    if (slot >= 0) this.touch(slot, shape, monotonicMs, wallMs)
    this.#lastOpened = slot
    return slot
  }

  /** The slot of an id that a peer named, found or made. */
  openById(hi: number, lo: number, shape: number, monotonicMs: number, wallMs: number): number {
    let slot = this.findById(hi, lo)
    if (slot >= 0) {
      const known = this.slots.identity[slot] as number
      // A counter with a local rule keeps the local numbers; another takes the sender's.
      const kept = known >= 0 ? (this.slots.shape[slot] as number) : shape
      if (familyCode(this.shapes.at(shape).family) !== this.slots.family[slot]) return -1
      this.touch(slot, kept, monotonicMs, wallMs)
      return slot
    }
    slot = this.#make(hi, lo, shape, monotonicMs, wallMs)
    return slot
  }

  findById(hi: number, lo: number): number {
    const slots = this.slots
    for (let place = this.#byId.first(lo); ; place = this.#byId.next(place)) {
      const slot = this.#byId.at(place)
      if (slot < 0) return -1
      if (slots.idLo[slot] === lo && slots.idHi[slot] === hi) return slot
    }
  }

  /** Puts the shape and the fleet's present split in force, carrying over what is used. */
  touch(slot: number, shape: number, monotonicMs: number, wallMs: number): void {
    const slots = this.slots
    if (slots.shape[slot] === shape && slots.split[slot] === this.#fleet.number) return
    this.#rebase(slot, shape, monotonicMs, wallMs)
  }

  #findText(hash: number, identity: number, key: string): number {
    const slots = this.slots
    const index = this.#byText
    for (let place = index.first(hash); ; place = index.next(place)) {
      const slot = index.at(place)
      if (slot < 0) return -1
      if (
        slots.textHash[slot] === hash &&
        slots.identity[slot] === identity &&
        slots.key[slot] === key
      ) {
        return slot
      }
    }
  }

  /** First sight of a key here: joins what peers already said of it, or makes a slot. */
  #adopt(
    hash: number,
    identity: number,
    key: string,
    shape: number,
    monotonicMs: number,
    wallMs: number,
  ): number {
    const { hi, lo } = this.#ids.of(this.#identityTexts[identity] as string, key)
    let slot = this.findById(hi, lo)
    if (slot >= 0) {
      const same = this.slots.family[slot] === familyCode(this.shapes.at(shape).family)
      if (!same || this.slots.identity[slot] !== -1) return -1
    } else {
      slot = this.#make(hi, lo, shape, monotonicMs, wallMs)
      if (slot < 0) return -1
    }
    this.slots.identity[slot] = identity
    this.slots.key[slot] = key
    this.slots.textHash[slot] = hash
    this.#byText.insert(slot)
    return slot
  }

  #make(hi: number, lo: number, shape: number, monotonicMs: number, wallMs: number): number {
    let slot = this.slots.take(monotonicMs)
    if (slot < 0) {
      if (this.eviction.freeSlot(monotonicMs, wallMs)) slot = this.slots.take(monotonicMs)
      if (slot < 0) {
        this.tableFull++
        return -1
      }
    }
    const slots = this.slots
    slots.idHi[slot] = hi
    slots.idLo[slot] = lo
    const numbers = this.shapes.at(shape)
    slots.family[slot] = familyCode(numbers.family)
    slots.shape[slot] = shape
    slots.split[slot] = this.#fleet.number
    this.#setNumbers(slot, numbers)
    if (numbers.clock !== null) slots.level[slot] = numbers.clock.idAt(wallMs)
    this.#byId.insert(slot)
    return slot
  }

  #setNumbers(slot: number, shape: CounterShape): void {
    const slots = this.slots
    const fraction = splitFraction(this.#fleet, shape.onPartition)
    const capacity = shape.capacity * fraction
    const isBucket = slots.family[slot] === bucketFamily
    slots.capacity[slot] = capacity
    slots.periodMs[slot] = isBucket ? shape.periodMs / fraction : shape.periodMs
    slots.rate[slot] = isBucket
      ? fraction / shape.periodMs
      : shape.periodMs > 0
        ? capacity / shape.periodMs
        : 0
  }

  #rebase(slot: number, shape: number, monotonicMs: number, wallMs: number): void {
    const slots = this.slots
    const after = this.shapes.at(shape)
    const before = this.shapes.at(slots.shape[slot] as number)
    const used = this.levels.published(slot, monotonicMs, wallMs)
    const wholeRate = slots.family[slot] === bucketFamily ? 1 / before.periodMs : 0
    const fractionBefore = wholeRate > 0 ? (slots.capacity[slot] as number) / before.capacity : 1
    slots.shape[slot] = shape
    slots.split[slot] = this.#fleet.number
    this.#setNumbers(slot, after)
    if (slots.family[slot] === bucketFamily) {
      const fractionAfter = splitFraction(this.#fleet, after.onPartition)
      const carried =
        Math.abs(fractionAfter - fractionBefore) < 1e-9
          ? used
          : divideUsage(slots, slot, {
              used,
              before: fractionBefore,
              after: fractionAfter,
              wholeRate,
              wholeCapacity: before.capacity,
              nowMs: monotonicMs,
            })
      slots.level[slot] = bucketTat(carried, monotonicMs, slots.periodMs[slot] as number)
    } else if (slots.family[slot] === logFamily) {
      // Moments are cut into other slices now: all of them are told again.
      slots.sentAt[slot] = Number.NEGATIVE_INFINITY
    } else if (before.clock !== null && after.clock !== null) {
      const moved =
        before.clock.lengthMs !== after.clock.lengthMs ||
        before.clock.timezone !== after.clock.timezone
      if (moved) this.#moveWindow(slot, after.clock.idAt(wallMs))
    }
  }

  /**
   * The present window's usage enters a window of other length; what came before is left behind.
   */
  #moveWindow(slot: number, id: number): void {
    const { slots, entries } = this
    const present = slots.level[slot] as number
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      entries.mark[entry] = entries.mark[entry] === present ? id : id - 2
      entries.tail[entry] = 0
    }
    slots.level[slot] = id
    slots.previous[slot] = 0
    this.levels.sumOthers(slot)
  }

  idText(slot: number): string {
    return counterIdText(this.slots.idHi[slot] as number, this.slots.idLo[slot] as number)
  }

  findByIdText(text: string): number {
    const id = parseCounterId(text)
    return id === null ? -1 : this.findById(id.hi, id.lo)
  }

  parts(slot: number, monotonicMs: number): CounterPart[] {
    return counterParts(this, slot, monotonicMs)
  }

  countKeys(): readonly number[] {
    const counts = new Array<number>(this.#identityTexts.length).fill(0)
    const { slots } = this
    for (let slot = 0; slot < slots.slotsMax; slot++) {
      const identity = slots.identity[slot] as number
      if (slots.isTaken(slot) && identity >= 0) counts[identity] = (counts[identity] as number) + 1
    }
    return counts
  }

  overshootRatio(identity: number, monotonicMs: number): number {
    return this.overshoot.of(identity, monotonicMs)
  }

  /** After news: how far beyond the limit the fleet has gone, as a part of the limit. */
  noteOvershoot(slot: number, monotonicMs: number): void {
    const { slots } = this
    if (slots.family[slot] !== bucketFamily || (slots.identity[slot] as number) < 0) return
    const capacity = slots.capacity[slot] as number
    const used = bucketUsed(
      slots.level[slot] as number,
      monotonicMs,
      slots.periodMs[slot] as number,
    )
    if (used > capacity)
      this.overshoot.note(slots.identity[slot] as number, used / capacity - 1, monotonicMs)
  }

  forget(slot: number): void {
    const { slots, slices } = this
    if ((slots.identity[slot] as number) >= 0) this.#byText.remove(slot)
    this.#byId.remove(slot)
    this.#releaseEntries(slot)
    this.levels.forget(slot)
    if (slots.family[slot] === logFamily) {
      slices.dropUntil(slots.ownLog[slot] as number, Number.POSITIVE_INFINITY)
      slices.dropUntil(slots.othersLog[slot] as number, Number.POSITIVE_INFINITY)
    }
    slots.release(slot)
  }

  /** Forgets what others said of a counter; nothing of it may be in use. */
  forgetOthers(slot: number, monotonicMs: number): void {
    this.#releaseEntries(slot)
    this.slots.firstEntry[slot] = -1
    this.levels.sumOthers(slot)
    this.demand.sumOthers(slot, monotonicMs)
  }

  #releaseEntries(slot: number): void {
    const { slots, entries, origins, slices } = this
    let entry = slots.firstEntry[slot] as number
    while (entry >= 0) {
      const next = entries.next[entry] as number
      const origin = entries.origin[entry] as number
      origins.entries[origin] = (origins.entries[origin] as number) - 1
      slices.dropUntil(entries.log[entry] as number, Number.POSITIVE_INFINITY)
      entries.release(entry)
      entry = next
    }
  }

  /** A departed origin's demand is gone at once, what it had in flight is free; its usage stays. */
  originDeparted(origin: number, monotonicMs: number): void {
    this.origins.state[origin] = originDeparted
    this.departures.begin(monotonicMs)
  }

  /** Checks that the indexes and lists agree; for tests and simulation. */
  assertInvariants(): void {
    const { slots, entries } = this
    let listed = 0
    let taken = 0
    for (let slot = 0; slot < slots.slotsMax; slot++) {
      if (!slots.isTaken(slot)) continue
      taken++
      const found = this.findById(slots.idHi[slot] as number, slots.idLo[slot] as number)
      assert(found === slot, 'a slot is found by its id')
      const key = slots.key[slot]
      if (typeof key === 'string') {
        const byText = this.find(slots.identity[slot] as number, key)
        assert(byText === slot, 'a slot with a key is found by it')
      }
      let entry = slots.firstEntry[slot] as number
      for (; entry >= 0; entry = entries.next[entry] as number) listed++
    }
    assert(taken === slots.used, 'every slot is taken or free')
    assert(listed === entries.used, 'every entry belongs to one slot')
  }
}
