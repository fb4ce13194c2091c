import type { WindowClock } from './lib/window-clock.js'

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

/** How a counter's totals become a level; part of the counter's identity. */
export type CounterFamily = 'bucket' | 'fixed' | 'sliding' | 'log' | 'gauge'

/**
 * The numbers under which a counter is read at present; two pods may differ in them for a while.
 */
export interface CounterShape {
  readonly family: CounterFamily
  /** Burst of a bucket, limit of a window or gauge: units, > 0. */
  readonly capacity: number
  /** Bucket: milliseconds to refill one unit. Window, log: length in milliseconds. Gauge: 0. */
  readonly periodMs: number
  /** Windows only. */
  readonly clock: WindowClock | null
  readonly onPartition: 'open' | 'share' | 'closed'
}
