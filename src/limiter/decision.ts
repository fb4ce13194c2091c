/** The answer to one request, and what is owed after it. */
import type { RuleName } from '../vocabulary.js'

export type DecisionReason =
  /** Charged and admitted by every matching rule. */
  | 'allowed'
  /** No rule matched, or every match was skipped for an absent key. */
  | 'no-rule'
  /** An `allow:` entry matched: neither limited nor counted. */
  | 'exempt'
  /** A `deny:` entry matched: 403. */
  | 'blocked'
  /** A rule had too little left: 429. */
  | 'limited'
  /** `missing: deny` and the key is absent: 429 without a retry time. */
  | 'missing-key'
  /** The limiter or its table failed and `failureMode` decided (see `allowed`). */
  | 'degraded'

/** What one matching rule said. */
export interface RuleVerdict {
  readonly rule: RuleName
  readonly allowed: boolean
  /** The limit's COUNT in force (of the tier, if there is one). */
  readonly limit: number
  /** The limit's window in milliseconds. */
  readonly windowMs: number
  /** Whole units left, never negative. */
  readonly remaining: number
  /** Until full again (windows: until the end), milliseconds. */
  readonly resetAfterMs: number
  /** Denied: until this request could pass by this rule; else 0. */
  readonly retryAfterMs: number
  /** Leaky bucket: how long to hold the request back; the slot is taken. */
  readonly delayMs: number
}

/**
 * The limiter may reuse one object for every decision: read it before the next call, copy what is
 * kept (`settlement` is the caller's own).
 */
export interface Decision extends Omit<RuleVerdict, 'rule'> {
  readonly reason: DecisionReason
  /** The most restrictive matching rule, whose numbers stand here; null when none matched. */
  readonly rule: RuleName | null
  /**
   * Hash of the key that `rule` counted, 16 hex digits, for logs and `X-RateLimit-Key-Hash`; null
   * or absent when none was counted. May be a getter that makes the text on demand.
   */
  readonly keyHash?: string | null
  /** Rules that denied (enforcing ones only); empty when allowed. */
  readonly violated: readonly RuleName[]
  /** Shadow rules that would have denied. */
  readonly shadowViolated: readonly RuleName[]
  /** To be handed to `settle` once the response's fate is known; null when nothing is owed. */
  readonly settlement: Settlement | null
}

/** An opaque claim on reserved units; settle exactly once. A second call does nothing. */
export interface Settlement {
  readonly open: boolean
}

/** How a request ended, for `count: success|failure`, settled costs and concurrency. */
export interface Outcome {
  /** Response status, 0 when there was none. */
  readonly status: number
  readonly aborted: boolean
  /** Value of the rule's `cost.responseHeader`s by lower-case name; undefined when absent. */
  header(name: string): string | undefined
}
