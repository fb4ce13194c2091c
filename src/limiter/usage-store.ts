/**
 * What the limiter needs of counters: who has used how much, over the whole fleet, as this pod sees
 * it. `counters/counter-table.ts` has this shape. Slots are small numbers, valid until the next
 * `open`.
 */
import type { CounterFamily, CounterShape, OriginId } from '../vocabulary.js'

/** Columns the limiter reads or keeps per counter. Units, milliseconds, units per millisecond. */
export interface UsageColumns {
  readonly capacity: Float64Array
  readonly periodMs: Float64Array
  readonly rate: Float64Array
  readonly reserved: Float64Array
  readonly entitlement: Float64Array
  readonly entitledAt: Float64Array
  readonly scarce: Uint8Array
  /** When another pod was last asked, monotonic, as far as news tells; of windows only. */
  readonly othersAskedAt: Float64Array
  readonly shape: Int32Array
  readonly epoch: Uint32Array
  readonly identity: Int32Array
  readonly createdAt: Float64Array
  readonly hits: Float64Array
  readonly denied: Float64Array
}

/** Demand on a counter, units per millisecond; a class, so that the numbers stay in place. */
export class DemandView {
  /** Plausible demand of this pod and of all others. */
  own = Number.NaN
  others = Number.NaN
  /** Demand of all others in the last moments; noisy, but quick. */
  surge = Number.NaN
}

/** One pod's part of a counter. */
export interface UsagePart {
  readonly origin: OriginId
  readonly node: string | null
  readonly consumed: number
  readonly returned: number
  readonly offered: number
  /** Since this pod last heard of it; 0 for its own part. */
  readonly ageMs: number
}

/** When a counter will have room again; what is found stands in a field, which needs no heap. */
export interface UsageForecast {
  /** Milliseconds, >= 0. */
  readonly foundMs: number
  /** Until `units` more fit, by usage alone; 0 when they fit now, Infinity when they never do. */
  findWait(slot: number, units: number, monotonicMs: number, wallMs: number): void
  /** Until the counter is untouched again (a fixed window: until it ends). */
  findReset(slot: number, monotonicMs: number, wallMs: number): void
}

export interface UsageStore {
  readonly slots: UsageColumns & {
    readonly slotsMax: number
    readonly key: readonly (string | null)[]
    isTaken(slot: number): boolean
  }
  /** A small number for a rule's identity text. */
  identityOf(text: string): number
  /** A small number for a shape; equal shapes, equal numbers. */
  shapeOf(shape: CounterShape): number
  find(identity: number, key: string): number
  /** Found or made, with the shape in force; -1 when the table has no room. */
  open(identity: number, key: string, shape: number, monotonicMs: number, wallMs: number): number
  /** Units in use, reservations included; may exceed the capacity. */
  used(slot: number, monotonicMs: number, wallMs: number): number
  /** Puts what `used` leaves of the capacity into a list, where the number needs no heap. */
  readRoom(
    slot: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
    wallMs: number,
  ): void
  /** Own part of a gauge or window. */
  ownUsage(slot: number): number
  /** Counts demand, admitted or not. */
  offer(slot: number, units: number, monotonicMs: number): void
  /** Plausible demand of this pod and of all others, theirs perhaps as of an earlier moment. */
  readDemand(slot: number, othersAtMs: number, monotonicMs: number, into: DemandView): void
  /** Others' demand of the last moments. */
  readSurge(slot: number, monotonicMs: number, into: DemandView): void
  /** Takes units > 0, whether or not there is room. */
  consume(slot: number, units: number, monotonicMs: number, wallMs: number): void
  /** Gives units > 0 back, never beyond untouched; returns what was given. */
  giveBack(slot: number, units: number, monotonicMs: number, wallMs: number): number
  /** Tells the sending side that usage or demand changed; the room, as `readRoom` left it. */
  noteChange(slot: number, rooms: Float64Array, place: number, monotonicMs: number): void
  readonly forecast: UsageForecast
  /** What is left is handed out on top of the rate: a bucket, no window. */
  hasSurplus(slot: number): boolean
  /** Neither a bucket nor a gauge. */
  isWindow(slot: number): boolean
  familyOf(slot: number): CounterFamily
  /** Random 32 bits of this process. */
  readonly seed: number
  /** The 64-bit id between pods, 16 hex digits. */
  idText(slot: number): string
  /** By such an id; -1 when it is none or unknown. */
  findByIdText(text: string): number
  /** Every pod's part, own first. */
  parts(slot: number, monotonicMs: number): UsagePart[]
  /** Counters per identity number. */
  countKeys(): readonly number[]
  overshootRatio(identity: number, monotonicMs: number): number
  /** Pods that share the counters, own included; at least 1. */
  readonly pods: number
  /** Typical age of other pods' news, milliseconds. */
  lagMs: number
  /** Since when part of the fleet is out of sight, monotonic; Infinity when all is well. */
  readonly splitSinceMs: number
}
