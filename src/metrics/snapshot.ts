/** All that counts, in plain numbers, as one scrape sees it. Shells hand in what they have. */
import type { CoreStats } from '../core-types.js'
import type { ReasonCounts } from '../engine.js'
import type { BucketHistogram } from '../lib/bucket-histogram.js'
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

/** What the proxy has seen; absent without a proxy. */
export interface ProxyStats {
  /** Responses by class: `2xx` and so on. */
  readonly responses: Readonly<Record<string, number>>
  /** Requests to the upstream that failed, by reason. */
  readonly upstreamErrors: Readonly<Record<string, number>>
  /** From the request's head to the response's end, seconds. */
  readonly durations: BucketHistogram
  readonly inflight: number
  readonly upgraded: number
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
  /** "client hit its limit" lines that were left out. */
  readonly denialsUnlogged: number
}
