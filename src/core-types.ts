/** What `Core` is made with, and what it shows to shells and to the simulator. Plain data only. */
import type { RuleVerdict } from './limiter/decision.js'
import type { MatchOutcome } from './limiter/match-result.js'
import type { RuleSet, RuleSpec } from './limiter/rule.js'
import type { MemberState } from './swim/member.js'
import type { SwimOptions } from './swim/options.js'
import type { Address, DecisionInterface, MemberName, OriginId, RuleName } from './vocabulary.js'

export interface CoreOptions {
  /** The configured node name, at most 253 characters. */
  readonly node: string
  readonly version: string
  /** Wall clock at the process start, milliseconds; the newest start of a node stands for it. */
  readonly startWallMs: number
  readonly swim: SwimOptions
  readonly counters: {
    /** Keys tracked exactly, 1..16777216. */
    readonly keysMax: number
    /** Secret of the counter ids; null: derived from the gossip label. */
    readonly secret: Uint8Array | null
  }
  readonly rules: RuleSet
}

/** A member as `/members` lists it: the newest start of a node stands for it. */
export interface MemberView {
  /** The configured node name (for a foreign member: its wire name). */
  readonly name: string
  readonly wireName: MemberName
  readonly address: Address
  readonly state: MemberState
  readonly self: boolean
  /** Null for a member whose meta is not Grapevine's. */
  readonly meta: NodeMeta | null
}

/** What a Grapevine node says of itself in its memberlist meta. */
export interface NodeMeta {
  readonly node: string
  readonly origin: OriginId
  /** Wall clock milliseconds of the process start; the newest start of a node wins. */
  readonly start: number
  readonly version: string
  readonly configHash: number
  readonly draining: boolean
}

/** One pod's part of a key's usage. */
export interface OriginPart {
  readonly origin: OriginId
  /** The node that drew the origin, when its member is known. */
  readonly node: string | null
  readonly consumed: number
  readonly returned: number
  readonly offered: number
  /** Since this pod last heard of it; 0 for its own part. */
  readonly ageMs: number
}

export interface KeyView {
  readonly rule: RuleName
  /** The keyed 64-bit hash, 16 hex digits. */
  readonly hash: string
  /** The raw key parts where this pod has seen them, else null; hidden unless `revealKeys`. */
  readonly key: readonly string[] | null
  readonly limit: number
  /** Units when nothing is used: a bucket's burst, else the limit; a side of a split has its part. */
  readonly capacity: number
  readonly windowMs: number
  readonly remaining: number
  readonly resetAfterMs: number
  /** The key is being shared out by demand (counters.md §3). */
  readonly scarce: boolean
  readonly hits: number
  readonly denied: number
  readonly parts: readonly OriginPart[]
}

/** Why a request would be answered the way it would; consumes nothing. */
export interface Explanation {
  readonly allowed: boolean
  readonly reason: string
  readonly rules: readonly {
    readonly rule: RuleName
    readonly matched: boolean
    /** Why it does not match, or how its key came about. */
    readonly because: string
    readonly key: KeyView | null
    readonly verdict: Omit<RuleVerdict, 'rule'> | null
  }[]
}

/** The rules a request falls under; meaningful when no list settled it. */
export interface Matching {
  readonly outcome: MatchOutcome
  readonly rules: readonly RuleSpec[]
}

export type DecisionResult = 'allowed' | 'denied' | 'shadow_denied' | 'delayed'

/** Everything counted since start; read at scrape, never reset. */
export interface CoreStats {
  readonly rules: readonly RuleStats[]
  readonly keyEvictions: number
  readonly debtForgiven: number
  /** Times the key table was full and a key was tracked approximately. */
  readonly tableFull: number
  /** Entries of other pods in the pool, dropped to make room, and left out for want of it. */
  readonly entriesHeld: number
  readonly entriesEvicted: number
  readonly entriesRefused: number
  /** Decisions made by `failureMode` because the limiter failed. */
  readonly degradedDecisions: number
  /** Entries of counters sent and received in user messages and snapshots. */
  readonly entriesOut: number
  readonly entriesIn: number
  /** User messages or snapshots that were not ours, too new, cut short or implausible. */
  readonly messagesIgnored: number
  /** Ages of arriving news in ms: upper bounds, counts per bucket (last = +Inf), sum. */
  readonly deltaAge: Histogram
  readonly peers: Readonly<Record<MemberState, number>>
  readonly swim: Readonly<Record<string, number>>
}

export interface RuleStats {
  readonly rule: RuleName
  /** `decisions[result][interface]`. */
  readonly decisions: Readonly<Record<DecisionResult, Readonly<Record<DecisionInterface, number>>>>
  readonly keys: number
  readonly estimatedOvershootRatio: number
}

export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}
