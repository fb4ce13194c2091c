/** What the proxy can be told, with the defaults. Plain data; validated by `config/`. */
import type { HeaderOptions } from '../http/rate-limit-headers.js'
import type { Decision, Outcome, Settlement } from '../limiter/decision.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { RuleSet, RuleSpec } from '../limiter/rule.js'
import type { Random } from '../ports.js'
import type { DecisionInterface } from '../vocabulary.js'
import type { StaleLimits } from './stale-cache.js'

/** Where requests go. `h2c` is HTTP/2 with prior knowledge over plain TCP. */
export type UpstreamTarget =
  | { readonly kind: 'http' | 'h2c'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** Times in milliseconds. They are looked at every `sweepMs`, so each may last that much longer. */
export interface ProxyTimeouts {
  /** From the first byte of a request head to its blank line. Slowloris ends here with 408. */
  readonly requestHeadMs: number
  /** A kept-alive client connection without a request. Longer than a cloud balancer's 60 s. */
  readonly clientIdleMs: number
  /** Without a byte of a request or response body moving, either way. */
  readonly bodyIdleMs: number
  /** Connecting to the upstream. */
  readonly connectMs: number
  /** Waiting for a place in the pool when all upstream connections are busy; then 503. */
  readonly queueMs: number
  /** From the whole request sent to the response head; then 504. */
  readonly responseHeadMs: number
  /** An idle upstream connection, when the upstream's Keep-Alive header names no time. Shorter than
   *  the 5 s that Node.js and uvicorn wait, so that we close first. */
  readonly upstreamIdleMs: number
  /** An upgraded connection without traffic. */
  readonly tunnelIdleMs: number
  /** Discarding the rest of a refused request's body, so that the client can read the answer. */
  readonly lingerMs: number
  /** How often deadlines are looked at. */
  readonly sweepMs: number
}

/** Bounds; reaching one is counted in the stats. */
export interface ProxyLimits {
  /** Client connections at a time; further ones are closed at once. */
  readonly clientsMax: number
  /** Upstream connections at a time, idle and upgraded ones included. */
  readonly upstreamsMax: number
  /** Requests waiting for an upstream connection; beyond: 503. */
  readonly queueMax: number
  /** Request or response head in bytes; beyond: 431 (request) or 502 (response). */
  readonly headBytesMax: number
  /** Header fields in a head; beyond: 431 or 502. */
  readonly headerCountMax: number
  /** Request target in bytes; beyond: 414. */
  readonly targetBytesMax: number
  /** Bytes of a refused request's body that are read and dropped to keep its connection. */
  readonly lingerBytesMax: number
}

export const defaultTimeouts: ProxyTimeouts = {
  requestHeadMs: 15_000,
  clientIdleMs: 75_000,
  bodyIdleMs: 300_000,
  connectMs: 2_000,
  queueMs: 5_000,
  responseHeadMs: 60_000,
  upstreamIdleMs: 4_000,
  tunnelIdleMs: 3_600_000,
  lingerMs: 2_000,
  sweepMs: 250,
}

export const defaultLimits: ProxyLimits = {
  clientsMax: 16_384,
  upstreamsMax: 1_024,
  queueMax: 4_096,
  headBytesMax: 32_768,
  headerCountMax: 200,
  targetBytesMax: 16_384,
  lingerBytesMax: 262_144,
}

export interface ProxyOptions {
  readonly listen: { readonly host: string; readonly port: number }
  readonly upstream: UpstreamTarget
  /** Whether an address (canonical text, or `unix`) is a trusted proxy. */
  readonly trusts: (address: string) => boolean
  readonly headers: HeaderOptions
  readonly timeouts?: Partial<ProxyTimeouts>
  readonly limits?: Partial<ProxyLimits>
  /** Memory of `staleFor`. */
  readonly stale?: Partial<StaleLimits>
}

/** What the proxy needs of the engine, by shape. */
export interface ProxyEngine {
  decide(facts: RequestFacts, via: DecisionInterface): Decision
  settle(settlement: Settlement, outcome: Outcome): void
  rule(name: string): RuleSpec | undefined
  rules(): RuleSet
  needs(): { readonly path: boolean; readonly jwt: boolean }
  wallMs(): number
  /** Wall time of the latest decision. */
  readonly decidedWallMs: number
}

export type Claims = Readonly<Record<string, unknown>>

/** Verified claims of a bearer token: at once when known, else later; null: none or not valid. */
export type VerifyToken = (
  authorization: string,
  ip: string,
) => Claims | null | Promise<Claims | null>

export interface ProxyPorts {
  readonly engine: ProxyEngine
  /** Jitter of Retry-After. */
  readonly random: Random
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
  /** Absent: `jwt:` keys are always absent. */
  readonly verifyToken?: VerifyToken
}
