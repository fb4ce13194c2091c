/**
 * How far beyond its limit the fleet went, per rule: when news puts a bucket into debt, the debt is
 * what other pods admitted before they could know better. The greatest such debt, as a part of the
 * burst, fades with a half-life of a minute. `grapevine_estimated_overshoot_ratio`.
 */

const halfLifeMs = 60_000

export class Overshoot {
  readonly #ratio: number[] = []
  readonly #atMs: number[] = []

  note(identity: number, ratio: number, monotonicMs: number): void {
    if (ratio < this.of(identity, monotonicMs)) return
    this.#ratio[identity] = ratio
    this.#atMs[identity] = monotonicMs
  }

  /** 0 when nothing went beyond. */
  of(identity: number, monotonicMs: number): number {
    const ratio = this.#ratio[identity]
    if (ratio === undefined) return 0
    const elapsedMs = monotonicMs - (this.#atMs[identity] as number)
    return ratio * 2 ** (-elapsedMs / halfLifeMs)
  }
}
