/**
 * Says rule by rule what would happen to a request. Looks only: no counter is made, nothing is
 * charged.
 */
import type { RuleName } from '../vocabulary.js'
import type { RuleVerdict } from './decision.js'
import { unitEpsilon } from './fair-share.js'
import type { CounterView, KeyViews } from './key-views.js'
import type { MatchExplanation, RuleExplanation } from './match-result.js'
import type { LimitPlan, RulePlan } from './rule-plan.js'

type Verdict = Omit<RuleVerdict, 'rule'>

interface ExplainedRule {
  readonly rule: RuleName
  readonly matched: boolean
  readonly because: string
  readonly key: CounterView | null
  readonly verdict: Verdict | null
}

/** The shape of `Explanation` in core-types. */
export interface DecisionExplanation {
  readonly allowed: boolean
  readonly reason: string
  readonly rules: readonly ExplainedRule[]
}

export function explainDecision(
  match: MatchExplanation,
  plans: readonly RulePlan[],
  views: KeyViews,
  monotonicMs: number,
  wallMs: number,
): DecisionExplanation {
  const rules = match.rules.map(rule => {
    const plan = plans[rule.rule] as RulePlan
    return explainRule(plan, rule, views, monotonicMs, wallMs)
  })
  if (match.outcome !== 'rules') {
    return { allowed: match.outcome === 'exempt', reason: match.because, rules }
  }
  const denies = rules.filter(
    (rule, index) => rule.verdict?.allowed === false && plans[index]!.enforces,
  )
  const matched = rules.some(rule => rule.matched)
  const names = denies.map(rule => rule.rule).join(', ')
  const reason = denies.length > 0 ? `limited by ${names}` : matched ? 'allowed' : 'no rule matches'
  return { allowed: denies.length === 0, reason, rules }
}

function explainRule(
  plan: RulePlan,
  rule: RuleExplanation,
  views: KeyViews,
  monotonicMs: number,
  wallMs: number,
): ExplainedRule {
  const { matched, because } = rule
  const name = plan.spec.name
  if (!matched) return { rule: name, matched, because, key: null, verdict: null }
  const limit = plan.limit(rule.limit)
  const untouched = {
    allowed: rule.key !== null,
    limit: limit.count,
    windowMs: limit.windowMs,
    remaining: rule.key === null ? 0 : Math.floor(limit.capacity + unitEpsilon),
    resetAfterMs: 0,
    retryAfterMs: 0,
    delayMs: 0,
  }
  if (rule.key === null) return { rule: name, matched, because, key: null, verdict: untouched }
  const { store } = views
  const slot = store.find(plan.identity, rule.key)
  if (slot < 0) {
    const verdict = { ...untouched, allowed: rule.cost <= limit.capacity + unitEpsilon }
    return { rule: name, matched, because, key: null, verdict }
  }
  const key = views.view(plan, slot, monotonicMs, wallMs)
  const standing = standingOf(
    { views, slot, limit, cost: rule.cost, left: key.remaining },
    monotonicMs,
    wallMs,
  )
  const verdict = {
    ...untouched,
    allowed: standing.allowed,
    remaining: standing.remaining,
    resetAfterMs: key.resetAfterMs,
    retryAfterMs: standing.allowed ? 0 : Math.max(1, Math.ceil(standing.waitMs)),
    delayMs:
      plan.isLeaky && standing.allowed
        ? store.used(slot, monotonicMs, wallMs) * (store.slots.periodMs[slot] as number)
        : 0,
  }
  return { rule: name, matched, because, key, verdict }
}

interface Standing {
  readonly allowed: boolean
  readonly remaining: number
  readonly waitMs: number
}

/**
 * What a known counter says to `cost` more units under `limit`, which may not be the one in force
 * yet.
 */
function standingOf(
  counter: {
    readonly views: KeyViews
    readonly slot: number
    readonly limit: LimitPlan
    readonly cost: number
    /** What this pod may take under the limit in force. */
    readonly left: number
  },
  monotonicMs: number,
  wallMs: number,
): Standing {
  const { views, slot, limit, cost, left } = counter
  const { store } = views
  if (store.slots.shape[slot] === limit.shape) {
    store.forecast.findWait(slot, Math.max(cost, 0), monotonicMs, wallMs)
    const waitMs = store.forecast.foundMs
    return { allowed: waitMs === 0 && left + 1 > cost, remaining: left, waitMs }
  }
  // A client that changed its tier: the next request carries over what is used, looking does not.
  const room = limit.capacity - store.used(slot, monotonicMs, wallMs)
  const remaining = Math.max(0, Math.floor(room + unitEpsilon))
  const missing = Math.max(0, cost - room)
  const waitMs = limit.rate > 0 ? missing / limit.rate : 0
  return { allowed: cost <= room + unitEpsilon, remaining, waitMs }
}
