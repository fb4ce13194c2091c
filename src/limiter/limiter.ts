/**
 * May this request pass? Finds the rules it falls under, asks each, and charges all of them or
 * none. Knows usage by shape only (`usage-store.ts`), and neither HTTP nor gossip. Takes time as
 * arguments.
 */
import type { DecisionInterface, RuleName } from '../vocabulary.js'
import type { Decision, DecisionReason, Outcome, Settlement } from './decision.js'
import {
  DecisionCounts,
  type DecisionTable,
  resultAllowed,
  resultDelayed,
  resultDenied,
  resultShadowDenied,
} from './decision-counts.js'
import { Evaluation } from './evaluation.js'
import { type DecisionExplanation, explainDecision } from './explain.js'
import { FairShare } from './fair-share.js'
import { KeySketch } from './key-sketch.js'
import { type CounterView, KeyViews } from './key-views.js'
import { createMatchResult, type MatchResult } from './match-result.js'
import type { RequestFacts } from './request-facts.js'
import { nobody, ReusedDecision } from './reused-decision.js'
import type { LimitSpec, RuleSet } from './rule.js'
import { RuleMatcher } from './rule-matcher.js'
import { RulePlan } from './rule-plan.js'
import { closeSettlement, OpenSettlement } from './settlement.js'
import type { UsageStore } from './usage-store.js'

export interface LimiterOptions {
  readonly store: UsageStore
}

const noRules: RuleSet = { allow: [], deny: [], rules: [], hash: 0 }

export class Limiter {
  readonly store: UsageStore
  readonly #share: FairShare
  readonly #sketch: KeySketch
  readonly #views: KeyViews
  #rules: RuleSet = noRules
  #matcher = new RuleMatcher(noRules)
  #match: MatchResult = createMatchResult(1)
  #plans: RulePlan[] = []
  #evaluation: Evaluation
  #counts = new Map<RuleName, DecisionCounts>()
  readonly #decision: ReusedDecision
  /** What a second and further matching rule says. */
  readonly #further: ReusedDecision
  /** Decisions about keys that the table had no place for. */
  degradedDecisions = 0

  constructor(options: LimiterOptions) {
    this.store = options.store
    this.#share = new FairShare(options.store)
    this.#sketch = new KeySketch(options.store.seed)
    this.#views = new KeyViews(options.store, this.#share)
    this.#evaluation = this.#newEvaluation(1)
    this.#decision = new ReusedDecision(options.store)
    this.#further = new ReusedDecision(options.store)
  }

  #newEvaluation(rulesMax: number): Evaluation {
    return new Evaluation(rulesMax, {
      store: this.store,
      share: this.#share,
      sketch: this.#sketch,
    })
  }

  get rules(): RuleSet {
    return this.#rules
  }

  get plans(): readonly RulePlan[] {
    return this.#plans
  }

  get matcher(): RuleMatcher {
    return this.#matcher
  }

  /** Puts rules in force; counters of rules that keep their name and family stay. */
  setRules(rules: RuleSet, _monotonicMs: number, _wallMs: number): void {
    const matcher = new RuleMatcher(rules)
    const places = Math.max(1, rules.rules.length)
    this.#matcher = matcher
    this.#match = createMatchResult(places)
    this.#evaluation = this.#newEvaluation(places)
    this.#rules = rules
    const counts = new Map<RuleName, DecisionCounts>()
    for (const { name } of rules.rules)
      counts.set(name, this.#counts.get(name) ?? new DecisionCounts())
    this.#counts = counts
    this.#plans = rules.rules.map(spec => {
      return new RulePlan(spec, this.store, counts.get(spec.name) as DecisionCounts)
    })
  }

  decide(
    facts: RequestFacts,
    via: DecisionInterface,
    monotonicMs: number,
    wallMs: number,
  ): Decision {
    const match = this.#match
    this.#matcher.match(facts, match)
    if (match.outcome !== 'rules') {
      const exempt = match.outcome === 'exempt'
      return this.#plain(exempt ? 'exempt' : 'blocked', exempt)
    }
    if (match.count === 0) return this.#plain('no-rule', true)
    const evaluation = this.#evaluation
    evaluation.count = 0
    for (let place = 0; place < match.count; place++) {
      const plan = this.#plans[match.rule[place] as number] as RulePlan
      const limit = plan.limit(match.limit[place] ?? null)
      const missing = match.missing[place] === 1
      const key = match.key[place] as string
      const cost = match.cost[place] as number
      evaluation.add(plan, limit, key, cost, missing, monotonicMs, wallMs)
    }
    return this.#conclude(via, monotonicMs, wallMs)
  }

  /**
   * The process stood still from `sinceMs` to now: what the others did meanwhile is not known yet.
   */
  stalled(sinceMs: number, monotonicMs: number): void {
    this.#share.stalled(sinceMs, monotonicMs)
  }

  /** One key of one rule, as `POST /v1/check` names it. Null: no such rule. */
  check(
    rule: string,
    key: readonly string[],
    cost: number,
    via: DecisionInterface,
    monotonicMs: number,
    wallMs: number,
  ): Decision | null {
    const index = this.#rules.rules.findIndex(spec => spec.name === rule)
    if (index < 0) return null
    const limit = this.#matcher.limitOf(index, key)
    const text = this.#matcher.keyOf(index, key)
    return this.decideKnown(index, limit, text, cost, via, monotonicMs, wallMs)
  }

  /** The decision alone, for a rule, limit and canonical key text that were found already. */
  decideKnown(
    index: number,
    limit: LimitSpec | null,
    key: string,
    cost: number,
    via: DecisionInterface,
    monotonicMs: number,
    wallMs: number,
  ): Decision {
    const plan = this.#plans[index] as RulePlan
    this.#evaluation.count = 0
    this.#evaluation.add(plan, plan.limit(limit), key, cost, false, monotonicMs, wallMs)
    return this.#conclude(via, monotonicMs, wallMs)
  }

  /** Charges all or none of what was evaluated and makes the answer. */
  #conclude(via: DecisionInterface, monotonicMs: number, wallMs: number): Decision {
    const evaluation = this.#evaluation
    const decision = this.#decision
    let violated = nobody
    let shadowViolated = nobody
    let settles = false
    let degraded = false
    for (let place = 0; place < evaluation.count; place++) {
      const plan = evaluation.plans[place] as RulePlan
      if (evaluation.isDegraded(place)) {
        this.degradedDecisions++
        degraded = true
      }
      if (evaluation.admitted[place] === 1) settles ||= plan.settles && evaluation.cost[place]! > 0
      else if (plan.enforces) violated = withName(violated, plan)
      else shadowViolated = withName(shadowViolated, plan)
    }
    const passes = violated.length === 0
    decision.violated = violated
    decision.shadowViolated = shadowViolated
    for (let place = 0; place < evaluation.count; place++) {
      if (evaluation.admitted[place] !== 1) evaluation.deny(place, monotonicMs)
      else if (passes) evaluation.charge(place, monotonicMs, wallMs)
    }
    decision.settlement = passes && settles ? this.#openSettlement() : null
    this.#report(passes, monotonicMs, wallMs)
    if (degraded && passes) decision.reason = 'degraded'
    this.#countAll(passes, via)
    return decision
  }

  /** Fills in the numbers of the most restrictive rule. */
  #report(passes: boolean, monotonicMs: number, wallMs: number): void {
    const evaluation = this.#evaluation
    const decision = this.#decision
    const further = this.#further
    let chosen = -1
    let delayMs = 0
    for (let place = 0; place < evaluation.count; place++) {
      const plan = evaluation.plans[place] as RulePlan
      if (!plan.enforces && (evaluation.count > 1 || !passes)) continue
      if (!passes && evaluation.admitted[place] === 1) continue
      if (chosen < 0) {
        chosen = place
        evaluation.read(place, decision, monotonicMs, wallMs)
        delayMs = decision.delayMs
        continue
      }
      evaluation.read(place, further, monotonicMs, wallMs)
      delayMs = Math.max(delayMs, further.delayMs)
      const isTighter = passes
        ? further.remaining < decision.remaining
        : further.retryAfterMs > decision.retryAfterMs
      if (!isTighter) continue
      chosen = place
      decision.copyNumbers(further)
    }
    decision.allowed = passes
    decision.delayMs = passes ? delayMs : 0
    if (chosen < 0) {
      // Only shadow rules matched: they report themselves and restrict nothing.
      decision.reportNone()
      decision.reason = 'allowed'
      return
    }
    const plan = evaluation.plans[chosen] as RulePlan
    decision.report(plan.spec.name, evaluation.slot[chosen] as number)
    decision.reason = passes ? 'allowed' : evaluation.reason(chosen)
    if (passes) decision.retryAfterMs = 0
  }

  #plain(reason: DecisionReason, allowed: boolean): Decision {
    const decision = this.#decision
    decision.violated = nobody
    decision.shadowViolated = nobody
    decision.reportNone()
    decision.allowed = allowed
    decision.reason = reason
    decision.delayMs = 0
    decision.settlement = null
    return decision
  }

  #countAll(passes: boolean, via: DecisionInterface): void {
    const evaluation = this.#evaluation
    for (let place = 0; place < evaluation.count; place++) {
      const plan = evaluation.plans[place] as RulePlan
      const { counts } = plan
      if (evaluation.admitted[place] === 0) {
        counts.count(plan.enforces ? resultDenied : resultShadowDenied, via)
      } else if (passes) {
        const delayed = (evaluation.delayMs[place] as number) > 0
        counts.count(delayed ? resultDelayed : resultAllowed, via)
      }
    }
  }

  #openSettlement(): OpenSettlement {
    const evaluation = this.#evaluation
    const settlement = new OpenSettlement()
    for (let place = 0; place < evaluation.count; place++) {
      const plan = evaluation.plans[place] as RulePlan
      const slot = evaluation.slot[place] as number
      const cost = evaluation.cost[place] as number
      if (!plan.settles || slot < 0 || cost <= 0 || evaluation.admitted[place] === 0) continue
      const epoch = this.store.slots.epoch[slot] as number
      settlement.add({ plan, slot, epoch, cost })
    }
    return settlement
  }

  /** Tells how a request ended. A settlement of another limiter, or a closed one, does nothing. */
  settle(settlement: Settlement, outcome: Outcome, monotonicMs: number, wallMs: number): void {
    if (!(settlement instanceof OpenSettlement)) return
    const changed = (slot: number) => this.#evaluation.note(slot, monotonicMs, wallMs)
    closeSettlement(settlement, outcome, this.store, changed, monotonicMs, wallMs)
  }

  /** `decisions[result][interface]` of a rule; null for an unknown one. */
  decisions(rule: RuleName): DecisionTable | null {
    return this.#counts.get(rule)?.view() ?? null
  }

  /** Why a request would be answered the way it would. Consumes nothing, makes no counter. */
  explain(facts: RequestFacts, monotonicMs: number, wallMs: number): DecisionExplanation {
    const match = this.#matcher.explain(facts)
    return explainDecision(match, this.#plans, this.#views, monotonicMs, wallMs)
  }

  /** The `n` keys with most denials or hits, of one rule or of all (null). */
  top(
    rule: string | null,
    by: 'denied' | 'hits',
    n: number,
    monotonicMs: number,
    wallMs: number,
  ): CounterView[] {
    const plans = rule === null ? this.#plans : this.#plans.filter(plan => plan.spec.name === rule)
    return this.#views.top(plans, by, n, monotonicMs, wallMs)
  }

  /** A key by its parts or by its hash (16 hex digits); null: no such rule, or not seen here. */
  key(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): CounterView | null {
    const index = this.#rules.rules.findIndex(spec => spec.name === rule)
    const slot = this.#slotOf(index, key)
    if (slot < 0) return null
    const plan = this.#plans[index] as RulePlan
    return this.#views.view(plan, slot, monotonicMs, wallMs)
  }

  /** Gives a key its whole limit back, on all pods; false: not seen here. */
  resetKey(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): boolean {
    const slot = this.#slotOf(
      this.#rules.rules.findIndex(spec => spec.name === rule),
      key,
    )
    if (slot < 0) return false
    const used = this.store.used(slot, monotonicMs, wallMs)
    if (used > 0) this.store.giveBack(slot, used, monotonicMs, wallMs)
    this.store.slots.scarce[slot] = 0
    this.#evaluation.note(slot, monotonicMs, wallMs)
    return true
  }

  #slotOf(index: number, key: readonly string[] | string): number {
    const plan = this.#plans[index]
    if (plan === undefined) return -1
    const { store } = this
    if (typeof key === 'string') {
      const slot = store.findByIdText(key)
      return slot >= 0 && store.slots.identity[slot] === plan.identity ? slot : -1
    }
    return store.find(plan.identity, this.#matcher.keyOf(index, key))
  }

  /** Counters tracked exactly for each rule, in the order of the rules. */
  keyCounts(): number[] {
    const counts = this.store.countKeys()
    return this.#plans.map(plan => counts[plan.identity] ?? 0)
  }

  /**
   * What the fleet lately admitted at most, against what each rule's limit admits: 1 is exact, the
   * excess is the debt that news brought, as a part of the burst. In the order of the rules.
   */
  overshootRatios(monotonicMs: number): number[] {
    return this.#plans.map(plan => 1 + this.store.overshootRatio(plan.identity, monotonicMs))
  }
}

/** A list with one more rule; the usual list of one is the rule's own, so that it costs nothing. */
function withName(list: readonly RuleName[], plan: RulePlan): readonly RuleName[] {
  return list.length === 0 ? plan.names : [...list, plan.spec.name]
}
