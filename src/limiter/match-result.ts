/** What `RuleMatcher` found out about one request; one object serves every request in turn. */
import type { LimitSpec } from './rule.js'

export type MatchOutcome =
  /** `count` rules apply, possibly none. */
  | 'rules'
  /** An `allow:` entry matched: neither limited nor counted. */
  | 'exempt'
  /** A `deny:` entry matched. */
  | 'blocked'
  /** The path may be read in several ways and something loaded depends on the path: 400. */
  | 'ambiguous-path'

/**
 * Reused: read it before the next match. Only the first `count` places of the lists mean anything.
 */
export interface MatchResult {
  outcome: MatchOutcome
  count: number
  /** Index of the rule in `RuleSet.rules`, ascending. */
  readonly rule: Int32Array
  /** Canonical key text, see `key-source.ts`; '' where `missing` is set. */
  readonly key: string[]
  /** Units the request costs by this rule, finite, within ±1e9. */
  readonly cost: Float64Array
  /** The limit in force (the tier's, if the rule has tiers); null for a concurrency rule. */
  readonly limit: (LimitSpec | null)[]
  /** 1: the key is absent and the rule says `missing: deny`. */
  readonly missing: Uint8Array
}

/** A result with room for `rulesMax` rules, at least the number of rules loaded. */
export function createMatchResult(rulesMax: number): MatchResult {
  return {
    outcome: 'rules',
    count: 0,
    rule: new Int32Array(rulesMax),
    key: new Array<string>(rulesMax).fill(''),
    cost: new Float64Array(rulesMax),
    limit: new Array<LimitSpec | null>(rulesMax).fill(null),
    missing: new Uint8Array(rulesMax),
  }
}

/** Why one rule applies to a request or does not, in words. */
export interface RuleExplanation {
  /** Index of the rule in `RuleSet.rules`. */
  readonly rule: number
  readonly matched: boolean
  readonly because: string
  /** Canonical key text, null when the rule does not apply or its key is missing. */
  readonly key: string | null
  /** The raw parts of the key, in order; null as `key`. */
  readonly keyParts: readonly string[] | null
  readonly limit: LimitSpec | null
  readonly cost: number
}

export interface MatchExplanation {
  readonly outcome: MatchOutcome
  /** What decided `outcome`, in words. */
  readonly because: string
  /** One for every rule loaded, in order. */
  readonly rules: readonly RuleExplanation[]
}
