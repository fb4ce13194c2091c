/**
 * What the pure core asks of the outside world: chance and time, always as arguments.
 * Production passes the operating system's, the simulator passes seeded and virtual ones.
 */

/** A uniform random number in [0, 1). Statistical quality only; never used for secrets. */
export type Random = () => number

/** `length` cryptographically strong random bytes: nonces, origin ids. */
export type Entropy = (length: number) => Uint8Array

/** The two clocks of a process, read once per event by a shell. */
export interface Clock {
  /** Milliseconds since an arbitrary start, never going back. For waiting and for rates. */
  monotonicMs(): number
  /** Milliseconds since the Unix epoch. For what pods agree on: calendar and aligned windows. */
  wallMs(): number
}
