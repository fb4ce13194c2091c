/**
 * What a push/pull tells. A small table is written at once and is exact. Of a large one the scarce
 * counters are written at once, the rest comes out of parts that are rewritten in turn, a few
 * hundred slots at a time: totals that are some seconds old are as true as ever, and their age
 * travels with them.
 */
import { MessageWriter, snapshotKind } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import type { OriginNumbers } from './publish.js'
import { writeSnapshot } from './snapshot.js'
import { type BundlePart, writeBundle } from './state-bundle.js'

/** Counters that are written in one go: about a millisecond's work (bench: 2 us each). */
const countersAtOnceMax = 600
/** Slots in a part. */
const partSlots = 400
const partGapMs = 20
/** Rest between two rounds through the table. */
const roundGapMs = 5000
const partBytesMax = 1 << 20

interface Part {
  readonly bytes: Uint8Array
  readonly writtenAtMs: number
}

export class StateSender {
  readonly #table: CounterTable
  readonly #self: OriginNumbers
  readonly #parts: (Part | null)[]
  #next = 0
  #dueAtMs = Number.NEGATIVE_INFINITY
  /** Where the next bundle begins, so that what did not fit comes first. */
  #first = 0

  constructor(table: CounterTable, self: OriginNumbers) {
    this.#table = table
    this.#self = self
    this.#parts = new Array<Part | null>(Math.ceil(table.slots.slotsMax / partSlots)).fill(null)
  }

  get #isSmall(): boolean {
    return this.#table.slots.used <= countersAtOnceMax
  }

  /** When the next part is to be written, monotonic; Infinity while the table is small. */
  nextDeadlineMs(): number {
    return this.#isSmall ? Number.POSITIVE_INFINITY : this.#dueAtMs
  }

  advance(monotonicMs: number, wallMs: number): void {
    if (monotonicMs < this.nextDeadlineMs()) return
    const bytes = this.#write(this.#next * partSlots, partSlots, monotonicMs, wallMs)
    this.#parts[this.#next] = bytes === null ? null : { bytes, writtenAtMs: monotonicMs }
    this.#next = (this.#next + 1) % this.#parts.length
    this.#dueAtMs = monotonicMs + (this.#next === 0 ? roundGapMs : partGapMs)
  }

  state(monotonicMs: number, wallMs: number, bytesMax: number): Uint8Array {
    const { slots } = this.#table
    if (this.#isSmall) {
      const whole = this.#write(0, slots.slotsMax, monotonicMs, wallMs, { bytesMax })
      return whole ?? new MessageWriter(snapshotKind, 0, 64).take()
    }
    const scarce = this.#write(0, slots.slotsMax, monotonicMs, wallMs, {
      pick: slot => slots.scarce[slot] === 1,
      countersMax: countersAtOnceMax,
    })
    const parts: BundlePart[] = scarce === null ? [] : [{ bytes: scarce, heldMs: 0 }]
    let bytes = scarce?.length ?? 0
    let told = 0
    for (; told < this.#parts.length && bytes < bytesMax; told++) {
      const part = this.#parts[(this.#first + told) % this.#parts.length]
      if (part === null || part === undefined) continue
      bytes += part.bytes.length + 8
      parts.push({ bytes: part.bytes, heldMs: Math.max(0, monotonicMs - part.writtenAtMs) })
    }
    this.#first = bytes < bytesMax ? 0 : (this.#first + Math.max(1, told - 1)) % this.#parts.length
    return writeBundle(parts, bytesMax)
  }

  #write(
    from: number,
    count: number,
    monotonicMs: number,
    wallMs: number,
    more: {
      readonly bytesMax?: number
      readonly pick?: (slot: number) => boolean
      readonly countersMax?: number
    } = {},
  ): Uint8Array | null {
    const { bytesMax = partBytesMax, ...rest } = more
    const common = { table: this.#table, self: this.#self, monotonicMs, wallMs }
    return writeSnapshot({ ...common, ...rest, from, count, bytesMax, isCheckpoint: false })
  }
}
