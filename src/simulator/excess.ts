/**
 * The largest excess over what a bucket of rate R and size B may ever let through: the maximum,
 * over all intervals of any length T, of `admitted - R*T - B`. An interval that is worth looking at
 * begins and ends at an admission, so one running sum finds it (the maximum subarray, per key).
 */
export class Excess {
  private level = 0
  private lastAtMs = 0
  /** Largest `admitted - R*T` so far; 0 while nothing was admitted. */
  private highest = 0

  /** `ratePerMs`: units per millisecond; `burst`: units, > 0. */
  constructor(
    private readonly ratePerMs: number,
    private readonly burst: number,
  ) {}

  admit(atMs: number): void {
    this.level = Math.max(0, this.level - (atMs - this.lastAtMs) * this.ratePerMs) + 1
    this.lastAtMs = atMs
    if (this.level > this.highest) this.highest = this.level
  }

  /** As a share of the burst; negative when not even the burst was used up. */
  share(): number {
    return (this.highest - this.burst) / this.burst
  }
}
