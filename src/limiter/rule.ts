/**
 * A rule set in plain data: what configuration hands to the limiter after it was validated.
 * No parsing here, no counters; see `rule-matcher.ts` for how a request finds its rules.
 */
import type { RuleName } from '../vocabulary.js'

export type Algorithm =
  | 'token-bucket'
  | 'leaky-bucket'
  | 'fixed-window'
  | 'sliding-window'
  | 'sliding-log'

/** Calendar windows begin at midnight, Monday or the first of the month in the rule's zone. */
export type CalendarUnit = 'day' | 'week' | 'month'

/** COUNT/DURATION as written in a rule. */
export interface LimitSpec {
  /** Units admitted per window, > 0, fractions allowed. */
  readonly count: number
  /** Length in milliseconds, > 0; for a calendar unit its nominal length (24 h, 7 d, 30 d). */
  readonly windowMs: number
  readonly calendar: CalendarUnit | null
}

export type KeySource =
  | { readonly kind: 'ip' | 'method' | 'path' | 'host' | 'global' }
  | { readonly kind: 'header' | 'cookie' | 'query' | 'jwt'; readonly name: string }

/** One part of a compound key: the first source that is present is used. Never empty. */
export type KeyPart = readonly KeySource[]

export interface MatchSpec {
  /** Glob over the normalised path, or null for every path. */
  readonly path: string | null
  /** Upper-case methods, or null for every method. */
  readonly method: readonly string[] | null
  /** Lower-case header name to the exact value it must have. */
  readonly header: Readonly<Record<string, string>> | null
}

/** One entry of `allow:` or `deny:`; all given parts must match. */
export interface ListEntry extends MatchSpec {
  /** Network in CIDR form, or null. */
  readonly cidr: string | null
}

export interface TierSpec {
  readonly by: KeyPart
  /** Name of the tier for an absent or unknown value; a key of `limits`. */
  readonly fallback: string
  readonly limits: Readonly<Record<string, LimitSpec>>
}

export interface CostSpec {
  /** Units a request costs when no entry matches; finite, within ±1e9. */
  readonly fallback: number
  readonly match: readonly { readonly match: MatchSpec; readonly cost: number }[]
  /** Lower-case request header believed from trusted callers only, or null. */
  readonly requestHeader: string | null
  /** Lower-case upstream response header that settles the cost, or null. */
  readonly responseHeader: string | null
}

export interface OnExceededSpec {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Body template, or null for the problem+json default. */
  readonly body: string | null
  /** How long a cached 200 may stand in for a 429, in milliseconds; 0 = never. */
  readonly staleForMs: number
}

export interface RuleSpec {
  readonly name: RuleName
  readonly match: MatchSpec | null
  /** Parts of the key, in order; never empty. */
  readonly key: readonly KeyPart[]
  /** Exactly one of `limit`, `tier`, `concurrency` is set. */
  readonly limit: LimitSpec | null
  readonly tier: TierSpec | null
  /** Requests in flight over the fleet. */
  readonly concurrency: number | null
  /** Bucket size in units; null = the limit's count. Token bucket only. */
  readonly burst: number | null
  readonly algorithm: Algorithm
  /** Leaky bucket: how many requests may wait; null = no bound but `maxWaitMs`. */
  readonly queue: number | null
  /** Leaky bucket: the longest delay in milliseconds; null = no bound but `queue`. */
  readonly maxWaitMs: number | null
  readonly onPartition: 'open' | 'share' | 'closed'
  readonly failureMode: 'open' | 'closed'
  readonly mode: 'enforce' | 'shadow'
  /** What an absent key does. */
  readonly missing: 'ip' | 'skip' | 'deny'
  readonly stop: boolean
  readonly count: 'all' | 'success' | 'failure'
  readonly cost: CostSpec
  readonly onExceeded: OnExceededSpec
  /** IANA zone of calendar windows. */
  readonly timezone: string
}

export interface RuleSet {
  readonly allow: readonly ListEntry[]
  readonly deny: readonly ListEntry[]
  readonly rules: readonly RuleSpec[]
  /** First 48 bits of SHA-256 over the canonical rules, as a number: equal rules, equal hash. */
  readonly hash: number
}
