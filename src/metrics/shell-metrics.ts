/** Metrics of the proxy and of token verification. Absent where the shell is. */
import { byLabel, type MetricDefinition, one } from './scraped-metric.js'
import type { Snapshot } from './snapshot.js'

export const proxyMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'http_requests_total',
    type: 'counter',
    labels: ['class'],
    help: 'Requests that the proxy has done with: class of the status, upgraded, or aborted.',
    read: ({ proxy }) => (proxy ? byLabel('class', proxy.requests) : []),
  },
  {
    name: 'http_refused_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Requests that the proxy refused before any rule was asked.',
    read: ({ proxy }) => (proxy ? byLabel('reason', proxy.refused) : []),
  },
  {
    name: 'upstream_errors_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Requests that the upstream could not answer.',
    read: ({ proxy }) => (proxy ? byLabel('reason', proxy.upstreamErrors) : []),
  },
  {
    name: 'stale_answers_total',
    type: 'counter',
    labels: [],
    help: 'Denied requests that were answered with a kept response (staleFor).',
    read: ({ proxy }) => (proxy ? one(proxy.stale) : []),
  },
  {
    name: 'upstream_retries_total',
    type: 'counter',
    labels: [],
    help: 'Requests sent again because a kept-alive upstream connection had just closed.',
    read: ({ proxy }) => (proxy ? one(proxy.retries) : []),
  },
  {
    name: 'inflight_requests',
    type: 'gauge',
    labels: [],
    help: 'Requests that the proxy has not answered yet.',
    read: ({ proxy }) => (proxy ? one(proxy.inflight) : []),
  },
  {
    name: 'connections',
    type: 'gauge',
    labels: ['side'],
    help: 'Open connections of the proxy: of clients, to the upstream, and upgraded ones (tunnel).',
    read: ({ proxy }) =>
      proxy
        ? byLabel('side', {
            client: proxy.clients,
            upstream: proxy.upstreams,
            tunnel: proxy.tunnels,
          })
        : [],
  },
  {
    name: 'clients_refused_total',
    type: 'counter',
    labels: [],
    help: 'Connections closed at once because the proxy had as many as it takes.',
    read: ({ proxy }) => (proxy ? one(proxy.clientsOverflow) : []),
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
