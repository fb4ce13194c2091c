/**
 * The clock of one suspicion (Lifeguard, LHA-Suspicion; memberlist suspicion.go): it runs for the
 * maximum and is cut towards the minimum by each independent accuser, because many accusers are
 * less likely to be the ones at fault.
 */
import type { MemberName } from '../vocabulary.js'
import { remainingSuspicionMs } from './scaling.js'

export class Suspicion {
  readonly #accusers: Set<string>
  readonly #expected: number
  readonly #startedAtMs: number
  readonly #minMs: number
  readonly #maxMs: number
  #confirmations = 0
  #deadlineMs: number

  /**
   * `expected` confirmations (k) bring the time down to `minMs`; with 0 it is `minMs` from the
   * start.
   */
  constructor(
    accuser: MemberName,
    times: { readonly expected: number; readonly minMs: number; readonly maxMs: number },
    nowMs: number,
  ) {
    this.#accusers = new Set([accuser])
    this.#expected = times.expected
    this.#startedAtMs = nowMs
    this.#minMs = times.minMs
    this.#maxMs = times.maxMs
    this.#deadlineMs = nowMs + (times.expected < 1 ? times.minMs : times.maxMs)
  }

  /** When the member is to be declared dead; in the past if a late confirmation cut it that far. */
  get deadlineMs(): number {
    return this.#deadlineMs
  }

  get confirmations(): number {
    return this.#confirmations
  }

  get expected(): number {
    return this.#expected
  }

  /** True if this accuser is new and still counts; the accusation is then worth passing on. */
  confirm(accuser: MemberName, nowMs: number): boolean {
    if (this.#confirmations >= this.#expected || this.#accusers.has(accuser)) return false
    this.#accusers.add(accuser)
    this.#confirmations += 1
    const elapsedMs = nowMs - this.#startedAtMs
    this.#deadlineMs =
      nowMs +
      remainingSuspicionMs(this.#confirmations, this.#expected, elapsedMs, this.#minMs, this.#maxMs)
    return true
  }
}
