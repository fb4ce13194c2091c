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

/** Assumed until a round trip was measured, milliseconds. */
const transitMsDefault = 1
/** The longest that news under pressure waits to be sent, milliseconds. */
const batchWaitMsMax = 20
/** Weight of one entry in the average of ages. */
const lagWeight = 0.02
/** News older than this says nothing about the network: somebody stood still, or a split healed. */
const lagMsMax = 1000

export class MessageMerger implements MessageVisitor {
  ignored = 0
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
  #balance = 0
  #ownContained = 0
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

  observeTransitMs(transitMs: number): void {
    if (transitMs >= 0 && transitMs < lagMsMax) this.#transitMs += (transitMs - this.#transitMs) / 8
  }

  /** True when the message was ours and whole. */
  merge(
    bytes: Uint8Array,
    monotonicMs: number,
    wallMs: number,
    { mayHandOn = false, heldMs = 0 }: { mayHandOn?: boolean; heldMs?: number } = {},
  ): boolean {
    this.#monotonicMs = monotonicMs
    this.#wallMs = wallMs
    this.#mayHandOn = mayHandOn
    this.#extraAgeMs = heldMs
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
    if (this.#slot < 0 || used === null) return
    const { slots } = table
    const isNew = slots.firstEntry[this.#slot] === -1
    if (slots.family[this.#slot] !== bucketFamily || !isNew) return
    // A counter that this pod has heard nothing of: the sender's balance holds, its totals are in it.
    this.#adopts = true
    this.#balance = used
    this.#ownContained = 0
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
    if (entry < 0) return
    this.#hasNews = true
    if (this.#handOn) {
      table.entries.relay[entry] = 1
      table.queue.mark(this.#slot, relayList, this.#monotonicMs)
    }
    if (this.#kind === snapshotKind || this.#kind === checkpointKind) return
    // Before it was sent, news that mattered waited for a batch at most.
    const ageMs = wire.holdMs + this.#transitMs + Math.min(wire.spanMs, batchWaitMsMax) / 2
    this.#ages.record(ageMs)
    if (ageMs < lagMsMax) table.lagMs += (ageMs - table.lagMs) * lagWeight
  }

  /** Brings a bucket to the sender's balance, with what that does not contain of own consumption. */
  #adopt(): void {
    const { slots, levels } = this.#table
    const slot = this.#slot
    const unitMs = slots.periodMs[slot] as number
    const most = 2 * (slots.capacity[slot] as number) * unitMs
    const ageMs = this.#transitMs + this.#extraAgeMs
    const theirs = Math.max(0, Math.min(most, this.#balance * unitMs) - ageMs)
    const own = Math.max(0, (slots.level[slot] as number) - this.#monotonicMs)
    const missing = Math.max(0, levels.ownUsage(slot) - this.#ownContained) * unitMs
    const together = theirs + Math.min(own, missing)
    slots.level[slot] = this.#monotonicMs + Math.min(most, Math.max(own, together))
  }

  counterEnd(): void {
    if (this.#slot >= 0 && this.#adopts) this.#adopt()
    if (this.#slot < 0 || !this.#hasNews) return
    this.#table.demand.sumOthers(this.#slot, this.#monotonicMs)
    this.#table.noteOvershoot(this.#slot, this.#monotonicMs)
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
