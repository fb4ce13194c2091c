/**
 * "A client hit its limit", once per key and window, with the rule and the key's hash; never the
 * key. A flood of denied keys costs a bounded number of lines and a bounded table; the rest is
 * counted.
 */
import type { Logger } from 'pino'
import type { Decision } from '../limiter/decision.js'
import type { DecisionInterface } from '../vocabulary.js'

/** Keys remembered as logged; the oldest are forgotten first. */
const keysMax = 10_000
const linesPerSecondMax = 10
/** A month's quota is worth a line more than once a month, a second's at most once a second. */
const quietMsMin = 1_000
const quietMsMax = 3_600_000

export class DenialLog {
  readonly #log: Pick<Logger, 'info'>
  /** Rule and key hash to the wall time from which it may be logged again. */
  readonly #quietUntilMs = new Map<string, number>()
  #secondMs = Number.NEGATIVE_INFINITY
  #linesInSecond = 0
  #unlogged = 0
  #unloggedAtLastLine = 0

  constructor(log: Pick<Logger, 'info'>) {
    this.#log = log
  }

  /** Denials that got no line. */
  get unlogged(): number {
    return this.#unlogged
  }

  /** Takes note of a denial; to be given to `Engine.setDenialListener`. */
  readonly denied = (decision: Decision, via: DecisionInterface, wallMs: number): void => {
    const keyHash = decision.keyHash ?? null
    const id = `${decision.rule ?? ''} ${keyHash ?? decision.reason}`
    const quietUntilMs = this.#quietUntilMs.get(id)
    // A wall clock set back must not silence a key for longer than one window.
    const quiet = quietUntilMs !== undefined && wallMs < quietUntilMs
    if ((quiet && quietUntilMs - wallMs <= quietMsMax) || !this.#mayLog(wallMs)) {
      this.#unlogged++
      return
    }
    this.#remember(id, wallMs + Math.min(quietMsMax, Math.max(quietMsMin, decision.windowMs)))
    this.#log.info(
      {
        rule: decision.rule,
        keyHash,
        reason: decision.reason,
        interface: via,
        limit: decision.limit,
        windowMs: decision.windowMs,
        retryAfterMs: Math.ceil(decision.retryAfterMs),
        unloggedSince: this.#unlogged - this.#unloggedAtLastLine,
      },
      'client hit its limit',
    )
    this.#unloggedAtLastLine = this.#unlogged
  }

  #mayLog(wallMs: number): boolean {
    if (wallMs - this.#secondMs >= 1_000 || wallMs < this.#secondMs) {
      this.#secondMs = wallMs
      this.#linesInSecond = 0
    }
    return this.#linesInSecond++ < linesPerSecondMax
  }

  #remember(id: string, untilMs: number): void {
    this.#quietUntilMs.delete(id)
    if (this.#quietUntilMs.size >= keysMax) {
      const oldest = this.#quietUntilMs.keys().next()
      if (!oldest.done) this.#quietUntilMs.delete(oldest.value)
    }
    this.#quietUntilMs.set(id, untilMs)
  }
}
