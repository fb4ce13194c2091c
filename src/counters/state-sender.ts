/**
 * What a push/pull tells. A small table is written at once and is exact. Of a large one some scarce
 * counters are written at once, the rest comes out of parts that are written in turn ahead of time,
 * a fraction of a millisecond each: totals that are some seconds old are as true as ever, and their
 * age travels with them. One state holds what can be written, sealed and opened without making a
 * request wait; the next one goes on where it ended.
 *
 *   slots   0 ..........[oldest part][...][...][newest part] #next ......... slotsMax, then from 0
 *   told                         #told parts ^ the next state begins here
 */
import { MessageWriter, snapshotKind } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import type { OriginNumbers } from './publish.js'
import { writeSnapshot } from './snapshot.js'
import { type BundlePart, writeBundle } from './state-bundle.js'

/** Counters and entries, together, that are written in one go: less than a millisecond's work. */
const atOnceMax = 600
/** The same for a part, which its reader merges in one go. */
const partWork = 200
/** Slots looked at for one part. */
const partSlotsMax = 2000
const partGapMs = 10
/** Rest between two rounds through the table. */
const roundGapMs = 5000
/** A part never gets so long: its work bounds it. */
const partBytesMax = 1 << 20
/** Parts kept ready, all together. */
const keptBytesMax = 8 << 20

interface Part {
  readonly bytes: Uint8Array
  /** First slot. */
  readonly from: number
  readonly writtenAtMs: number
}

export class StateSender {
  readonly #table: CounterTable
  readonly #self: OriginNumbers
  /** Oldest first. */
  readonly #parts: Part[] = []
  #bytes = 0
  /** The slot that the next part begins with. */
  #next = 0
  #dueAtMs = Number.NEGATIVE_INFINITY
  #told = 0
  /** The parts hold the whole table; and, of the round that is under way, so far. */
  #isComplete = false
  #isCompleteSoFar = true

  constructor(table: CounterTable, self: OriginNumbers) {
    this.#table = table
    this.#self = self
  }

  get #isSmall(): boolean {
    return this.#table.slots.used + this.#table.entries.used <= atOnceMax
  }

  /** When the next part is to be written, monotonic; Infinity while the table is small. */
  nextDeadlineMs(): number {
    return this.#isSmall ? Number.POSITIVE_INFINITY : this.#dueAtMs
  }

  advance(monotonicMs: number, wallMs: number): void {
    if (monotonicMs < this.nextDeadlineMs()) return
    const from = this.#next
    const end = this.#partEnd(from)
    while (this.#parts.length > 0 && inRange(this.#parts[0] as Part, from, end)) this.#dropOldest()
    const bytes = this.#write(from, end - from, monotonicMs, wallMs)
    if (bytes !== null) {
      this.#parts.push({ bytes, from, writtenAtMs: monotonicMs })
      this.#bytes += bytes.length
    }
    while (this.#bytes > keptBytesMax) {
      this.#dropOldest()
      this.#isComplete = false
      this.#isCompleteSoFar = false
    }
    const isRound = end === this.#table.slots.slotsMax
    this.#next = isRound ? 0 : end
    this.#dueAtMs = monotonicMs + (isRound ? roundGapMs : partGapMs)
    if (!isRound) return
    this.#isComplete = this.#isCompleteSoFar
    this.#isCompleteSoFar = true
  }

  /** `bytesMax` holds for all of it. */
  state(monotonicMs: number, wallMs: number, bytesMax: number): Uint8Array {
    const { slots } = this.#table
    if (this.#isSmall) {
      const whole = this.#write(0, slots.slotsMax, monotonicMs, wallMs, { bytesMax })
      return whole ?? emptyState()
    }
    const parts: BundlePart[] = []
    const scarce = this.#scarce(monotonicMs, wallMs)
    if (scarce !== null) parts.push({ bytes: scarce, heldMs: 0 })
    let bytes = scarce?.length ?? 0
    const count = this.#parts.length
    let told = 0
    for (; told < count; told++) {
      const part = this.#parts[(this.#told + told) % count] as Part
      bytes += part.bytes.length + 8
      if (bytes > bytesMax) break
      parts.push({ bytes: part.bytes, heldMs: Math.max(0, monotonicMs - part.writtenAtMs) })
    }
    if (parts.length === 0) parts.push({ bytes: emptyState(), heldMs: 0 })
    const reached = this.#told + told
    const ends = !this.#isComplete || reached < count ? 0 : told === count ? 2 : 1
    this.#told = count === 0 ? 0 : reached % count
    return writeBundle(parts, bytesMax, ends)
  }

  /** The scarce counters, as many as can be written at once. */
  #scarce(monotonicMs: number, wallMs: number): Uint8Array | null {
    const { slots } = this.#table
    let work = 0
    const pick = (slot: number) => {
      if (slots.scarce[slot] !== 1 || work >= atOnceMax) return false
      work += this.#workOf(slot)
      return true
    }
    return this.#write(0, slots.slotsMax, monotonicMs, wallMs, { pick })
  }

  /** One for the counter and one for each entry. */
  #workOf(slot: number): number {
    const { slots, entries } = this.#table
    let work = 1
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) work++
    return work
  }

  #partEnd(from: number): number {
    const { slots } = this.#table
    const end = Math.min(slots.slotsMax, from + partSlotsMax)
    let slot = from
    for (let work = 0; slot < end && work < partWork; slot++) {
      if (slots.isTaken(slot)) work += this.#workOf(slot)
    }
    return slot
  }

  #dropOldest(): void {
    const part = this.#parts.shift() as Part
    this.#bytes -= part.bytes.length
    this.#told = Math.max(0, this.#told - 1)
  }

  #write(
    from: number,
    count: number,
    monotonicMs: number,
    wallMs: number,
    more: { readonly bytesMax?: number; readonly pick?: (slot: number) => boolean } = {},
  ): Uint8Array | null {
    const { bytesMax = partBytesMax, ...rest } = more
    const common = { table: this.#table, self: this.#self, monotonicMs, wallMs }
    return writeSnapshot({ ...common, ...rest, from, count, bytesMax, isCheckpoint: false })
  }
}

const emptyState = (): Uint8Array => new MessageWriter(snapshotKind, 0, 64).take()

const inRange = (part: Part, from: number, end: number): boolean =>
  part.from >= from && part.from < end
