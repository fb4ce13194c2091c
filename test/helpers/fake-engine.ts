/** An engine for proxy tests: each test says what it decides, and reads what was settled. */
import type { Decision, Outcome, Settlement } from '../../src/limiter/decision.js'
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { RuleSet, RuleSpec } from '../../src/limiter/rule.js'
import type { ProxyEngine } from '../../src/proxy/options.js'
import type { RuleName } from '../../src/vocabulary.js'

export const api = 'api' as RuleName

export const allowed: Decision = {
  allowed: true,
  reason: 'allowed',
  rule: api,
  limit: 100,
  windowMs: 1000,
  remaining: 42,
  resetAfterMs: 580,
  retryAfterMs: 0,
  delayMs: 0,
  violated: [],
  shadowViolated: [],
  settlement: null,
}

export const limited: Decision = {
  ...allowed,
  allowed: false,
  reason: 'limited',
  remaining: 0,
  retryAfterMs: 1200,
  violated: [api],
}

export const noRule: Decision = { ...allowed, reason: 'no-rule', rule: null, limit: 0 }

export interface Settled {
  readonly status: number
  readonly aborted: boolean
  readonly cost: string | undefined
}

export class FakeEngine implements ProxyEngine {
  /** What it decides; may look at the facts. */
  verdict: (facts: RequestFacts) => Decision = () => noRule
  looksAt = { path: false, jwt: false }
  spec: RuleSpec | undefined
  ruleSet: RuleSet = { allow: [], deny: [], rules: [], hash: 0 }
  readonly decided: RequestFacts[] = []
  readonly settled: Settled[] = []
  /** Every decision owes a settlement. */
  owes = false

  decide(facts: RequestFacts): Decision {
    this.decided.push(facts)
    const decision = this.verdict(facts)
    return this.owes && decision.allowed ? { ...decision, settlement: { open: true } } : decision
  }

  settle(_settlement: Settlement, outcome: Outcome): void {
    const { status, aborted } = outcome
    this.settled.push({ status, aborted, cost: outcome.header('x-request-cost') })
  }

  rule(): RuleSpec | undefined {
    return this.spec
  }

  rules(): RuleSet {
    return this.ruleSet
  }

  needs(): { path: boolean; jwt: boolean } {
    return this.looksAt
  }

  get decidedWallMs(): number {
    return this.wallMs()
  }

  wallMs(): number {
    return Date.now()
  }
}
