/**
 * How an upstream's failures read to a client, when a request may be repeated, and the idle time.
 */
import { type LocalAnswer, problemAnswer } from './local-answer.js'
import type { UpstreamError } from './proxy-stats.js'

const answers: Readonly<
  Record<UpstreamError, { readonly status: number; readonly detail: string }>
> = {
  refused: { status: 502, detail: 'The upstream refuses connections.' },
  'connect-failed': { status: 502, detail: 'The upstream cannot be reached.' },
  'connect-timeout': { status: 504, detail: 'The upstream does not accept connections in time.' },
  'response-timeout': { status: 504, detail: 'The upstream does not answer in time.' },
  reset: { status: 502, detail: 'The upstream closed the connection before it answered.' },
  malformed: {
    status: 502,
    detail: 'The upstream answered with something that is not sound HTTP.',
  },
  'queue-full': { status: 503, detail: 'Too many requests wait for the upstream.' },
  'queue-timeout': { status: 503, detail: 'All connections to the upstream are busy.' },
}

/** 502 when the upstream is down, 504 when it is slow, 503 when it is we who are full. */
export function failureAnswer(reason: UpstreamError): LocalAnswer {
  const { status, detail } = answers[reason]
  return problemAnswer(status, detail, status === 503 ? ['Retry-After', '1'] : [])
}

/**
 * How long a connection may idle whose upstream says `Keep-Alive: timeout=seconds`: a second less,
 * so that we close first and no request runs into its close; at most a minute.
 */
export function hintedIdleMs(seconds: number): number {
  return seconds <= 1 ? 500 * seconds : Math.min(60, seconds - 1) * 1000
}

/** Methods that may be sent twice (RFC 9110 §9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Whether sending a request again can do no harm and needs no body, of which nothing is kept. */
export function mayRepeat(method: string, bodyBytes: number): boolean {
  return bodyBytes === 0 && idempotent.has(method)
}
