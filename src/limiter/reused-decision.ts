/**
 * The decision that a limiter answers every request with, its fields overwritten each time. A class
 * because its fields must stay where they are: an object literal with a getter and a spread becomes
 * a hash table in V8, and each number written to it a piece of garbage.
 */
import type { RuleName } from '../vocabulary.js'
import type { Decision, DecisionReason, Settlement } from './decision.js'
import type { UsageStore } from './usage-store.js'

export const nobody: readonly RuleName[] = []

/**
 * What a number is before the first decision. Being no small integer it makes V8 keep the field as
 * a double in place, where writing a fraction allocates nothing.
 */
const unwritten = Number.NaN

export class ReusedDecision implements Decision {
  allowed = true
  limit = unwritten
  windowMs = unwritten
  remaining = unwritten
  resetAfterMs = unwritten
  retryAfterMs = unwritten
  delayMs = unwritten
  reason: DecisionReason = 'allowed'
  rule: RuleName | null = null
  violated: readonly RuleName[] = nobody
  shadowViolated: readonly RuleName[] = nobody
  settlement: Settlement | null = null
  readonly #store: UsageStore
  /** Counter of the rule that is reported; -1: none, or tracked approximately. */
  #slot = -1

  constructor(store: UsageStore) {
    this.#store = store
    this.reportNone()
    this.delayMs = 0
  }

  /** The text is made when somebody asks for it: most decisions are never logged. */
  get keyHash(): string | null {
    return this.#slot < 0 ? null : this.#store.idText(this.#slot)
  }

  /** Names the rule whose numbers stand here; its counter is -1 when the table has none. */
  report(rule: RuleName, slot: number): void {
    this.rule = rule
    this.#slot = slot
  }

  /** No rule restricts this request. */
  reportNone(): void {
    this.#slot = -1
    this.rule = null
    this.limit = 0
    this.windowMs = 0
    this.remaining = 0
    this.resetAfterMs = 0
    this.retryAfterMs = 0
  }

  /** Takes over another rule's limit, and what it has left. */
  copyNumbers(from: ReusedDecision): void {
    this.limit = from.limit
    this.windowMs = from.windowMs
    this.remaining = from.remaining
    this.resetAfterMs = from.resetAfterMs
    this.retryAfterMs = from.retryAfterMs
  }
}
