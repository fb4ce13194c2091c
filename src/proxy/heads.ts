/**
 * The heads that the proxy writes: the request for the upstream and the response for the client.
 * Framing fields are always its own, never copied; fields of one hop stay behind. Pure.
 */
import { headerPairs, mergeRateLimitHeaders } from '../http/rate-limit-headers.js'
import {
  field,
  type HeaderName,
  headerName,
  mayTrail,
  NameMemo,
  namedByConnection,
} from './header-names.js'
import type { MessageHead } from './llhttp.js'
import type { CheckedRequest } from './request-check.js'

/** Who sent a request, as far as the proxy tells the upstream. */
export interface Forwarding {
  /** The direct peer's address in canonical text. */
  readonly peer: string
  /** The peer is a trusted proxy: what it says of earlier hops is told on. */
  readonly trusted: boolean
  /** Host for a client of HTTP/1.0 that sent none. */
  readonly upstreamHost: string
}

/** Start line and fields of the request for the upstream, blank line included. */
export function upstreamRequestHead(request: CheckedRequest, from: Forwarding): string {
  const { head, names, hopFields } = request
  const { headers } = head
  const host = request.host ?? from.upstreamHost
  let text = `${request.method} ${request.target} HTTP/1.1\r\nHost: ${host}\r\n`
  let trailer = ''
  for (let index = 0; index < headers.length; index += 2) {
    const known = names[index >> 1] as HeaderName
    if (known.field !== field.pass) {
      if (known.field === field.claim && !from.trusted) continue
      if (known.field === field.trailer) trailer += `Trailer: ${headers[index + 1]}\r\n`
      if (known.field !== field.claim && known.field !== field.limitRemaining) continue
    }
    if (hopFields?.includes(known.lower)) continue
    text += `${known.spelling}: ${headers[index + 1]}\r\n`
  }
  return text + forwardedFields(request, from, host) + hopLines(request, trailer)
}

function forwardedFields(request: CheckedRequest, from: Forwarding, host: string): string {
  if (!from.trusted) {
    return `X-Forwarded-For: ${from.peer}\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: ${host}\r\n`
  }
  const before = request.forwardedFor ? `${request.forwardedFor}, ` : ''
  const proto = request.forwardedProto ?? 'http'
  const forwardedHost = request.forwardedHost ?? host
  return (
    `X-Forwarded-For: ${before}${from.peer}\r\n` +
    `X-Forwarded-Proto: ${proto}\r\nX-Forwarded-Host: ${forwardedHost}\r\n`
  )
}

function hopLines(request: CheckedRequest, trailer: string): string {
  const { bodyBytes } = request
  if (request.upgrade !== null) {
    return `Connection: Upgrade\r\nUpgrade: ${request.upgrade}\r\n\r\n`
  }
  let text = request.acceptsTrailers ? 'TE: trailers\r\nConnection: TE\r\n' : ''
  if (bodyBytes < 0) text += `${trailer}Transfer-Encoding: chunked\r\n`
  else if (request.hasLength) text += `Content-Length: ${bodyBytes}\r\n`
  return `${text}\r\n`
}

/** How the end of a response body is marked. */
export type ResponseFraming = 'none' | 'length' | 'chunked' | 'close'

/** What the proxy knows of an upstream's response head that it accepted. */
export interface CheckedResponse {
  readonly head: MessageHead
  readonly names: readonly HeaderName[]
  /** How the upstream marks the end. `none`: no body whatever the head says. */
  readonly framing: ResponseFraming
  /** Content-Length as sent, or null. */
  readonly length: string | null
  readonly hopFields: readonly string[] | null
  /** Seconds that the upstream keeps an idle connection open, by its Keep-Alive; null: not said. */
  readonly keepAliveSeconds: number | null
  /** The upstream has an X-RateLimit family of its own. */
  readonly limitsItself: boolean
}

const memo = new NameMemo()

/** Judges a final response head; null when its framing is not sound. */
export function checkResponse(head: MessageHead, toHead: boolean): CheckedResponse | null {
  let length: string | null = null
  let coding: string | null = null
  let hopFields: string[] | null = null
  let keepAliveSeconds: number | null = null
  let limitsItself = false
  const names = memo.namesOf(head.headers)
  for (let index = 0; index < names.length; index++) {
    const kind = (names[index] as HeaderName).field
    if (kind === field.pass) continue
    const value = head.headers[2 * index + 1] as string
    if (kind === field.contentLength) length = value
    else if (kind === field.transferEncoding)
      coding = coding === null ? value : `${coding},${value}`
    else if (kind === field.limitRemaining) limitsItself = true
    else if (kind === field.keepAlive) keepAliveSeconds = secondsOf(value)
    else if (kind === field.connection) {
      const names = namedByConnection(value)
      if (names) hopFields = hopFields ? [...hopFields, ...names] : names
    }
  }
  if (coding !== null && (coding.toLowerCase() !== 'chunked' || length !== null)) return null
  if (head.status < 200 || head.status > 999) return null
  const bodiless = toHead || head.status === 204 || head.status === 304
  const framing = bodiless ? 'none' : coding ? 'chunked' : length !== null ? 'length' : 'close'
  return { head, names, framing, length, hopFields, keepAliveSeconds, limitsItself }
}

function secondsOf(keepAlive: string): number | null {
  const match = /(?:^|[\s,])timeout=(\d{1,6})/i.exec(keepAlive)
  return match ? Number(match[1]) : null
}

/** How the body goes to this client: HTTP/1.0 knows no chunks. */
export function clientFraming(response: CheckedResponse, clientMinor: number): ResponseFraming {
  const { framing } = response
  if (framing === 'none' || framing === 'length') return framing
  return clientMinor === 0 ? 'close' : 'chunked'
}

export interface ResponseHeadOptions {
  readonly framing: ResponseFraming
  /** `close` ends the connection after this response; `keep` says so to an HTTP/1.0 client. */
  readonly connection: 'close' | 'keep' | 'silent'
  /** The rate-limit fields of this decision, as lines; '' when there are none. */
  readonly limits: string
}

/** Status line and fields of a final response for the client, blank line included. */
export function clientResponseHead(
  response: CheckedResponse,
  options: ResponseHeadOptions,
): string {
  const { head, hopFields } = response
  const { framing, limits } = options
  let text = `HTTP/1.1 ${head.status} ${head.text}\r\n`
  const merge = response.limitsItself && limits !== ''
  const headers = merge ? mergeRateLimitHeaders(head.headers, headerPairs(limits)) : head.headers
  const names = merge ? memo.namesOf(headers) : response.names
  for (let index = 0; index < headers.length; index += 2) {
    const known = names[index >> 1] as HeaderName
    if (known.field !== field.pass && !passesBack(known.field, framing)) continue
    if (hopFields?.includes(known.lower)) continue
    text += `${known.spelling}: ${headers[index + 1]}\r\n`
  }
  if (!merge) text += limits
  if (framing === 'chunked') text += 'Transfer-Encoding: chunked\r\n'
  else if (response.length !== null && framing !== 'close') {
    text += `Content-Length: ${response.length}\r\n`
  }
  if (options.connection === 'close') text += 'Connection: close\r\n'
  else if (options.connection === 'keep') text += 'Connection: keep-alive\r\n'
  return `${text}\r\n`
}

/** Fields that mean something in a request only are like any other in a response. */
function passesBack(kind: number, framing: ResponseFraming): boolean {
  switch (kind) {
    case field.drop:
    case field.contentLength:
    case field.transferEncoding:
    case field.connection:
    case field.keepAlive:
    case field.te:
    case field.upgrade:
      return false
    case field.trailer:
      return framing === 'chunked'
    default:
      return true
  }
}

/** An interim response (1xx but 101) for the client. */
export function interimHead(head: MessageHead): string {
  let text = `HTTP/1.1 ${head.status} ${head.text}\r\n`
  for (let index = 0; index < head.headers.length; index += 2) {
    const name = head.headers[index] as string
    if (passesBack(headerName(name).field, 'none'))
      text += `${name}: ${head.headers[index + 1]}\r\n`
  }
  return `${text}\r\n`
}

/** The 101 response that opens a tunnel, with the rate-limit fields as lines. */
export function switchingHead(head: MessageHead, limits: string): string {
  let text = `HTTP/1.1 101 ${head.text}\r\n`
  let upgrade = ''
  for (let index = 0; index < head.headers.length; index += 2) {
    const name = head.headers[index] as string
    const kind = headerName(name).field
    if (kind === field.upgrade) upgrade = head.headers[index + 1] as string
    if (passesBack(kind, 'none')) text += `${name}: ${head.headers[index + 1]}\r\n`
  }
  return `${text}${limits}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`
}

/** The last chunk with its trailer fields; fields that must not trail stay behind. */
export function lastChunk(trailers: readonly string[]): string {
  if (trailers.length === 0) return '0\r\n\r\n'
  let text = '0\r\n'
  for (let index = 0; index < trailers.length; index += 2) {
    const name = trailers[index] as string
    if (mayTrail(name)) text += `${name}: ${trailers[index + 1]}\r\n`
  }
  return `${text}\r\n`
}
