/**
 * What a client reads of its limit: the IETF fields of draft-ietf-httpapi-ratelimit-headers-11, the
 * X-RateLimit family as many APIs send it, GitHub's variant of that, and Retry-After (RFC 9110).
 * Headers are flat lists [name, value, name, value, …], as node:http takes and gives them raw.
 */
import type { Decision, DecisionReason } from '../limiter/decision.js'
import type { Random } from '../ports.js'

export interface HeaderOptions {
  readonly ietf: 'draft-11' | 'off'
  readonly legacy: 'x-ratelimit' | 'github' | 'off'
  /** X-RateLimit-Reset counts seconds since the Unix epoch, or from now; off leaves it out. */
  readonly reset: 'epoch' | 'delta' | 'off'
}

/** What the headers are made of; any decision or verdict has it. */
export type LimitNumbers = Pick<
  Decision,
  'allowed' | 'rule' | 'limit' | 'windowMs' | 'remaining' | 'resetAfterMs' | 'retryAfterMs'
> & { readonly reason?: DecisionReason }

/** Structured field integers have at most 15 digits (RFC 9651 §3.3.1). */
const integerMax = 999_999_999_999_999

/** Jitter adds at most a tenth, and at most this many seconds (conventions.md §3.3). */
const jitterSecondsMax = 5

/**
 * Retry-After: whole seconds, rounded up, at least 1. Jitter only ever adds, in whole seconds and
 * at most a tenth (5 s at most), so waits under 10 s are exact.
 */
export function retryAfterSeconds(retryAfterMs: number, random: Random): number {
  const seconds = Math.min(integerMax, Math.max(1, Math.ceil(retryAfterMs / 1000)))
  const spread = Math.min(jitterSecondsMax, Math.floor(seconds / 10))
  return spread === 0 ? seconds : seconds + Math.floor(random() * (spread + 1))
}

/**
 * Adds the headers of the most restrictive rule to `headers`; nothing when no rule matched. A
 * decision that `failureMode` made is marked, whatever families are on. `retrySeconds` is the value
 * of Retry-After on a denial, 0 when there is none to give.
 */
export function appendRateLimitHeaders(
  headers: string[],
  numbers: LimitNumbers,
  options: HeaderOptions,
  wallMs: number,
  retrySeconds: number,
): void {
  if (numbers.reason === 'degraded') headers.push('X-RateLimit-Degraded', '1')
  if (numbers.rule === null) return
  const limit = wholeUnits(numbers.limit)
  const resetSeconds = Math.max(Math.ceil(numbers.resetAfterMs / 1000), retrySeconds)
  if (options.ietf !== 'off') {
    const untilSeconds = retrySeconds > 0 ? retrySeconds : resetSeconds
    headers.push(
      'RateLimit-Policy',
      `"${numbers.rule}";q=${limit};${quotaUnit(numbers.windowMs)}`,
      'RateLimit',
      `"${numbers.rule}";r=${numbers.remaining};t=${Math.min(integerMax, untilSeconds)}`,
    )
  }
  if (options.legacy === 'off') return
  headers.push('X-RateLimit-Limit', String(limit), 'X-RateLimit-Remaining')
  headers.push(String(numbers.remaining))
  if (options.reset !== 'off') {
    const reset =
      options.reset === 'delta' ? resetSeconds : epochSeconds(numbers, wallMs, retrySeconds)
    headers.push('X-RateLimit-Reset', String(reset))
  }
  if (options.legacy !== 'github') return
  headers.push(
    'X-RateLimit-Used',
    String(Math.max(0, limit - numbers.remaining)),
    'X-RateLimit-Resource',
    numbers.rule,
  )
}

function epochSeconds(numbers: LimitNumbers, wallMs: number, retrySeconds: number): number {
  const full = Math.ceil((wallMs + numbers.resetAfterMs) / 1000)
  return retrySeconds > 0 ? Math.max(full, Math.ceil(wallMs / 1000) + retrySeconds) : full
}

/** A limit per window, in whole seconds; a limit without one is of requests in flight. */
function quotaUnit(windowMs: number): string {
  return windowMs > 0 ? `w=${Math.max(1, Math.ceil(windowMs / 1000))}` : 'qu="concurrent-requests"'
}

/** A limit of less than one unit is still a limit: it reads as 1. */
function wholeUnits(count: number): number {
  return Math.min(integerMax, Math.max(1, Math.floor(count)))
}

/**
 * The upstream's response headers with ours in them, both flat lists. An upstream may limit on its
 * own: list fields (RateLimit, RateLimit-Policy) keep its items and get ours appended; of two
 * X-RateLimit families the one with less remaining stands, whole; nothing of it is ever mixed.
 */
export function mergeRateLimitHeaders(
  upstream: readonly string[],
  ours: readonly string[],
): string[] {
  const theirs = legacyRemaining(upstream)
  if (theirs === null) return [...upstream, ...ours]
  const own = legacyRemaining(ours)
  const keepTheirs = own === null || theirs <= own
  return [...withoutLegacy(upstream, !keepTheirs), ...withoutLegacy(ours, keepTheirs)]
}

/** The value of X-RateLimit-Remaining; Infinity when it is no number, null when it is absent. */
function legacyRemaining(headers: readonly string[]): number | null {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    if (name.length !== 21 || name.toLowerCase() !== 'x-ratelimit-remaining') continue
    const value = headers[index + 1]?.trim() ?? ''
    return /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : Number.POSITIVE_INFINITY
  }
  return null
}

function withoutLegacy(headers: readonly string[], drop: boolean): readonly string[] {
  if (!drop) return headers
  const kept: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    if (/^x-ratelimit-(limit|remaining|reset|used|resource)$/i.test(name)) continue
    kept.push(name, headers[index + 1] ?? '')
  }
  return kept
}
