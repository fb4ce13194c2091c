/** A core whose answers a test sets, and which writes down what it was asked. */
import type {
  CoreStats,
  Explanation,
  KeyView,
  Matching,
  MemberView,
  RuleStats,
} from '../../src/core-types.js'
import { Engine, type EngineCore } from '../../src/engine.js'
import type { Decision, Outcome, Settlement } from '../../src/limiter/decision.js'
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { RuleSet, RuleSpec } from '../../src/limiter/rule.js'
import type { DecisionInterface, MemberName, OriginId, RuleName } from '../../src/vocabulary.js'
import { plainRule } from './plain-rule.js'

export function ruleSpec(name: string, parts: Partial<RuleSpec> = {}): RuleSpec {
  return {
    ...plainRule,
    name: name as RuleName,
    key: [[{ kind: 'ip' }]],
    limit: { count: 100, windowMs: 1000, calendar: null },
    ...parts,
  }
}

export function ruleSet(...rules: RuleSpec[]): RuleSet {
  return { allow: [], deny: [], rules, hash: 0x1234_5678_9abc }
}

export function decision(parts: Partial<Decision> = {}): Decision {
  return {
    allowed: true,
    reason: 'allowed',
    rule: 'api' as RuleName,
    limit: 100,
    windowMs: 1000,
    remaining: 42,
    resetAfterMs: 580,
    retryAfterMs: 0,
    delayMs: 0,
    violated: [],
    shadowViolated: [],
    settlement: null,
    ...parts,
  }
}

export const denied = (parts: Partial<Decision> = {}): Decision =>
  decision({
    allowed: false,
    reason: 'limited',
    remaining: 0,
    resetAfterMs: 3_000,
    retryAfterMs: 1_200,
    violated: ['api' as RuleName],
    keyHash: '00112233445566ff',
    ...parts,
  })

export function keyView(parts: Partial<KeyView> = {}): KeyView {
  return {
    rule: 'api' as RuleName,
    hash: '00112233445566ff',
    key: ['secret-client'],
    limit: 100,
    capacity: 200,
    windowMs: 1000,
    remaining: 40,
    resetAfterMs: 600,
    scarce: false,
    hits: 70,
    denied: 10,
    parts: [
      { origin: ownOriginId, node: 'pod-a', consumed: 40, returned: 0, offered: 50, ageMs: 0 },
      { origin: peerOriginId, node: 'pod-b', consumed: 20, returned: 0, offered: 20, ageMs: 12.4 },
    ],
    ...parts,
  }
}

export const ownOriginId = 'aaaaaaaaaaaaaaaa' as OriginId
export const peerOriginId = 'bbbbbbbbbbbbbbbb' as OriginId

export function memberView(parts: Partial<MemberView> = {}): MemberView {
  return {
    name: 'pod-a',
    wireName: 'pod-a/x1' as MemberName,
    address: { host: '10.0.0.1', port: 7946 },
    state: 'alive',
    self: true,
    meta: {
      node: 'pod-a',
      origin: ownOriginId,
      start: 1,
      version: '0.1.0',
      configHash: 0x1234_5678_9abc,
      draining: false,
    },
    ...parts,
  }
}

export function coreStats(rules: readonly RuleStats[] = []): CoreStats {
  return {
    rules,
    keyEvictions: 1,
    debtForgiven: 2,
    tableFull: 3,
    entriesHeld: 31,
    entriesEvicted: 32,
    entriesRefused: 33,
    degradedDecisions: 4,
    entriesOut: 5,
    entriesIn: 6,
    messagesIgnored: 7,
    deltaAge: { bounds: [1, 10, 100], counts: [4, 3, 2, 1], sum: 350 },
    peers: { alive: 2, suspect: 1, dead: 0, left: 0 },
    swim: {
      packetsIn: 11,
      packetsOut: 12,
      packetBytesIn: 1_100,
      packetBytesOut: 1_200,
      members: 3,
      droppedNotAllowed: 8,
      droppedMembersMax: 0,
    },
  }
}

export function ruleStats(name: string): RuleStats {
  const none = { proxy: 0, check: 0, auth: 0 }
  return {
    rule: name as RuleName,
    decisions: {
      allowed: { proxy: 5, check: 3, auth: 1 },
      denied: { proxy: 2, check: 0, auth: 0 },
      shadow_denied: none,
      delayed: none,
    },
    keys: 9,
    estimatedOvershootRatio: 1.02,
  }
}

export class FakeCore implements EngineCore {
  ruleSet = ruleSet(ruleSpec('api'))
  /** What `decide` and `check` answer; a function sees the question. */
  next: Decision | ((facts: RequestFacts | null) => Decision) = decision()
  keyViews: KeyView[] = [keyView()]
  memberViews: MemberView[] = [memberView()]
  currentStats: CoreStats = coreStats([ruleStats('api')])
  isSynced = true
  readonly decided: { facts: RequestFacts; via: DecisionInterface }[] = []
  readonly checked: { rule: string; key: readonly string[]; cost: number }[] = []
  readonly settled: { settlement: Settlement; outcome: Outcome }[] = []
  readonly resets: { rule: string; key: readonly string[] | string }[] = []
  draining = false

  decide(facts: RequestFacts, via: DecisionInterface): Decision {
    this.decided.push({ facts, via })
    return typeof this.next === 'function' ? this.next(facts) : this.next
  }
  check(rule: string, key: readonly string[], cost: number): Decision | null {
    this.checked.push({ rule, key, cost })
    if (!this.rule(rule as RuleName)) return null
    return typeof this.next === 'function' ? this.next(null) : this.next
  }
  settle(settlement: Settlement, outcome: Outcome): void {
    this.settled.push({ settlement, outcome })
  }
  explain(facts: RequestFacts): Explanation {
    return {
      allowed: true,
      reason: 'allowed',
      rules: [
        {
          rule: 'api' as RuleName,
          matched: true,
          because: `${facts.method} ${facts.path} matches`,
          key: keyView(),
          verdict: null,
        },
      ],
    }
  }
  matching(): Matching {
    return { outcome: 'rules', rules: this.ruleSet.rules }
  }
  applyRules(rules: RuleSet): void {
    this.ruleSet = rules
  }
  rule(name: RuleName): RuleSpec | undefined {
    return this.ruleSet.rules.find(rule => rule.name === name)
  }
  rules(): RuleSet {
    return this.ruleSet
  }
  synced(): boolean {
    return this.isSynced
  }
  setDraining(): void {
    this.draining = true
  }
  members(): MemberView[] {
    return this.memberViews
  }
  stats(): CoreStats {
    return this.currentStats
  }
  top(rule: string | null, by: 'denied' | 'hits', n: number): KeyView[] {
    return this.keyViews
      .filter(key => rule === null || key.rule === rule)
      .sort((a, b) => b[by] - a[by])
      .slice(0, n)
  }
  key(rule: string, key: readonly string[] | string): KeyView | null {
    return (
      this.keyViews.find(
        view =>
          view.rule === rule &&
          (typeof key === 'string'
            ? view.hash === key
            : JSON.stringify(view.key) === JSON.stringify(key)),
      ) ?? null
    )
  }
  resetKey(rule: string, key: readonly string[] | string): boolean {
    const found = this.key(rule, key) !== null
    if (found) this.resets.push({ rule, key })
    return found
  }
}

/** Both clocks by hand. */
export class FakeClock {
  nowMs = 0
  epochMs = 1_700_000_000_000
  monotonicMs = (): number => this.nowMs
  wallMs = (): number => this.epochMs + this.nowMs
}

export function fakeEngine(): {
  core: FakeCore
  clock: FakeClock
  engine: Engine
  wakes: () => number
} {
  const core = new FakeCore()
  const clock = new FakeClock()
  let wakes = 0
  const engine = new Engine({
    core,
    clock,
    wake: () => {
      wakes++
    },
  })
  return { core, clock, engine, wakes: () => wakes }
}
