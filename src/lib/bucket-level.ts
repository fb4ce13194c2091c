/**
 * A token bucket in GCRA form: one number, the theoretical arrival time (`tat`), tells how much of
 * the bucket is used. Times are monotonic milliseconds, `unitMs` is how long one unit takes to
 * refill. Source: ITU-T I.371 (generic cell rate algorithm), counters.md §2.
 */

/** Units used and not refilled yet, >= 0. May exceed the capacity: a debt. */
export function bucketUsed(tatMs: number, nowMs: number, unitMs: number): number {
  return tatMs > nowMs ? (tatMs - nowMs) / unitMs : 0
}

/**
 * The `tat` after `units` were taken at `asOfMs` (not later than now). Negative units give back.
 */
export function bucketCharged(
  tatMs: number,
  asOfMs: number,
  units: number,
  unitMs: number,
): number {
  return Math.max(tatMs, asOfMs) + units * unitMs
}

/** The `tat` at which `used` units are missing at `nowMs`. */
export function bucketTat(used: number, nowMs: number, unitMs: number): number {
  return nowMs + used * unitMs
}

/** Milliseconds until `units` more can be taken out of `capacity`; 0 when they can be taken now. */
export function bucketWaitMs(
  used: number,
  capacity: number,
  units: number,
  unitMs: number,
): number {
  return Math.max(0, used + units - capacity) * unitMs
}
