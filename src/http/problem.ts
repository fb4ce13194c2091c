/**
 * Bodies that say no: problem+json (RFC 9457) with the quota-exceeded type of
 * draft-ietf-httpapi-ratelimit-headers-11, plain members for clients that know no problem types,
 * and the `onExceeded` templates of rules. Texts only; nobody's key is ever in them.
 */
import type { Decision } from '../limiter/decision.js'
import type { OnExceededSpec } from '../limiter/rule.js'
import type { Random } from '../ports.js'
import { retryAfterSeconds } from './rate-limit-headers.js'

const registry = 'https://iana.org/assignments/http-problem-types#'

/** A response, ready to be written; headers are a flat list. */
export interface Answer {
  readonly status: number
  /** Content-Type, Cache-Control, Retry-After and the rule's own; not the rate-limit headers. */
  readonly headers: readonly string[]
  readonly body: string
  /** The value of Retry-After; 0 when there is none. */
  readonly retrySeconds: number
}

/** The body of a plain refusal. `detail` is for people, and may name what was wrong. */
export function problemBody(status: number, title: string, detail: string): string {
  return JSON.stringify({ type: 'about:blank', title, status, detail })
}

export const problemType = 'application/problem+json'

/**
 * The answer to a request that was not allowed: 429 for a limit, 403 for a `deny:` entry, 503 when
 * the limiter itself could not tell, or what the rule's `onExceeded` says for its limit. Where the
 * asker needs another status (`sentStatus`), the body names that one: RFC 9457 §3.1.3 wants both
 * to agree.
 */
export function denialAnswer(
  decision: Decision,
  onExceeded: OnExceededSpec | undefined,
  random: Random,
  sentStatus: number | null = null,
): Answer {
  const retrySeconds = hasRetryTime(decision) ? retryAfterSeconds(decision.retryAfterMs, random) : 0
  const custom = decision.reason === 'limited' || decision.reason === 'missing-key'
  const usual = custom ? (onExceeded?.status ?? 429) : decision.reason === 'blocked' ? 403 : 503
  const status = sentStatus ?? usual
  const headers = ['Cache-Control', 'no-store']
  if (retrySeconds > 0) headers.push('Retry-After', String(retrySeconds))
  const own = custom && onExceeded ? Object.entries(onExceeded.headers) : []
  const values = { status, retrySeconds, decision }
  const template = custom ? (onExceeded?.body ?? null) : null
  const hasType = own.some(([name]) => name.toLowerCase() === 'content-type')
  if (!hasType) headers.push('Content-Type', template === null ? problemType : guessType(template))
  for (const [name, value] of own) headers.push(name, fill(value, values))
  const body = template === null ? defaultBody(values) : fill(template, values)
  return { status, headers, body, retrySeconds }
}

/** A missing key has no retry time, and a blocked client none either. */
function hasRetryTime(decision: Decision): boolean {
  return decision.reason === 'limited' || decision.reason === 'degraded'
}

interface Values {
  readonly status: number
  readonly retrySeconds: number
  readonly decision: Decision
}

function defaultBody({ status, retrySeconds, decision }: Values): string {
  switch (decision.reason) {
    case 'blocked':
      return problemBody(status, 'Forbidden', 'Requests like this one are refused here.')
    case 'missing-key':
      return JSON.stringify({
        type: `${registry}quota-exceeded`,
        title: 'Rate limit exceeded',
        status,
        detail: `Rule "${decision.rule}" needs a key that this request does not carry.`,
        'violated-policies': decision.violated,
        error: 'Rate limit exceeded',
        limit: decision.limit,
      })
    case 'degraded':
      return JSON.stringify({
        type: `${registry}temporary-reduced-capacity`,
        title: 'Rate limiter unavailable',
        status,
        detail: 'The rate limiter cannot decide at the moment, and its rule refuses then.',
        'violated-policies': decision.violated,
        error: 'Rate limiter unavailable',
        retryAfter: retrySeconds,
      })
    default:
      return JSON.stringify({
        type: `${registry}quota-exceeded`,
        title: 'Rate limit exceeded',
        status,
        detail: `Rule "${decision.rule}" admits no more for now; retry in ${retrySeconds} s.`,
        'violated-policies': decision.violated,
        error: 'Rate limit exceeded',
        retryAfter: retrySeconds,
        limit: decision.limit,
      })
  }
}

/** Names that a template may hold in double braces: `{{retryAfter}}`. */
export const templateNames = [
  'rule',
  'limit',
  'window',
  'remaining',
  'retryAfter',
  'status',
] as const

/** Fills `{{name}}`; unknown names stay as they are. All values are numbers or rule names. */
function fill(template: string, values: Values): string {
  if (!template.includes('{{')) return template
  const { decision } = values
  const texts: Record<(typeof templateNames)[number], string> = {
    rule: decision.rule ?? '',
    limit: String(decision.limit),
    window: String(Math.ceil(decision.windowMs / 1000)),
    remaining: String(decision.remaining),
    retryAfter: String(values.retrySeconds),
    status: String(values.status),
  }
  return template.replace(/\{\{\s*(\w+)\s*\}\}/g, (whole, name: string) =>
    Object.hasOwn(texts, name) ? texts[name as keyof typeof texts] : whole,
  )
}

function guessType(template: string): string {
  const first = template.trimStart()[0]
  if (first === '{' || first === '[') return 'application/json'
  return first === '<' ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8'
}
