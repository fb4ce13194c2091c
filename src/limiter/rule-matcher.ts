/**
 * Which rules a request is subject to, under which keys, at what cost and by which limit.
 * Everything is compiled when rules are loaded; a match allocates nothing but a key text that its
 * rule has not seen lately. Knows no counters and takes no decision.
 */
import { CompiledKey } from './compiled-key.js'
import { CompiledEntry, CompiledMatch } from './compiled-match.js'
import { readSource, sourceText } from './key-source.js'
import type {
  MatchExplanation,
  MatchOutcome,
  MatchResult,
  RuleExplanation,
} from './match-result.js'
import type { RequestFacts } from './request-facts.js'
import type { CostSpec, KeyPart, LimitSpec, RuleSet, RuleSpec, TierSpec } from './rule.js'

/** Greatest amount of a cost, either sign. */
export const costMax = 1e9

interface CompiledRule {
  readonly spec: RuleSpec
  readonly match: CompiledMatch
  readonly key: CompiledKey
  readonly costs: readonly { readonly match: CompiledMatch; readonly cost: number }[]
  readonly tiers: ReadonlyMap<string, LimitSpec> | null
}

export class RuleMatcher {
  readonly #rules: readonly CompiledRule[]
  readonly #allow: readonly CompiledEntry[]
  readonly #deny: readonly CompiledEntry[]
  /**
   * A rule or a `deny:` entry looks at the path, so a request with an ambiguous one is refused. An
   * `allow:` entry alone is no reason: not exempting such a request is safe.
   */
  readonly usesPath: boolean

  /** Throws on rules that validation should have refused. */
  constructor(rules: RuleSet) {
    this.#rules = rules.rules.map(compileRule)
    this.#allow = rules.allow.map(entry => new CompiledEntry(entry, true))
    this.#deny = rules.deny.map(entry => new CompiledEntry(entry, false))
    this.usesPath = this.#deny.some(entry => entry.usesPath) || this.#rules.some(ruleUsesPath)
  }

  /**
   * Fills `out`. `allow:` wins over `deny:`, and both over rules. A rule whose key is absent under
   * `missing: skip` counts as not matching, its `stop` included.
   */
  match(facts: RequestFacts, out: MatchResult): void {
    out.count = 0
    out.outcome = this.#screen(facts)
    if (out.outcome !== 'rules') return
    for (let index = 0; index < this.#rules.length; index++) {
      const rule = this.#rules[index]!
      if (!rule.match.test(facts)) continue
      const key = rule.key.read(facts)
      if (key === null && rule.spec.missing === 'skip') continue
      const place = out.count++
      out.rule[place] = index
      out.key[place] = key ?? ''
      out.missing[place] = key === null ? 1 : 0
      out.cost[place] = costOf(rule, facts)
      out.limit[place] = limitOf(rule, facts)
      if (rule.spec.stop) return
    }
  }

  #screen(facts: RequestFacts): MatchOutcome {
    if (anyEntry(this.#allow, facts)) return 'exempt'
    if (facts.path === null && this.usesPath) return 'ambiguous-path'
    return anyEntry(this.#deny, facts) ? 'blocked' : 'rules'
  }

  /**
   * The canonical key of `rule` for values a caller spells out, each as the first alternative of
   * its part: the same counter as a request with these values. `global` parts may be left out.
   */
  keyOf(rule: number, parts: readonly string[]): string {
    return this.#rules[rule]!.key.fromValues(parts)
  }

  /** How many values `keyOf` needs for `rule`: its parts without the `global` ones. */
  valuesExpected(rule: number): number {
    return this.#rules[rule]!.key.valuesExpected
  }

  /**
   * The limit in force for values as in `keyOf`: a tier is found when it is chosen by something
   * that is also the first alternative of a key part, else the fallback tier stands. Null:
   * concurrency.
   */
  limitOf(rule: number, parts: readonly string[]): LimitSpec | null {
    const { spec, tiers } = this.#rules[rule]!
    if (spec.tier === null || tiers === null) return spec.limit
    const by = spec.tier.by.map(sourceText)
    const withoutGlobals = spec.key.filter(part => part[0]!.kind !== 'global')
    const given = parts.length < spec.key.length ? withoutGlobals : spec.key
    const place = given.findIndex(part => by.includes(sourceText(part[0]!)))
    return tierLimit(spec.tier, tiers, place < 0 ? undefined : parts[place])
  }

  /** What `match` would do, in words, for every rule; consumes and changes nothing. */
  explain(facts: RequestFacts): MatchExplanation {
    const outcome = this.#screen(facts)
    let stoppedBy: string | null = outcome === 'rules' ? null : outcome
    const rules = this.#rules.map((rule, index) => {
      const explanation = explainRule(rule, index, facts, stoppedBy)
      if (explanation.matched && rule.spec.stop) stoppedBy = `rule ${rule.spec.name} says stop`
      return explanation
    })
    return { outcome, because: this.#outcomeWords(outcome, facts), rules }
  }

  #outcomeWords(outcome: MatchOutcome, facts: RequestFacts): string {
    switch (outcome) {
      case 'exempt':
        return `allow entry: ${this.#allow.find(entry => entry.test(facts))!.text}`
      case 'blocked':
        return `deny entry: ${this.#deny.find(entry => entry.test(facts))!.text}`
      case 'ambiguous-path':
        return 'the path can be read in several ways and a rule depends on it'
      case 'rules':
        return 'no allow or deny entry matches'
    }
  }
}

function anyEntry(entries: readonly CompiledEntry[], facts: RequestFacts): boolean {
  for (let index = 0; index < entries.length; index++) {
    if (entries[index]!.test(facts)) return true
  }
  return false
}

function compileRule(spec: RuleSpec): CompiledRule {
  return {
    spec,
    match: new CompiledMatch(spec.match),
    key: new CompiledKey(spec.key, spec.missing),
    costs: spec.cost.match.map(({ match, cost }) => ({ match: new CompiledMatch(match), cost })),
    tiers: spec.tier === null ? null : new Map(Object.entries(spec.tier.limits)),
  }
}

function ruleUsesPath(rule: CompiledRule): boolean {
  const tierByPath = rule.spec.tier?.by.some(source => source.kind === 'path') ?? false
  const costByPath = rule.costs.some(({ match }) => match.usesPath)
  return rule.match.usesPath || rule.key.usesPath || tierByPath || costByPath
}

function costOf(rule: CompiledRule, facts: RequestFacts): number {
  const { requestHeader, fallback } = rule.spec.cost
  if (requestHeader !== null && facts.peerTrusted) {
    const claimed = parseCost(facts.header(requestHeader))
    if (claimed !== null) return claimed
  }
  for (let index = 0; index < rule.costs.length; index++) {
    const entry = rule.costs[index]!
    if (entry.match.test(facts)) return entry.cost
  }
  return fallback
}

/**
 * A cost written in a header: plain decimal digits with an optional fraction, 0..1e9; else null.
 * Never negative: giving back is for callers of the decision API.
 */
export function parseCost(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,10}(?:\.\d{1,9})?$/.test(text)) return null
  const cost = Number(text)
  return cost <= costMax ? cost : null
}

function limitOf(rule: CompiledRule, facts: RequestFacts): LimitSpec | null {
  const { tier, limit } = rule.spec
  if (tier === null || rule.tiers === null) return limit
  return tierLimit(tier, rule.tiers, firstPresent(tier.by, facts))
}

function tierLimit(
  tier: TierSpec,
  tiers: ReadonlyMap<string, LimitSpec>,
  value: string | undefined,
): LimitSpec {
  const named = value === undefined ? undefined : tiers.get(value)
  return named ?? tiers.get(tier.fallback)!
}

function firstPresent(part: KeyPart, facts: RequestFacts): string | undefined {
  for (let index = 0; index < part.length; index++) {
    const value = readSource(part[index]!, facts)
    if (value !== undefined) return value
  }
  return undefined
}

function explainRule(
  rule: CompiledRule,
  index: number,
  facts: RequestFacts,
  stoppedBy: string | null,
): RuleExplanation {
  const none = { rule: index, matched: false, key: null, keyParts: null, limit: null, cost: 0 }
  if (stoppedBy !== null) return { ...none, because: `not reached: ${stoppedBy}` }
  const mismatch = rule.match.mismatch(facts)
  if (mismatch !== null) return { ...none, because: mismatch }
  const cost = costOf(rule, facts)
  const limit = limitOf(rule, facts)
  const key = rule.key.read(facts)
  if (key === null) {
    const because = `no ${rule.key.absent(facts).join(', ')}; missing: ${rule.spec.missing}`
    return { ...none, matched: rule.spec.missing === 'deny', because, limit, cost }
  }
  const { values, because } = rule.key.explain(facts)
  const tier = tierWords(rule.spec.tier, facts)
  const costs = costWords(rule.spec.cost, cost)
  return {
    ...none,
    matched: true,
    because: [because, tier, costs].filter(words => words !== null).join('; '),
    key,
    keyParts: values,
    limit,
    cost,
  }
}

function tierWords(tier: TierSpec | null, facts: RequestFacts): string | null {
  if (tier === null) return null
  const value = firstPresent(tier.by, facts)
  const by = tier.by.map(sourceText).join(' | ')
  if (value === undefined) return `tier ${tier.fallback}, as ${by} is absent`
  if (Object.hasOwn(tier.limits, value)) return `tier ${value} from ${by}`
  return `tier ${tier.fallback}, as ${by} names no tier`
}

function costWords(spec: CostSpec, cost: number): string | null {
  return cost === spec.fallback ? null : `cost ${cost}`
}
