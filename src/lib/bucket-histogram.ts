/**
 * A histogram in plain numbers: cheap enough for a hot path, read by an exporter when it is asked.
 * Bounds are upper bounds, inclusive, as Prometheus has them; the last count is for "above all
 * bounds".
 */
export class BucketHistogram {
  /** Ascending upper bounds, in the unit of what is recorded. */
  readonly bounds: readonly number[]
  readonly #bounds: Float64Array
  /** One count per bound and one for +Inf. Doubles: exact up to 2^53. */
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.#bounds = Float64Array.from(bounds)
    this.#counts = new Float64Array(bounds.length + 1)
  }

  /** Adds `weight` observations of `value`; a value that is no number is left out. */
  record(value: number, weight = 1): void {
    if (Number.isNaN(value)) return
    const bounds = this.#bounds
    let index = 0
    while (index < bounds.length && value > (bounds[index] ?? 0)) index++
    this.#counts[index] = (this.#counts[index] ?? 0) + weight
    this.#sum += value * weight
  }

  /** Counts per bucket, not cumulated; the last one is +Inf. A copy. */
  counts(): number[] {
    return Array.from(this.#counts)
  }

  get sum(): number {
    return this.#sum
  }

  get total(): number {
    let total = 0
    for (const count of this.#counts) total += count
    return total
  }
}
