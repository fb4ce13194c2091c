/**
 * How well this node keeps up, from its own experience (Lifeguard, local health multiplier;
 * memberlist awareness.go). 0 is healthy. A slow node that blames others probes more patiently
 * instead.
 */
export class Awareness {
  readonly #max: number
  #score = 0

  /** Scores stay below `max`. */
  constructor(max: number) {
    this.#max = max
  }

  /** 0..max - 1. */
  get score(): number {
    return this.#score
  }

  applyDelta(delta: number): void {
    this.#score = Math.min(this.#max - 1, Math.max(0, this.#score + delta))
  }

  scaleMs(timeoutMs: number): number {
    return timeoutMs * (this.#score + 1)
  }
}
