/** A periodic event on a fixed grid, like Go's time.Ticker: ticks that were missed are dropped. */
export class Ticker {
  readonly #intervalMs: number
  #nextMs: number

  /**
   * The first tick comes within one interval, as `chance` in [0, 1) says, so that nodes fall out of
   * step.
   */
  constructor(intervalMs: number, chance: number, nowMs: number) {
    this.#intervalMs = intervalMs
    this.#nextMs = nowMs + intervalMs * chance
  }

  get nextMs(): number {
    return this.#nextMs
  }

  /** True once per due tick; several overdue ones count as one. */
  take(nowMs: number): boolean {
    if (nowMs < this.#nextMs) return false
    const missed = Math.floor((nowMs - this.#nextMs) / this.#intervalMs)
    this.#nextMs += this.#intervalMs * (missed + 1)
    return true
  }
}
