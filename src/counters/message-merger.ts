/** Reads messages of peers into the table, and learns from them how late news arrives. */
import type { BucketHistogram } from '../lib/bucket-histogram.js'
import {
  checkpointKind,
  forwardFlag,
  type MessageVisitor,
  readMessage,
  snapshotKind,
  type WireEntry,
  type WireShape,
} from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily, familyCode } from './family.js'
import { EntryMerger } from './merge.js'
import { relayList } from './send-queue.js'
import { divideAnew, undividedUsed } from './split.js'

/** Assumed until a round trip was measured, milliseconds. */
const transitMsDefault = 1
/** The longest that news under pressure waits to be sent, milliseconds. */
const batchWaitMsMax = 20
/**
 * What is on its way is accounted for, but how long it takes is known by this much only. So much is
 * no disagreement: milliseconds of the rate, at least some units, or a part of the bucket. It stays
 * below what scarce buckets come to rest at (`restUnits`): a pod that saw less would starve.
 */
const toleranceMs = 5
const toleranceUnits = 0.5
const tolerancePart = 0.01
/**
 * More than this part of a bucket apart is no drift but a pause or a split, whose views must not
 * spread.
 */
const driftPart = 0.1
/** Weight of one entry in the average of ages. */
const lagWeight = 0.02
/** News older than this says nothing about the network: somebody stood still, or a split healed. */
const lagMsMax = 1000

/** Buckets remembered to be told of again; more wait for the next comparison. */
const laggingMax = 16

export class MessageMerger implements MessageVisitor {
  ignored = 0
  /** Buckets that a sender sees far emptier than this pod; cleared when their balance is told. */
  readonly lagging = new Set<number>()
  entriesIn = 0
  readonly #table: CounterTable
  readonly #self: number
  readonly #ages: BucketHistogram
  readonly #merger: EntryMerger
  #transitMs = transitMsDefault
  #monotonicMs = 0
  #wallMs = 0
  #kind = 0
  #handOn = false
  #mayHandOn = false
  #extraAgeMs = 0
  #shape = -1
  #slot = -1
  #adopts = false
  #isPrompt = false
  /** The sender's used units; -1 when it told none that can be compared. */
  #balance = -1
  #ownContained = 0
  #missing = 0
  /** Origins that a sender's balance contains. */
  readonly #contained = new Set<number>()
  #hasNews = false

  constructor(parts: {
    readonly table: CounterTable
    readonly self: number
    readonly ageHistogram: BucketHistogram
  }) {
    this.#table = parts.table
    this.#self = parts.self
    this.#ages = parts.ageHistogram
    this.#merger = new EntryMerger(parts.table)
  }

  get implausible(): number {
    return this.#merger.implausible
  }

  /** Entries for which there was no room. */
  get refused(): number {
    return this.#merger.refused
  }

  observeTransitMs(transitMs: number): void {
    if (transitMs >= 0 && transitMs < lagMsMax) this.#transitMs += (transitMs - this.#transitMs) / 8
  }

  /**
   * True when the message was ours and whole. `isPrompt`: it came in one packet, so it is as old as
   * the way took. What comes through a stream may have waited for seconds to be sent again, which
   * nobody can tell, and a balance would be taken for so much emptier than it is.
   */
  merge(
    bytes: Uint8Array,
    monotonicMs: number,
    wallMs: number,
    options: { mayHandOn?: boolean; heldMs?: number; isPrompt?: boolean } = {},
  ): boolean {
    this.#monotonicMs = monotonicMs
    this.#wallMs = wallMs
    this.#mayHandOn = options.mayHandOn ?? false
    this.#extraAgeMs = options.heldMs ?? 0
    this.#isPrompt = options.isPrompt ?? false
    const implausible = this.#merger.implausible
    const result = readMessage(bytes, this)
    if (result !== 'ok' || this.#merger.implausible > implausible) this.ignored++
    return result === 'ok'
  }

  header(kind: number, flags: number): void {
    this.#kind = kind
    this.#handOn = this.#mayHandOn && (flags & forwardFlag) !== 0
  }

  clock(wallMs: number): void {
    if (this.#kind === checkpointKind) this.#extraAgeMs = Math.max(0, this.#wallMs - wallMs)
  }

  shape(shape: WireShape): boolean {
    const { family, calendar, capacity, periodMs } = shape
    this.#shape = this.#table.shapes.numberOfWire(family, calendar, capacity, periodMs)
    return this.#shape >= 0
  }

  counter(idHi: number, idLo: number, used: number | null): void {
    const table = this.#table
    this.#slot = table.openById(idHi, idLo, this.#shape, this.#monotonicMs, this.#wallMs)
    this.#adopts = false
    this.#hasNews = false
    this.#balance = -1
    if (this.#slot < 0 || used === null) return
    const { slots, shapes } = table
    if (slots.family[this.#slot] !== bucketFamily) return
    // A counter that this pod has heard nothing of: the sender's balance holds, its totals are in
    // it.
    this.#adopts = slots.firstEntry[this.#slot] === -1
    const own = shapes.at(slots.shape[this.#slot] as number)
    const theirs = shapes.at(this.#shape)
    const isSame = own.capacity === theirs.capacity && own.periodMs === theirs.periodMs
    if (this.#adopts || (isSame && this.#isPrompt)) this.#balance = used
    this.#ownContained = 0
    this.#missing = 0
    this.#contained.clear()
  }

  entry(wire: WireEntry): void {
    if (this.#slot < 0) return
    this.entriesIn++
    const table = this.#table
    const origin = table.origins.numberOf(wire.originHi, wire.originLo)
    if (origin === this.#self && wire.epoch === table.slots.epoch[this.#slot]) {
      this.#ownContained = wire.consumed - wire.returned
    }
    if (origin < 0 || origin === this.#self) return
    this.#place(wire)
    const transitMs = this.#transitMs + this.#extraAgeMs
    const entry = this.#merger.merge(
      this.#slot,
      wire,
      origin,
      transitMs,
      !this.#adopts,
      this.#monotonicMs,
      this.#wallMs,
    )
    if (this.#balance >= 0 && !this.#adopts) {
      this.#missing += this.#unheard(wire, origin)
      this.#contained.add(origin)
    }
    if (this.#handOn) this.#promise(origin)
    if (entry < 0) return
    this.#hasNews = true
    if (this.#kind === snapshotKind || this.#kind === checkpointKind) return
    // Before it was sent, news that mattered waited for a batch at most.
    const ageMs = wire.holdMs + this.#transitMs + Math.min(wire.spanMs, batchWaitMsMax) / 2
    this.#ages.record(ageMs)
    if (ageMs < lagMsMax) table.lagMs += (ageMs - table.lagMs) * lagWeight
  }

  /** What this pod was asked to hand on it hands on, even if it knew: its successors may not. */
  #promise(origin: number): void {
    const { slots, entries, queue } = this.#table
    const entry = entries.find(slots.firstEntry[this.#slot] as number, origin)
    if (entry < 0) return
    entries.relay[entry] = 1
    queue.mark(this.#slot, relayList, this.#monotonicMs)
  }

  /** What this pod knows of an origin's usage beyond what a sender told. */
  #unheard(wire: WireEntry, origin: number): number {
    const { slots, entries } = this.#table
    const entry = entries.find(slots.firstEntry[this.#slot] as number, origin)
    if (entry < 0 || entries.epoch[entry] !== wire.epoch) return 0
    const known = (entries.consumed[entry] as number) - (entries.returned[entry] as number)
    return Math.max(0, known - (wire.consumed - wire.returned))
  }

  /**
   * Compares a bucket with a sender's balance, as old as it is and with what it does not contain,
   * and takes the emptier of both: views that drifted apart come together, and never at the limit's
   * expense.
   */
  #compare(): void {
    const { slots, levels, shapes } = this.#table
    const slot = this.#slot
    // What waited in the sockets during a stall is of unknown age, and not all of it has been read.
    if (!this.#adopts && levels.isCatchingUp(this.#monotonicMs)) return
    const { capacity, periodMs } = shapes.at(slots.shape[slot] as number)
    const ageMs = this.#transitMs + this.#extraAgeMs
    const theirs = Math.max(0, Math.min(2 * capacity, this.#balance) - ageMs / periodMs)
    const own = levels.published(slot, this.#monotonicMs, this.#wallMs)
    const unsent = Math.max(0, levels.ownUsage(slot) - this.#ownContained)
    const unheard = this.#missing + Math.min(own, unsent)
    // Two that have not heard of each other for long compare nothing: a split or a pause lies
    // between them.
    if (!this.#adopts && unheard > capacity / 4) return
    const used = theirs + unheard
    const tolerance = this.#adopts ? 0 : toleranceOf(capacity, periodMs)
    const whole = { used: own, wholeRate: 1 / periodMs, wholeCapacity: capacity }
    const apart = used - undividedUsed(slots, slot, whole, this.#monotonicMs)
    const isFarFuller = -apart > Math.max(driftPart * capacity, tolerance)
    if (isFarFuller && !this.#adopts) this.#followFuller(used, capacity)
    if (apart <= tolerance) return
    if (!this.#adopts && apart > driftPart * capacity) {
      if (this.lagging.size < laggingMax) this.lagging.add(slot)
      return
    }
    divideAnew(slots, slot, { ...whole, used: Math.min(used, 2 * capacity) }, this.#monotonicMs)
  }

  /**
   * Far apart are views of which one heard late: the refill of a bucket that looked full was lost
   * on it, and what it heard then is charged on top. So the fuller view is the right one, the more
   * as whoever holds it admits by it already; the other would be denied for as long as the key is
   * contested.
   */
  #followFuller(used: number, capacity: number): void {
    const { slots, fleet } = this.#table
    if (fleet.visible < fleet.known || !this.#containsAll(capacity)) return
    divideAnew(slots, this.#slot, { used, wholeCapacity: capacity }, this.#monotonicMs)
  }

  /** Whether a sender knows of every origin whose use may still matter in a bucket. */
  #containsAll(capacity: number): boolean {
    const { slots, entries } = this.#table
    const matterMs = 2 * capacity * (slots.periodMs[this.#slot] as number)
    let entry = slots.firstEntry[this.#slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      if (this.#contained.has(entries.origin[entry] as number)) continue
      if (this.#monotonicMs - (entries.publishedAt[entry] as number) < matterMs) return false
    }
    return true
  }

  counterEnd(): void {
    if (this.#slot < 0) return
    if (this.#balance >= 0) this.#compare()
    if (!this.#hasNews) return
    this.#table.demand.sumOthers(this.#slot, this.#monotonicMs)
    this.#table.noteOvershoot(this.#slot, this.#monotonicMs)
    this.#speakUp()
  }

  /** What could wait while there was plenty may matter now that others have taken so much. */
  #speakUp(): void {
    const { slots, levels, queue } = this.#table
    if (Number.isNaN(slots.dirtySince[this.#slot])) return
    const used = levels.published(this.#slot, this.#monotonicMs, this.#wallMs)
    queue.note(this.#slot, (slots.capacity[this.#slot] as number) - used, this.#monotonicMs)
  }

  /** A window of other length than this pod's: what is in it now belongs to the present window. */
  #place(wire: WireEntry): void {
    const { slots, shapes } = this.#table
    const own = slots.shape[this.#slot] as number
    if (own === this.#shape) return
    const theirs = shapes.at(this.#shape)
    const ours = shapes.at(own)
    if (ours.clock === null || theirs.clock === null) return
    if (familyCode(theirs.family) !== slots.family[this.#slot]) return
    if (theirs.clock.lengthMs === ours.clock.lengthMs) return
    const present = ours.clock.idAt(this.#wallMs)
    const isPresent = wire.mark >= theirs.clock.idAt(this.#wallMs)
    wire.mark = isPresent ? present : Math.max(0, present - 2)
    wire.tail = 0
  }
}

function toleranceOf(capacity: number, periodMs: number): number {
  return Math.max(toleranceUnits, tolerancePart * capacity, toleranceMs / periodMs)
}
