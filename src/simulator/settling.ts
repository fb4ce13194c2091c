/**
 * How long the fleet needs after a change of the world until it admits what the ideal limiter does.
 * Seconds are counted from each change; a second is in step when the two counts differ by at most 5
 * % of the ideal's, or by at most 3 requests. A change that comes while the fleet is still out of
 * step belongs to the same disturbance, so a disturbance lasts from its first change to the end of
 * its last second out of step. Streaming: memory does not grow with the run.
 */

const secondMs = 1000
const toleranceShare = 0.05
const toleranceRequests = 3

export class Settling {
  private nextChange = 0
  private segmentEndMs: number
  private windowStartMs = 0
  private admitted = 0
  private ideal = 0
  private disturbedAtMs = 0
  private inStepSinceMs = 0
  private outOfStep = false
  private longestMs = 0

  /** `changesMs`: ascending and starting with 0, as `scenario.ts` gives them. */
  constructor(
    private readonly changesMs: readonly number[],
    private readonly durationMs: number,
  ) {
    this.segmentEndMs = this.takeSegment()
  }

  /** A request at `atMs`, which never falls from call to call. */
  observe(atMs: number, admitted: boolean, ideal: boolean): void {
    this.advance(atMs)
    if (admitted) this.admitted++
    if (ideal) this.ideal++
  }

  /** The longest disturbance in milliseconds; null when the last one had not ended. */
  finishMs(): number | null {
    this.advance(this.durationMs)
    this.closeDisturbance()
    return this.outOfStep ? null : this.longestMs
  }

  /** Judges every second that has ended by `atMs` and steps over changes. */
  private advance(atMs: number): void {
    for (;;) {
      const windowEndMs = this.windowStartMs + secondMs
      if (windowEndMs <= this.segmentEndMs) {
        if (atMs < windowEndMs) return
        this.judge(windowEndMs)
        this.startWindow(windowEndMs)
      } else {
        if (atMs < this.segmentEndMs || this.segmentEndMs >= this.durationMs) return
        const changeMs = this.segmentEndMs
        this.segmentEndMs = this.takeSegment()
        if (!this.outOfStep) {
          this.closeDisturbance()
          this.disturbedAtMs = changeMs
          this.inStepSinceMs = changeMs
        }
        this.startWindow(changeMs)
      }
    }
  }

  private judge(windowEndMs: number): void {
    const difference = Math.abs(this.admitted - this.ideal)
    this.outOfStep = difference > Math.max(toleranceRequests, toleranceShare * this.ideal)
    if (this.outOfStep) this.inStepSinceMs = windowEndMs
  }

  private startWindow(atMs: number): void {
    this.windowStartMs = atMs
    this.admitted = 0
    this.ideal = 0
  }

  private closeDisturbance(): void {
    this.longestMs = Math.max(this.longestMs, this.inStepSinceMs - this.disturbedAtMs)
  }

  /** End of the segment that begins at the next change. */
  private takeSegment(): number {
    this.nextChange++
    return this.changesMs[this.nextChange] ?? this.durationMs
  }
}
