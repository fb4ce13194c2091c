/** All that counts, in plain numbers, as one scrape sees it. Shells hand in what they have. */
import type { CoreStats } from '../core-types.js'
import type { ReflectorStats } from '../discovery/reflector.js'
import type { ReasonCounts } from '../engine.js'
import type { BucketHistogram } from '../lib/bucket-histogram.js'
import type { ProxyStats } from '../proxy/proxy-stats.js'
import type { RuleName } from '../vocabulary.js'

/** How the last reload of the rules went. */
export interface ConfigStatus {
  readonly lastReloadSuccessful: boolean
  /** Unix time in seconds of the last successful load; 0: never. */
  readonly lastSuccessSeconds: number
  readonly reloadsSucceeded: number
  readonly reloadsFailed: number
}

/** What the gossip sockets could not send or take. */
export interface SocketStats {
  readonly sendErrors: number
  readonly sendQueueFull: number
}

export interface TokenStats {
  readonly verified: number
  readonly rejected: number
  readonly throttled: number
  readonly cacheHits: number
  readonly keySetFailures: number
}

export interface Snapshot {
  readonly core: CoreStats
  /** Rules in force: their series exist, others do not. */
  readonly rules: readonly RuleName[]
  /** First 48 bits of the hash over the rules in force. */
  readonly configHash: number
  readonly durations: BucketHistogram
  readonly reasons: ReasonCounts
  readonly coreFailures: number
  readonly config: ConfigStatus
  readonly sockets: SocketStats | null
  readonly proxy: ProxyStats | null
  readonly tokens: TokenStats | null
  /** What is watched through the Kubernetes API; empty: nothing. */
  readonly kubernetes: readonly ReflectorStats[]
  /** "client hit its limit" lines that were left out. */
  readonly denialsUnlogged: number
}
