/**
 * The core with the process's clocks in it, for shells that answer requests: each call reads both
 * clocks once. Knows nothing of HTTP or of sockets. Every call is synchronous, so nothing can come
 * between a request's facts and its decision.
 */
import type { CoreStats, Explanation, KeyView, Matching, MemberView } from './core-types.js'
import { BucketHistogram } from './lib/bucket-histogram.js'
import type { Decision, DecisionReason, Outcome, Settlement } from './limiter/decision.js'
import type { RequestFacts } from './limiter/request-facts.js'
import type { KeyPart, RuleSet, RuleSpec } from './limiter/rule.js'
import type { Clock } from './ports.js'
import type { DecisionInterface, RuleName } from './vocabulary.js'

/** What an engine needs of `Core`, by shape: a test passes a double, the assembly the real one. */
export interface EngineCore {
  decide(facts: RequestFacts, via: DecisionInterface, monotonicMs: number, wallMs: number): Decision
  check(
    rule: string,
    key: readonly string[],
    cost: number,
    monotonicMs: number,
    wallMs: number,
  ): Decision | null
  settle(settlement: Settlement, outcome: Outcome, monotonicMs: number, wallMs: number): void
  explain(facts: RequestFacts, monotonicMs: number, wallMs: number): Explanation
  matching(facts: RequestFacts): Matching
  applyRules(rules: RuleSet, monotonicMs: number, wallMs: number): void
  rule(name: RuleName): RuleSpec | undefined
  rules(): RuleSet
  synced(): boolean
  setDraining(monotonicMs: number): void
  members(monotonicMs: number): MemberView[]
  stats(monotonicMs: number, wallMs: number): CoreStats
  top(
    rule: string | null,
    by: 'denied' | 'hits',
    n: number,
    monotonicMs: number,
    wallMs: number,
  ): KeyView[]
  key(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): KeyView | null
  resetKey(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): boolean
}

export interface EnginePorts {
  readonly core: EngineCore
  readonly clock: Clock
  /**
   * Called after every call that may have moved the core's next deadline or left effects. Cheap.
   */
  readonly wake: () => void
  /** Hears what the core threw, at most once a second; the request was answered all the same. */
  readonly onFailure?: (error: unknown) => void
}

/** A denial as it happens; the decision is only valid during the call. */
export type DenialListener = (decision: Decision, via: DecisionInterface, wallMs: number) => void

/** What the rules in force ask of a request, so that shells do no work nobody needs. */
export interface RuleNeeds {
  /** Some rule, list entry, cost or key looks at the path: an ambiguous one must be refused. */
  readonly path: boolean
  /** Some rule looks at a verified token. */
  readonly jwt: boolean
}

/** Decisions by reason and interface since start, whether or not a rule was in it. */
export type ReasonCounts = Readonly<
  Record<DecisionInterface, Readonly<Record<DecisionReason, number>>>
>

/** One decision in so many is timed; a power of two. Reading the clock again is not free. */
const timedEvery = 16

/** Upper bounds in seconds: a decision takes about a microsecond; a stall takes milliseconds. */
const durationBoundsSeconds = [
  5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 1e-3, 5e-3, 2.5e-2,
]

export class Engine {
  readonly #core: EngineCore
  readonly #clock: Clock
  readonly #wake: () => void
  #onDenied: DenialListener | null = null
  readonly #onFailure: (error: unknown) => void
  #failureTellableAtMs = Number.NEGATIVE_INFINITY
  #calls = 0
  #decidedWallMs = 0
  #failures = 0
  readonly #reasons = { proxy: noReasons(), check: noReasons(), auth: noReasons() }
  #needs: RuleNeeds = { path: false, jwt: false }
  #needsOf: RuleSet | null = null

  /** Durations of decisions in seconds, of one in 16 decisions, each counted 16 times. */
  readonly durations = new BucketHistogram(durationBoundsSeconds)

  constructor(ports: EnginePorts) {
    this.#core = ports.core
    this.#clock = ports.clock
    this.#wake = ports.wake
    this.#onFailure = ports.onFailure ?? (() => {})
  }

  /** Who hears of denials; one listener. */
  setDenialListener(listener: DenialListener): void {
    this.#onDenied = listener
  }

  /** Decides and charges. Never throws: a failing core yields a `degraded` decision. */
  decide(facts: RequestFacts, via: DecisionInterface): Decision {
    const monotonicMs = this.#clock.monotonicMs()
    const wallMs = this.#clock.wallMs()
    let decision: Decision
    try {
      decision = this.#core.decide(facts, via, monotonicMs, wallMs)
    } catch (error) {
      this.#noteFailure(error, monotonicMs)
      decision = this.#degraded(facts)
    }
    this.#after(decision, via, monotonicMs, wallMs)
    return decision
  }

  /** As `decide`, for a rule and key that the caller names; null: no such rule. */
  check(rule: string, key: readonly string[], cost: number): Decision | null {
    const monotonicMs = this.#clock.monotonicMs()
    const wallMs = this.#clock.wallMs()
    let decision: Decision | null
    try {
      decision = this.#core.check(rule, key, cost, monotonicMs, wallMs)
    } catch (error) {
      this.#noteFailure(error, monotonicMs)
      const spec = this.rule(rule)
      decision = spec ? degraded([spec]) : null
    }
    if (decision) this.#after(decision, 'check', monotonicMs, wallMs)
    return decision
  }

  /**
   * Hands back what a decision left open. A second call for the same settlement does nothing. Never
   * throws: it is called where responses end, and their ends must be reached.
   */
  settle(settlement: Settlement, outcome: Outcome): void {
    const monotonicMs = this.#clock.monotonicMs()
    try {
      this.#core.settle(settlement, outcome, monotonicMs, this.#clock.wallMs())
    } catch (error) {
      this.#noteFailure(error, monotonicMs)
    }
    this.#wake()
  }

  explain(facts: RequestFacts): Explanation {
    return this.#core.explain(facts, this.#clock.monotonicMs(), this.#clock.wallMs())
  }

  applyRules(rules: RuleSet): void {
    this.#core.applyRules(rules, this.#clock.monotonicMs(), this.#clock.wallMs())
    this.#wake()
  }

  rule(name: string): RuleSpec | undefined {
    return this.#core.rule(name as RuleName)
  }

  rules(): RuleSet {
    return this.#core.rules()
  }

  /** What the rules in force look at; worked out once per rule set. */
  needs(): RuleNeeds {
    const rules = this.#core.rules()
    if (rules !== this.#needsOf) {
      this.#needsOf = rules
      this.#needs = { path: looksAtPath(rules), jwt: looksAtToken(rules) }
    }
    return this.#needs
  }

  members(): MemberView[] {
    return this.#core.members(this.#clock.monotonicMs())
  }

  stats(): CoreStats {
    return this.#core.stats(this.#clock.monotonicMs(), this.#clock.wallMs())
  }

  /** The `n` keys with most denials or hits, of one rule or of all (null). */
  top(rule: string | null, by: 'denied' | 'hits', n: number): KeyView[] {
    return this.#core.top(rule, by, n, this.#clock.monotonicMs(), this.#clock.wallMs())
  }

  /** A key by its parts or by its hash (16 hex digits); null: not seen here. */
  key(rule: string, key: readonly string[] | string): KeyView | null {
    return this.#core.key(rule, key, this.#clock.monotonicMs(), this.#clock.wallMs())
  }

  /** Gives a key its whole limit back; false: not seen here. */
  resetKey(rule: string, key: readonly string[] | string): boolean {
    const done = this.#core.resetKey(rule, key, this.#clock.monotonicMs(), this.#clock.wallMs())
    this.#wake()
    return done
  }

  /** The first state pull is done. */
  synced(): boolean {
    return this.#core.synced()
  }

  /** Tells the fleet that this pod takes no new work soon. */
  setDraining(): void {
    this.#core.setDraining(this.#clock.monotonicMs())
    this.#wake()
  }

  /** Calls in which the core threw and `failureMode` answered. */
  get failures(): number {
    return this.#failures
  }

  get reasons(): ReasonCounts {
    return this.#reasons
  }

  wallMs(): number {
    return this.#clock.wallMs()
  }

  /** Wall time of the latest decision, milliseconds: of now, for who has just asked for one. */
  get decidedWallMs(): number {
    return this.#decidedWallMs
  }

  #after(decision: Decision, via: DecisionInterface, monotonicMs: number, wallMs: number): void {
    this.#decidedWallMs = wallMs
    if ((this.#calls++ & (timedEvery - 1)) === 0) {
      this.durations.record((this.#clock.monotonicMs() - monotonicMs) / 1000, timedEvery)
    }
    this.#reasons[via][decision.reason]++
    if (!decision.allowed && this.#onDenied) this.#onDenied(decision, via, wallMs)
    this.#wake()
  }

  /**
   * The lists and the matching may still work when the counting fails: then the rules concerned
   * answer.
   */
  #degraded(facts: RequestFacts): Decision {
    try {
      const { outcome, rules } = this.#core.matching(facts)
      if (outcome === 'exempt') return { ...degraded([]), reason: 'exempt' }
      if (outcome === 'blocked') return { ...degraded([]), allowed: false, reason: 'blocked' }
      if (outcome === 'rules') return degraded(rules)
    } catch {
      // Which rules are concerned is not known either, so one `closed` rule closes.
    }
    return degraded(this.#core.rules().rules)
  }

  #noteFailure(error: unknown, monotonicMs: number): void {
    this.#failures++
    if (monotonicMs < this.#failureTellableAtMs) return
    this.#failureTellableAtMs = monotonicMs + 1000
    this.#onFailure(error)
  }
}

/** What `failureMode` of these rules says: one that enforces and is `closed` closes. */
function degraded(rules: readonly RuleSpec[]): Decision {
  const closed = rules.find(rule => rule.failureMode === 'closed' && rule.mode === 'enforce')
  return {
    allowed: !closed,
    reason: 'degraded',
    rule: closed?.name ?? null,
    limit: closed?.limit?.count ?? closed?.concurrency ?? 0,
    windowMs: closed?.limit?.windowMs ?? 0,
    remaining: 0,
    resetAfterMs: 0,
    retryAfterMs: closed ? 1000 : 0,
    delayMs: 0,
    violated: closed ? [closed.name] : [],
    shadowViolated: [],
    settlement: null,
  }
}

function noReasons(): Record<DecisionReason, number> {
  return {
    allowed: 0,
    'no-rule': 0,
    exempt: 0,
    blocked: 0,
    limited: 0,
    'missing-key': 0,
    degraded: 0,
  }
}

function looksAtPath(rules: RuleSet): boolean {
  if (rules.allow.some(entry => entry.path !== null)) return true
  if (rules.deny.some(entry => entry.path !== null)) return true
  return rules.rules.some(
    rule =>
      (rule.match?.path ?? null) !== null ||
      rule.cost.match.some(cost => cost.match.path !== null) ||
      partsOf(rule).some(part => part.some(source => source.kind === 'path')),
  )
}

function looksAtToken(rules: RuleSet): boolean {
  return rules.rules.some(rule =>
    partsOf(rule).some(part => part.some(source => source.kind === 'jwt')),
  )
}

function partsOf(rule: RuleSpec): readonly KeyPart[] {
  return rule.tier ? [...rule.key, rule.tier.by] : rule.key
}
