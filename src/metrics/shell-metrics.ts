/** Metrics of the proxy and of token verification. Absent where the shell is. */
import { byLabel, type MetricDefinition, ofHistogram, one } from './scraped-metric.js'
import type { Snapshot } from './snapshot.js'

export const proxyMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'http_requests_total',
    type: 'counter',
    labels: ['code_class'],
    help: 'Requests that the proxy answered, by class of the status, its own and the upstream’s.',
    read: ({ proxy }) => (proxy ? byLabel('code_class', proxy.responses) : []),
  },
  {
    name: 'http_request_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'From a request’s head to its response’s end.',
    read: ({ proxy }) => (proxy ? ofHistogram(proxy.durations) : []),
  },
  {
    name: 'upstream_errors_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Requests to the upstream that failed.',
    read: ({ proxy }) => (proxy ? byLabel('reason', proxy.upstreamErrors) : []),
  },
  {
    name: 'inflight_requests',
    type: 'gauge',
    labels: [],
    help: 'Requests that the proxy is working on.',
    read: ({ proxy }) => (proxy ? one(proxy.inflight) : []),
  },
  {
    name: 'upgraded_connections',
    type: 'gauge',
    labels: [],
    help: 'Open WebSockets and other upgraded connections.',
    read: ({ proxy }) => (proxy ? one(proxy.upgraded) : []),
  },
]

export const tokenMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'jwt_verifications_total',
    type: 'counter',
    labels: ['result'],
    help: 'Bearer tokens looked at: verified, rejected, throttled, or known from before (cached).',
    read: ({ tokens }) =>
      tokens
        ? byLabel('result', {
            verified: tokens.verified,
            rejected: tokens.rejected,
            throttled: tokens.throttled,
            cached: tokens.cacheHits,
          })
        : [],
  },
  {
    name: 'jwks_failures_total',
    type: 'counter',
    labels: [],
    help: 'Times the key set could not be read; the last known keys stayed.',
    read: ({ tokens }) => (tokens ? one(tokens.keySetFailures) : []),
  },
]
