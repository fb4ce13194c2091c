/**
 * Everything a pod knows of its counters, as a structure of arrays: about 250 bytes a slot,
 * allocated once. Times are monotonic milliseconds, amounts are units, rates are units per
 * millisecond.
 */
import { assert } from '../lib/assert.js'

export class SlotColumns {
  readonly slotsMax: number

  /** Which arithmetic, see `family.ts`. */
  readonly family: Uint8Array
  /** Interned rule identity; -1 for a slot that only other pods have touched. */
  readonly identity: Int32Array
  /** Place in the table's list of shapes. */
  readonly shape: Int32Array
  readonly key: (string | null)[]
  readonly textHash: Uint32Array
  readonly idHi: Uint32Array
  readonly idLo: Uint32Array
  /** Number of this use of the slot: higher after the counter was evicted and came back. */
  readonly epoch: Uint32Array
  /** Greatest level that admits, in force (a split may scale it). */
  readonly capacity: Float64Array
  /** Bucket: milliseconds per unit; window: its length. In force. */
  readonly periodMs: Float64Array
  /** Long-run units per millisecond; 0 for a gauge. */
  readonly rate: Float64Array

  /** Bucket: theoretical arrival time of the fleet. Windows: number of the present window. */
  readonly level: Float64Array
  /** Own totals since the epoch; of windows: `consumed` and `returned` of the present window. */
  readonly consumed: Float64Array
  readonly returned: Float64Array
  readonly offered: Float64Array
  /** Windows: own usage of the window before. */
  readonly previous: Float64Array
  /** Usage of all others: of the present window, of a log's span, or in flight. */
  readonly othersUsed: Float64Array
  /** Windows: usage of all others in the window before. */
  readonly othersPrevious: Float64Array
  /** Units held for requests in flight, settled later. Never published. */
  readonly reserved: Float64Array

  /** Bucket: own usage when it was last seen untouched, and when that was. */
  readonly fullBase: Float64Array
  readonly fullAt: Float64Array
  /** Own usage and offers as last published. */
  readonly sentUsage: Float64Array
  readonly sentDemand: Float32Array
  /** When the first unpublished unit was consumed; NaN when all is published. */
  readonly dirtySince: Float64Array
  readonly sentAt: Float64Array

  readonly ownDemand: Float64Array
  readonly ownDemandAt: Float64Array
  /** Plausible demand of all others, as news brought it. */
  readonly othersDemand: Float64Array
  /** When it was last added up. */
  readonly othersDemandAt: Float64Array
  /** Units the others were asked for in the last moments, fading; for sudden bursts. */
  readonly surge: Float64Array
  readonly surgeAt: Float64Array
  /** When another pod was last asked, as news told; of windows only, 0: never. */
  readonly othersAskedAt: Float64Array
  readonly entitlement: Float64Array
  readonly entitledAt: Float64Array
  /** 1 while shares decide. */
  readonly scarce: Uint8Array

  /** Which send list the slot stands on, see `send-queue.ts`. */
  readonly queue: Uint8Array
  readonly repeats: Uint8Array
  /** Split number that `capacity` and `periodMs` were scaled for. */
  readonly split: Int32Array
  /**
   * Units the other side of a split is taken to use, and the greatest such number; see `split.ts`.
   */
  readonly splitUsed: Float64Array
  readonly splitCapacity: Float64Array
  readonly splitAt: Float64Array
  readonly createdAt: Float64Array

  /** First entry of another origin, -1 for none. */
  readonly firstEntry: Int32Array
  /** Log family: first slice of the own log and of the others' sum, -1 for none. */
  readonly ownLog: Int32Array
  readonly othersLog: Int32Array

  readonly hits: Float64Array
  readonly denied: Float64Array

  readonly #free: Int32Array
  #freeCount: number
  #epochs = 0

  constructor(slotsMax: number) {
    assert(slotsMax >= 1 && slotsMax <= 1 << 24, 'a table has 1 to 16777216 slots')
    const f64 = () => new Float64Array(slotsMax)
    const i32 = () => new Int32Array(slotsMax)
    const u32 = () => new Uint32Array(slotsMax)
    const u8 = () => new Uint8Array(slotsMax)
    this.slotsMax = slotsMax
    this.family = u8()
    this.identity = i32()
    this.shape = i32()
    this.key = []
    this.textHash = u32()
    this.idHi = u32()
    this.idLo = u32()
    this.epoch = u32()
    this.capacity = f64()
    this.periodMs = f64()
    this.rate = f64()
    this.level = f64()
    this.consumed = f64()
    this.returned = f64()
    this.offered = f64()
    this.previous = f64()
    this.othersUsed = f64()
    this.othersPrevious = f64()
    this.reserved = f64()
    this.fullBase = f64()
    this.fullAt = f64()
    this.sentUsage = f64()
    this.sentDemand = new Float32Array(slotsMax)
    this.dirtySince = f64()
    this.sentAt = f64()
    this.ownDemand = f64()
    this.ownDemandAt = f64()
    this.othersDemand = f64()
    this.othersDemandAt = f64()
    this.surge = f64()
    this.surgeAt = f64()
    this.othersAskedAt = f64()
    this.entitlement = f64()
    this.entitledAt = f64()
    this.scarce = u8()
    this.queue = u8()
    this.repeats = u8()
    this.split = i32()
    this.splitUsed = f64()
    this.splitCapacity = f64()
    this.splitAt = f64()
    this.createdAt = f64()
    this.firstEntry = i32()
    this.ownLog = i32()
    this.othersLog = i32()
    this.hits = f64()
    this.denied = f64()
    this.#free = new Int32Array(slotsMax)
    for (let index = 0; index < slotsMax; index++) this.#free[index] = slotsMax - 1 - index
    this.#freeCount = slotsMax
  }

  get used(): number {
    return this.slotsMax - this.#freeCount
  }

  /** A clean slot, or -1 when all are taken. */
  take(monotonicMs: number): number {
    if (this.#freeCount === 0) return -1
    const slot = this.#free[--this.#freeCount] as number
    this.#clear(slot, monotonicMs)
    return slot
  }

  release(slot: number): void {
    this.key[slot] = null
    this.epoch[slot] = 0
    this.#free[this.#freeCount++] = slot
  }

  /** Taken slots have an epoch. */
  isTaken(slot: number): boolean {
    return (this.epoch[slot] as number) !== 0
  }

  #clear(slot: number, monotonicMs: number): void {
    this.identity[slot] = -1
    this.key[slot] = null
    this.epoch[slot] = ++this.#epochs
    // Memory that was never written to is not resident: what is nothing already stays unwritten.
    for (const column of this.#amounts()) if (column[slot] !== 0) column[slot] = 0
    this.sentDemand[slot] = 0
    this.dirtySince[slot] = Number.NaN
    this.sentAt[slot] = Number.NEGATIVE_INFINITY
    this.fullAt[slot] = monotonicMs
    this.ownDemandAt[slot] = monotonicMs
    this.othersDemandAt[slot] = monotonicMs
    this.surgeAt[slot] = monotonicMs
    this.entitledAt[slot] = monotonicMs
    this.createdAt[slot] = monotonicMs
    this.scarce[slot] = 0
    this.queue[slot] = 0
    this.repeats[slot] = 0
    this.split[slot] = 0
    this.splitAt[slot] = monotonicMs
    this.firstEntry[slot] = -1
    this.ownLog[slot] = -1
    this.othersLog[slot] = -1
  }

  #amountColumns: readonly Float64Array[] | null = null

  #amounts(): readonly Float64Array[] {
    this.#amountColumns ??= [
      this.level,
      this.consumed,
      this.returned,
      this.offered,
      this.previous,
      this.othersUsed,
      this.othersPrevious,
      this.reserved,
      this.fullBase,
      this.sentUsage,
      this.ownDemand,
      this.othersDemand,
      this.surge,
      this.othersAskedAt,
      this.entitlement,
      this.splitUsed,
      this.splitCapacity,
      this.hits,
      this.denied,
    ]
    return this.#amountColumns
  }
}
