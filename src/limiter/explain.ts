/** Says rule by rule what would happen to a request. Looks only: no counter is made, nothing is charged. */
import type { RuleName } from '../vocabulary.js'
import type { RuleVerdict } from './decision.js'
import { unitEpsilon } from './fair-share.js'
import type { CounterView, KeyViews } from './key-views.js'
import type { MatchExplanation, RuleExplanation } from './match-result.js'
import type { RulePlan } from './rule-plan.js'

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
  const used = store.used(slot, monotonicMs, wallMs)
  const waitMs = store.waitMs(slot, Math.max(rule.cost, 0), monotonicMs, wallMs)
  const allowed = waitMs === 0 && key.remaining + 1 > rule.cost
  const verdict = {
    ...untouched,
    allowed,
    remaining: key.remaining,
    resetAfterMs: key.resetAfterMs,
    retryAfterMs: allowed ? 0 : Math.max(1, Math.ceil(waitMs)),
    delayMs: plan.isLeaky && allowed ? used * (store.slots.periodMs[slot] as number) : 0,
  }
  return { rule: name, matched, because, key, verdict }
}
