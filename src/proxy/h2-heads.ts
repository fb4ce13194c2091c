/**
 * Header objects of HTTP/2 as node:http2 has them, and what becomes of them between client and
 * upstream. gRPC's own answers stand here too (its HTTP/2 mapping: Trailers-Only). Pure.
 */
import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { headerPairs, mergeRateLimitHeaders } from '../http/rate-limit-headers.js'
import { field, headerName } from './header-names.js'
import type { LocalAnswer } from './local-answer.js'

/** A field as one text. */
export function h2Text(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value.join(', ') : value
}

/** Why a request cannot be forwarded, or null. nghttp2 has checked the pseudo fields already. */
export function h2Refusal(
  headers: IncomingHttpHeaders,
  targetBytesMax: number,
): LocalRefusal | null {
  const path = h2Text(headers, constants.HTTP2_HEADER_PATH) ?? ''
  const method = h2Text(headers, constants.HTTP2_HEADER_METHOD) ?? ''
  const authority = h2Text(headers, constants.HTTP2_HEADER_AUTHORITY)
  if (method === 'CONNECT') return { status: 405, detail: 'This is no forward proxy.' }
  if (path.length > targetBytesMax) return { status: 414, detail: 'The path is too long.' }
  const star = path === '*' && method === 'OPTIONS'
  if ((!path.startsWith('/') && !star) || path.includes('#')) {
    return { status: 400, detail: 'The path is none that this server serves.' }
  }
  const { host } = headers
  if (authority !== undefined && host !== undefined && host !== authority) {
    return { status: 400, detail: 'Host and :authority differ.' }
  }
  if (authority === undefined && host === undefined) {
    return { status: 400, detail: 'There is no :authority.' }
  }
  return null
}

export interface LocalRefusal {
  readonly status: number
  readonly detail: string
}

/** Who asks, as far as the upstream is told. */
export interface H2Forwarding {
  readonly peer: string
  readonly trusted: boolean
}

/** The request for the upstream: nothing of this hop, forwarding fields appended. */
export function h2RequestHeaders(
  headers: IncomingHttpHeaders,
  from: H2Forwarding,
): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = Object.create(null)
  for (const name of Object.keys(headers)) {
    const kind = name.startsWith(':') ? field.pass : headerName(name).field
    const through =
      kind === field.pass ||
      kind === field.contentLength ||
      kind === field.limitRemaining ||
      kind === field.trailer ||
      (kind === field.claim && from.trusted)
    if (through) out[name] = headers[name]
  }
  const host = headers[constants.HTTP2_HEADER_AUTHORITY] ?? headers.host ?? ''
  out[constants.HTTP2_HEADER_AUTHORITY] = host
  out[constants.HTTP2_HEADER_SCHEME] = 'http'
  if (headers.te?.includes('trailers')) out.te = 'trailers'
  const before = from.trusted ? headers['x-forwarded-for'] : undefined
  out['x-forwarded-for'] = before === undefined ? from.peer : `${before}, ${from.peer}`
  out['x-forwarded-proto'] = (from.trusted && headers['x-forwarded-proto']) || 'http'
  out['x-forwarded-host'] = (from.trusted && headers['x-forwarded-host']) || host
  return out
}

/** The response for the client: the upstream's, with the rate-limit fields (lines) in it. */
export function h2ResponseHeaders(
  headers: IncomingHttpHeaders,
  limits: string,
): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = Object.create(null)
  const theirs: string[] = []
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined) continue
    const limit = limits !== '' && /^(?:x-)?ratelimit(?:-|$)/.test(name)
    if (limit) theirs.push(name, String(value))
    else out[name] = value
  }
  addPairs(out, mergeRateLimitHeaders(theirs, headerPairs(limits)))
  return out
}

/** Adds a flat list; a field that stands twice becomes a list. */
function addPairs(out: OutgoingHttpHeaders, pairs: readonly string[]): void {
  for (let index = 0; index < pairs.length; index += 2) {
    const name = (pairs[index] as string).toLowerCase()
    const before = out[name]
    out[name] = before === undefined ? pairs[index + 1] : `${before}, ${pairs[index + 1]}`
  }
}

export function isGrpc(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true
}

/** gRPC status codes that the proxy gives itself. */
export const grpcStatus = {
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  internal: 13,
  unavailable: 14,
} as const

/** The gRPC status for an answer that plain HTTP would have. */
export function grpcStatusOf(httpStatus: number): number {
  switch (httpStatus) {
    case 400:
    case 405:
    case 414:
      return grpcStatus.internal
    case 403:
      return grpcStatus.permissionDenied
    case 429:
      return grpcStatus.resourceExhausted
    case 504:
      return grpcStatus.deadlineExceeded
    default:
      return grpcStatus.unavailable
  }
}

/** A Trailers-Only response: the whole answer is one header block. */
export function grpcAnswer(
  status: number,
  message: string,
  pairs: readonly string[],
): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = Object.create(null)
  out[constants.HTTP2_HEADER_STATUS] = 200
  out['content-type'] = 'application/grpc'
  out['grpc-status'] = String(status)
  out['grpc-message'] = encodeMessage(message)
  addPairs(out, pairs)
  return out
}

/** An answer of plain HTTP. */
export function plainAnswer(answer: LocalAnswer): OutgoingHttpHeaders {
  const out: OutgoingHttpHeaders = Object.create(null)
  out[constants.HTTP2_HEADER_STATUS] = answer.status
  addPairs(out, answer.headers)
  out['content-length'] = Buffer.byteLength(answer.body)
  return out
}

/** grpc-message is percent-encoded beyond printable ASCII. */
function encodeMessage(message: string): string {
  return encodeURIComponent(message).replace(
    /%(20|22|23|2C|2F|3A|3B|3D|3F|40)/g,
    decodeURIComponent,
  )
}

/** The HTTP status that says the same as a gRPC status, for rules that count success or failure. */
export function httpStatusOfGrpc(status: string | undefined): number {
  switch (status) {
    case undefined:
    case '0':
      return 200
    case '3':
    case '9':
    case '11':
      return 400
    case '16':
      return 401
    case '7':
      return 403
    case '5':
      return 404
    case '6':
    case '10':
      return 409
    case '8':
      return 429
    case '1':
      return 499
    case '12':
      return 501
    case '14':
      return 503
    case '4':
      return 504
    default:
      return 500
  }
}
