/** Names and ids that several rooms of the core share. Nothing here has behaviour. */

declare const brand: unique symbol
type Brand<T, B extends string> = T & { readonly [brand]: B }

/** A rule's configured name: `[a-z0-9][a-z0-9-]{0,62}`. The identity of its counters. */
export type RuleName = Brand<string, 'RuleName'>

/** A memberlist name on the wire; for a sidecar the node's name with a per-start suffix. */
export type MemberName = Brand<string, 'MemberName'>

/** 16 lower-case hex digits drawn at process start: whose totals these are. */
export type OriginId = Brand<string, 'OriginId'>

/** A UDP or TCP end point as text, for sockets; never the identity bytes of a member. */
export interface Address {
  /** IPv4 dotted or IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

/** How a request reached the limiter; a closed set, used as a metric label. */
export type DecisionInterface = 'proxy' | 'check' | 'auth'
