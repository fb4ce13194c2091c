/**
 * RequestFacts out of HTTP: parsed only where a rule looks. Three sources: raw header pairs (the
 * proxy), a parsed header record (fastify), and a request described in JSON.
 */
import { normalisePath } from '../limiter/normal-path.js'
import type { RequestFacts } from '../limiter/request-facts.js'

export type Claims = Readonly<Record<string, unknown>>

/** A header by lower-case name, several values joined by ", " (Cookie by "; "). */
export type HeaderLookup = (name: string) => string | undefined

export interface HttpRequest {
  /** As it came; made upper-case here. */
  readonly method: string
  /** Path and query in origin form, or an absolute URI. */
  readonly target: string
  readonly header: HeaderLookup
  /** The client's address after the trusted-proxy walk. */
  readonly ip: string
  readonly peerTrusted: boolean
  /** Claims of a verified token, or null. */
  readonly jwt: Claims | null
  /** Overrides the Host header. */
  readonly host?: string | undefined
}

export class HttpRequestFacts implements RequestFacts {
  readonly method: string
  readonly ip: string
  readonly peerTrusted: boolean
  readonly jwt: Claims | null
  readonly #target: string
  readonly #header: HeaderLookup
  readonly #hostGiven: string | undefined
  #path: string | null | undefined
  #host: string | undefined
  /** Where the query's question mark stands in the target; -1 when there is none. */
  readonly #mark: number

  constructor(request: HttpRequest) {
    this.method = isUpper(request.method) ? request.method : request.method.toUpperCase()
    this.ip = request.ip
    this.peerTrusted = request.peerTrusted
    this.jwt = request.jwt
    this.#target = originForm(request.target)
    this.#mark = this.#target.indexOf('?')
    this.#header = request.header
    this.#hostGiven = request.host
  }

  get path(): string | null {
    if (this.#path === undefined) {
      const raw = this.#mark < 0 ? this.#target : this.#target.slice(0, this.#mark)
      // No valid target holds a fragment, and upstreams differ in what they make of one.
      this.#path = raw.includes('#') ? null : normalisePath(raw)
    }
    return this.#path
  }

  get query(): string {
    return this.#mark < 0 ? '' : this.#target.slice(this.#mark + 1)
  }

  get host(): string {
    this.#host ??= hostName(this.#hostGiven ?? this.#header('host') ?? '')
    return this.#host
  }

  header(name: string): string | undefined {
    return this.#header(name)
  }
}

function isUpper(method: string): boolean {
  for (let index = 0; index < method.length; index++) {
    const code = method.charCodeAt(index)
    if (code >= 97 && code <= 122) return false
  }
  return true
}

/** Path and query of a request target: `http://host/a?b` is `/a?b`. */
function originForm(target: string): string {
  if (target.charCodeAt(0) === 47) return target
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i.exec(target)
  if (!absolute) return target
  const rest = target.slice(absolute[0].length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** A Host header's name without port, lower-case; IPv6 keeps its brackets. */
export function hostName(host: string): string {
  const lower = host.trim().toLowerCase()
  if (lower.startsWith('[')) return lower.slice(0, lower.indexOf(']') + 1) || lower
  const colon = lower.indexOf(':')
  return colon < 0 ? lower : lower.slice(0, colon)
}

/** Looks a header up in a flat list of raw pairs, case-insensitively. */
export function rawHeaderLookup(pairs: readonly string[]): HeaderLookup {
  return name => {
    let found: string | undefined
    for (let index = 0; index + 1 < pairs.length; index += 2) {
      if (!isNamed(pairs[index] ?? '', name)) continue
      const value = pairs[index + 1] ?? ''
      found = found === undefined ? value : `${found}${name === 'cookie' ? '; ' : ', '}${value}`
    }
    return found
  }
}

/** Whether a field name as sent is `name`, which is in lower case. Makes no text. */
function isNamed(sent: string, name: string): boolean {
  if (sent.length !== name.length) return false
  for (let index = 0; index < name.length; index++) {
    const code = sent.charCodeAt(index)
    if (code === name.charCodeAt(index)) continue
    if (code < 65 || code > 90 || code + 32 !== name.charCodeAt(index)) return false
  }
  return true
}

/** Looks a header up in a record by lower-case name, as node:http parses it. */
export function recordHeaderLookup(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): HeaderLookup {
  return name => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (value === undefined || typeof value === 'string') return value
    return value.join(name === 'cookie' ? '; ' : ', ')
  }
}
