/** What all connections of one proxy share. */
import type { DenialMemo } from './denial-memo.js'
import type { ProxyLimits, ProxyOptions, ProxyPorts, ProxyTimeouts } from './options.js'
import type { ProxyCounters } from './proxy-stats.js'
import type { MemoBudget } from './request-memo.js'
import type { StaleCache } from './stale-cache.js'
import type { UpstreamPool } from './upstream-pool.js'

export interface ProxyContext {
  readonly options: ProxyOptions
  readonly ports: ProxyPorts
  readonly timeouts: ProxyTimeouts
  readonly limits: ProxyLimits
  readonly pool: UpstreamPool
  readonly counters: ProxyCounters
  readonly denials: DenialMemo
  readonly memoBudget: MemoBudget
  /** Responses that may stand in for a denial. */
  readonly stale: StaleCache
  /** The Host of requests that came without one. */
  readonly upstreamHost: string
  /** Each response asks its client to close the connection. */
  draining: boolean
  /** New requests are refused with 503. */
  closing: boolean
}
