/** What one bucket that sees every request would admit: the yardstick of the demo. Pure. */

export class IdealBucket {
  readonly #rate: number
  readonly #burst: number
  #tokens: number
  #lastMs: number | null = null
  admitted = 0

  /** `rate` in units per second, `burst` in units; starts full. */
  constructor(rate: number, burst: number) {
    this.#rate = rate
    this.#burst = burst
    this.#tokens = burst
  }

  /** One request of cost 1 at `nowMs`; times must not go back. */
  offer(nowMs: number): boolean {
    const elapsedMs = nowMs - (this.#lastMs ?? nowMs)
    this.#lastMs = nowMs
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs * this.#rate) / 1000)
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    this.admitted += 1
    return true
  }
}

/**
 * The ideal bucket for a client that cannot see when its requests are decided, only that it is
 * after they left and before they were answered. On a busy machine these are far apart.
 */
export class IdealRange {
  readonly #asLeft: IdealBucket
  readonly #asAnswered: IdealBucket

  /** `rate` in units per second, `burst` in units; starts full. */
  constructor(rate: number, burst: number) {
    this.#asLeft = new IdealBucket(rate, burst)
    this.#asAnswered = new IdealBucket(rate, burst)
  }

  /** A request left at `nowMs`; times must not go back. */
  left(nowMs: number): void {
    this.#asLeft.offer(nowMs)
  }

  /** A request was answered at `nowMs`; times must not go back. */
  answered(nowMs: number): void {
    this.#asAnswered.offer(nowMs)
  }

  /** What the ideal bucket may have admitted that is nearest to `actual`. */
  nearest(actual: number): number {
    const counts = [this.#asLeft.admitted, this.#asAnswered.admitted] as const
    return Math.max(Math.min(...counts), Math.min(Math.max(...counts), actual))
  }
}

/** Share by which `actual` differs from `ideal`, signed; 0 when both are 0. */
export function deviation(actual: number, ideal: number): number {
  if (ideal === 0) return actual === 0 ? 0 : Number.POSITIVE_INFINITY
  return (actual - ideal) / ideal
}
