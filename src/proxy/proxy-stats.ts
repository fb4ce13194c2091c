/**
 * What the proxy counts. The core of the proxy writes plain fields; an exporter reads them at
 * scrape.
 */

/** Why an upstream could not answer; a closed set, used as a metric label. */
export const upstreamErrors = [
  'refused',
  'connect-timeout',
  'connect-failed',
  'response-timeout',
  'reset',
  'malformed',
  'queue-full',
  'queue-timeout',
] as const
export type UpstreamError = (typeof upstreamErrors)[number]

/** How a request ended, by status class or by what cut it short. */
export const requestClasses = ['2xx', '3xx', '4xx', '5xx', 'upgraded', 'aborted'] as const
export type RequestClass = (typeof requestClasses)[number]

/** Why a request was refused before any rule was asked. */
export const refusals = [
  'malformed',
  'too-large',
  'head-timeout',
  'body-timeout',
  'draining',
] as const
export type RefusalKind = (typeof refusals)[number]

/**
 * Counters since start but `inflight`, `clients`, `upstreams` and `tunnels`, which are present
 * numbers.
 */
export interface ProxyStats {
  /** Requests that were admitted or wait for it, and are not answered yet. */
  readonly inflight: number
  readonly clients: number
  readonly upstreams: number
  /** Upgraded connections, WebSockets mostly. */
  readonly tunnels: number
  readonly requests: Readonly<Record<RequestClass, number>>
  readonly upstreamErrors: Readonly<Record<UpstreamError, number>>
  readonly refused: Readonly<Record<RefusalKind, number>>
  /** Requests sent again because a kept-alive upstream connection had just closed. */
  readonly retries: number
  /** Denied requests that were answered with a kept response (`staleFor`). */
  readonly stale: number
  /** Clients turned away because `clientsMax` was reached. */
  readonly clientsOverflow: number
}

/** The writable form. */
export class ProxyCounters {
  inflight = 0
  tunnels = 0
  retries = 0
  stale = 0
  clientsOverflow = 0
  readonly requests = zeros(requestClasses)
  readonly upstreamErrors = zeros(upstreamErrors)
  readonly refused = zeros(refusals)

  countStatus(status: number): void {
    if (status >= 500) this.requests['5xx']++
    else if (status >= 400) this.requests['4xx']++
    else if (status >= 300) this.requests['3xx']++
    else this.requests['2xx']++
  }
}

function zeros<K extends string>(names: readonly K[]): Record<K, number> {
  return Object.fromEntries(names.map(name => [name, 0])) as Record<K, number>
}
