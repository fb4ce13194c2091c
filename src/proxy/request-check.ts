/**
 * Whether a well-formed request head may be forwarded, and how its message is framed. Whatever two
 * servers could read differently is refused here (RFC 9112 §3.2, §6.3, §11.2). Pure.
 */
import { field, type HeaderName, NameMemo, namedByConnection } from './header-names.js'
import type { MessageHead } from './llhttp.js'

/** A refusal before any rule was asked. */
export interface Refusal {
  readonly status: number
  readonly title: string
  readonly detail: string
}

/** What the proxy knows of a request whose head it accepted. */
export interface CheckedRequest {
  readonly head: MessageHead
  /** The meanings of the header names, in their order. */
  readonly names: readonly HeaderName[]
  readonly method: string
  /** Origin form, or `*`. */
  readonly target: string
  /** Host as sent; null when an HTTP/1.0 client sent none. */
  readonly host: string | null
  /** Body bytes, -1 when chunked, 0 when there is no body. */
  readonly bodyBytes: number
  /** Content-Length was sent, so a 0 is told on. */
  readonly hasLength: boolean
  readonly expectsContinue: boolean
  /** Value of Upgrade when the connection shall be upgraded, else null. */
  readonly upgrade: string | null
  readonly acceptsTrailers: boolean
  /** Further fields of this hop that Connection names, lower-case. */
  readonly hopFields: readonly string[] | null
  readonly forwardedFor: string | undefined
  readonly forwardedProto: string | undefined
  readonly forwardedHost: string | undefined
}

export type RequestCheck =
  | { readonly ok: true; readonly request: CheckedRequest }
  | { readonly ok: false; readonly refusal: Refusal }

function refuse(status: number, title: string, detail: string): RequestCheck {
  return { ok: false, refusal: { status, title, detail } }
}

function bad(detail: string): RequestCheck {
  return refuse(400, 'Bad Request', detail)
}

const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+;=-]*)(?::\d*)?$/
let lastHost = ''

function isHost(value: string): boolean {
  if (value === lastHost) return true
  if (value.length > 255 + 6 || !hostPattern.test(value)) return false
  lastHost = value
  return true
}

const memo = new NameMemo()

/** One pass over the fields: what they say about framing, this hop, and the client. */
class Fields {
  hosts = 0
  host: string | null = null
  lengths = 0
  length = 0
  codings = 0
  coding = ''
  expect: string | null = null
  upgrade: string | null = null
  acceptsTrailers = false
  hopFields: string[] | null = null
  forwardedFor: string | undefined
  forwardedProto: string | undefined
  forwardedHost: string | undefined

  readonly names: readonly HeaderName[]

  constructor(headers: readonly string[]) {
    this.names = memo.namesOf(headers)
    for (let index = 0; index < this.names.length; index++) {
      const kind = (this.names[index] as HeaderName).field
      if (kind !== field.pass) this.#take(kind, headers[2 * index + 1] as string)
    }
  }

  #take(kind: number, value: string): void {
    switch (kind) {
      case field.host:
        this.hosts++
        this.host = value
        break
      case field.contentLength:
        this.lengths++
        this.length = Number(value)
        break
      case field.transferEncoding:
        this.codings++
        this.coding = value.toLowerCase()
        break
      case field.connection: {
        const names = namedByConnection(value)
        if (names) this.hopFields = this.hopFields ? [...this.hopFields, ...names] : names
        break
      }
      case field.te:
        if (/(?:^|,)\s*trailers\s*(?:,|$)/i.test(value)) this.acceptsTrailers = true
        break
      case field.upgrade:
        this.upgrade = join(this.upgrade ?? undefined, value)
        break
      case field.expect:
        this.expect = join(this.expect ?? undefined, value)
        break
      case field.forwardedFor:
        this.forwardedFor = join(this.forwardedFor, value)
        break
      case field.forwardedProto:
        this.forwardedProto = join(this.forwardedProto, value)
        break
      case field.forwardedHost:
        this.forwardedHost = join(this.forwardedHost, value)
        break
    }
  }
}

function join(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`
}

/** Judges a request head. */
export function checkRequest(head: MessageHead, targetBytesMax: number): RequestCheck {
  if (head.major !== 1) {
    return head.major === 0
      ? bad('HTTP/0.9 is not spoken here.')
      : refuse(505, 'HTTP Version Not Supported', 'This listener speaks HTTP/1.1.')
  }
  if (head.method === 'CONNECT') {
    return refuse(405, 'Method Not Allowed', 'This is no forward proxy.')
  }
  const fields = new Fields(head.headers)
  const { host } = fields
  if (fields.hosts > 1) return bad('There is more than one Host.')
  if (host === null && head.minor > 0) return bad('There is no Host.')
  if (host !== null && !isHost(host)) return bad('Host is not a host.')
  if (head.text.length > targetBytesMax) {
    return refuse(414, 'URI Too Long', 'The request target is too long.')
  }
  const target = originForm(head.method, head.text, host)
  if (target === null) return bad('The request target is none that this server serves.')
  return checkFraming(head, fields, target)
}

function checkFraming(head: MessageHead, fields: Fields, target: string): RequestCheck {
  if (fields.codings > 0) {
    // llhttp refuses both together already; should it ever not, this line does.
    if (fields.lengths > 0) return bad('Both Content-Length and Transfer-Encoding are given.')
    if (fields.codings > 1 || fields.coding !== 'chunked') {
      return bad('Transfer-Encoding is something else than chunked.')
    }
    if (head.minor === 0) return bad('HTTP/1.0 has no Transfer-Encoding.')
  }
  if (fields.lengths > 1) return bad('There is more than one Content-Length.')
  if (!Number.isSafeInteger(fields.length)) return bad('Content-Length is too large.')
  const bodyBytes = fields.codings > 0 ? -1 : fields.length
  if (fields.expect !== null && fields.expect.toLowerCase() !== '100-continue') {
    return refuse(417, 'Expectation Failed', 'Only 100-continue can be expected.')
  }
  const upgrade = head.upgrade && head.minor > 0 ? upgradeOf(fields.upgrade) : null
  if (upgrade !== null && bodyBytes !== 0) return bad('An upgrade has no body.')
  const request: CheckedRequest = {
    head,
    names: fields.names,
    method: head.method,
    target,
    host: fields.host,
    bodyBytes,
    hasLength: fields.lengths > 0,
    expectsContinue: fields.expect !== null && head.minor > 0 && bodyBytes !== 0,
    upgrade,
    acceptsTrailers: fields.acceptsTrailers,
    hopFields: fields.hopFields,
    forwardedFor: fields.forwardedFor,
    forwardedProto: fields.forwardedProto,
    forwardedHost: fields.forwardedHost,
  }
  return { ok: true, request }
}

/**
 * HTTP/2 over Upgrade is gone since RFC 9113, and a server may ignore any upgrade it does not do.
 */
function upgradeOf(value: string | null): string | null {
  return value === null || /(?:^|[\s,])h2c?(?:$|[\s,])/i.test(value) ? null : value
}

/**
 * Path and query of the target, `*` for OPTIONS, or null when it is neither ours nor unambiguous.
 */
function originForm(method: string, target: string, host: string | null): string | null {
  if (target.includes('#')) return null
  if (target.charCodeAt(0) === 47) return target
  if (target === '*') return method === 'OPTIONS' ? target : null
  const absolute = /^http:\/\/([^/?]*)/i.exec(target)
  if (!absolute) return null
  const authority = absolute[1] ?? ''
  if (host === null || authority === '') return null
  if (authority.toLowerCase() !== host.toLowerCase()) return null
  const rest = target.slice(absolute[0].length)
  if (rest === '') return method === 'OPTIONS' ? '*' : '/'
  return rest.startsWith('/') ? rest : `/${rest}`
}
