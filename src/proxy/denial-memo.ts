/**
 * Denials as finished texts. A client over its limit asks again and again, and is told the same
 * until the second changes: the text is made once for equal numbers. That is what keeps saying no
 * cheap.
 */
import { drawnRetryAfterSeconds } from '../http/rate-limit-headers.js'
import type { Decision, DecisionReason } from '../limiter/decision.js'
import type { OnExceededSpec } from '../limiter/rule.js'
import { answerText, denial, type LocalAnswer } from './local-answer.js'
import type { ProxyOptions, ProxyPorts } from './options.js'

/** Texts kept at most; all are dropped when there are more, which is once in a while. */
const textsMax = 1_024

export interface Denial {
  readonly status: number
  /** The whole response for each way to end it. */
  text(connection: 'close' | 'keep' | 'silent', toHead: boolean): string
}

class DenialTexts implements Denial {
  /** What the rule said when the text was made: a reload may change it. */
  readonly onExceeded: OnExceededSpec | undefined
  readonly #answer: LocalAnswer
  readonly #wallMs: number
  readonly #texts = new Map<string, string>()

  constructor(answer: LocalAnswer, onExceeded: OnExceededSpec | undefined, wallMs: number) {
    this.#answer = answer
    this.onExceeded = onExceeded
    this.#wallMs = wallMs
  }

  get status(): number {
    return this.#answer.status
  }

  text(connection: 'close' | 'keep' | 'silent', toHead: boolean): string {
    const key = toHead ? `head ${connection}` : connection
    let text = this.#texts.get(key)
    if (text === undefined) {
      text = answerText(this.#answer, connection, toHead, this.#wallMs)
      this.#texts.set(key, text)
    }
    return text
  }
}

/**
 * Everything that the text of a denial depends on, within one second of the wall clock. Numbers are
 * compared before a text is made of them: the same client asks again and again.
 */
class DenialKey {
  #rule: string | null = null
  #reason: DecisionReason | null = null
  #limit = 0
  #windowMs = 0
  #remaining = 0
  #retrySeconds = 0
  #fullAtSecond = 0
  #fullSeconds = 0
  #upperSecond = 0
  #violated = ''

  /** Takes over what `decision` says; false: it says the same as the one before. */
  take(decision: Decision, wallMs: number, retrySeconds: number): boolean {
    const { violated } = decision
    const fullAtSecond = Math.ceil((wallMs + decision.resetAfterMs) / 1000)
    const fullSeconds = Math.ceil(decision.resetAfterMs / 1000)
    const upperSecond = Math.ceil(wallMs / 1000)
    const names = violated.length > 1 ? violated.join() : (violated[0] ?? '')
    if (
      this.#rule === decision.rule &&
      this.#reason === decision.reason &&
      this.#limit === decision.limit &&
      this.#windowMs === decision.windowMs &&
      this.#remaining === decision.remaining &&
      this.#retrySeconds === retrySeconds &&
      this.#fullAtSecond === fullAtSecond &&
      this.#fullSeconds === fullSeconds &&
      this.#upperSecond === upperSecond &&
      this.#violated === names
    ) {
      return false
    }
    this.#rule = decision.rule
    this.#reason = decision.reason
    this.#limit = decision.limit
    this.#windowMs = decision.windowMs
    this.#remaining = decision.remaining
    this.#retrySeconds = retrySeconds
    this.#fullAtSecond = fullAtSecond
    this.#fullSeconds = fullSeconds
    this.#upperSecond = upperSecond
    this.#violated = names
    return true
  }

  toString(): string {
    return [
      this.#rule,
      this.#reason,
      this.#limit,
      this.#windowMs,
      this.#remaining,
      this.#retrySeconds,
      this.#fullAtSecond,
      this.#fullSeconds,
      this.#upperSecond,
      this.#violated,
    ].join(' ')
  }
}

export class DenialMemo {
  readonly #options: ProxyOptions
  readonly #ports: ProxyPorts
  readonly #denials = new Map<string, DenialTexts>()
  readonly #key = new DenialKey()
  /** The denial of that key. */
  #last: DenialTexts | null = null
  #second = 0

  constructor(options: ProxyOptions, ports: ProxyPorts) {
    this.#options = options
    this.#ports = ports
  }

  /** The answer to a request that a rule or a list denied. */
  get(decision: Decision): Denial {
    const { engine, random } = this.#ports
    const wallMs = engine.decidedWallMs
    const second = Math.floor(wallMs / 1000)
    const onExceeded = decision.rule === null ? undefined : engine.rule(decision.rule)?.onExceeded
    if (second !== this.#second || this.#denials.size >= textsMax) {
      this.#second = second
      this.#denials.clear()
      this.#last = null
    }
    // One draw for this answer: the key and the text must agree on the jitter.
    const chance = random()
    const retrySeconds = drawnRetryAfterSeconds(decision.retryAfterMs, chance)
    const changed = this.#key.take(decision, wallMs, retrySeconds)
    let known = this.#last
    if (changed || known === null) known = this.#denials.get(this.#key.toString()) ?? null
    if (known === null || known.onExceeded !== onExceeded) {
      const answer = denial(decision, onExceeded, this.#options, wallMs, () => chance)
      known = new DenialTexts(answer, onExceeded, wallMs)
      this.#denials.set(this.#key.toString(), known)
    }
    this.#last = known
    return known
  }
}
