/**
 * Denials as finished texts. A client over its limit asks again and again, and is told the same
 * until the second changes: the text is made once for equal numbers. That is what keeps saying no
 * cheap.
 */
import { retryAfterSeconds } from '../http/rate-limit-headers.js'
import type { Decision } from '../limiter/decision.js'
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

export class DenialMemo {
  readonly #options: ProxyOptions
  readonly #ports: ProxyPorts
  readonly #denials = new Map<string, DenialTexts>()
  #second = 0

  constructor(options: ProxyOptions, ports: ProxyPorts) {
    this.#options = options
    this.#ports = ports
  }

  /** The answer to a request that a rule or a list denied. */
  get(decision: Decision): Denial {
    const { engine, random } = this.#ports
    const wallMs = engine.wallMs()
    const second = Math.floor(wallMs / 1000)
    const onExceeded = decision.rule === null ? undefined : engine.rule(decision.rule)?.onExceeded
    if (second !== this.#second || this.#denials.size >= textsMax) {
      this.#second = second
      this.#denials.clear()
    }
    // One draw for this answer: the key and the text must agree on the jitter.
    const drawn = random()
    const draw = (): number => drawn
    const key = keyOf(decision, wallMs, retryAfterSeconds(decision.retryAfterMs, draw))
    let known = this.#denials.get(key)
    if (known === undefined || known.onExceeded !== onExceeded) {
      const answer = denial(decision, onExceeded, this.#options, wallMs, draw)
      known = new DenialTexts(answer, onExceeded, wallMs)
      this.#denials.set(key, known)
    }
    return known
  }
}

/** Everything that the text of a denial depends on, within one second of the wall clock. */
function keyOf(decision: Decision, wallMs: number, retrySeconds: number): string {
  const { rule, reason, limit, windowMs, remaining, resetAfterMs, violated } = decision
  const fullAt = Math.ceil((wallMs + resetAfterMs) / 1000)
  const full = Math.ceil(resetAfterMs / 1000)
  const upper = Math.ceil(wallMs / 1000)
  const numbers = `${limit} ${windowMs} ${remaining} ${retrySeconds} ${fullAt} ${full} ${upper}`
  return `${rule} ${reason} ${numbers} ${violated.length > 1 ? violated.join() : violated[0]}`
}
