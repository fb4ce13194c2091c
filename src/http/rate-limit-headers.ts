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
  return drawnRetryAfterSeconds(retryAfterMs, random())
}

/** The same with a chance, 0 to below 1, that was drawn before. */
export function drawnRetryAfterSeconds(retryAfterMs: number, chance: number): number {
  const seconds = Math.min(integerMax, Math.max(1, Math.ceil(retryAfterMs / 1000)))
  const spread = Math.min(jitterSecondsMax, Math.floor(seconds / 10))
  return seconds + Math.floor(chance * (spread + 1))
}

/**
 * The headers of the most restrictive rule as lines, each with its CRLF; '' when no rule matched. A
 * decision that `failureMode` made is marked, whatever families are on. `retrySeconds` is the value
 * of Retry-After on a denial, 0 when there is none to give.
 */
export function rateLimitLines(
  numbers: LimitNumbers,
  options: HeaderOptions,
  wallMs: number,
  retrySeconds: number,
): string {
  const mark = numbers.reason === 'degraded' ? 'X-RateLimit-Degraded: 1\r\n' : ''
  const { rule } = numbers
  if (rule === null) return mark
  const remaining = String(numbers.remaining)
  const resetSeconds = Math.max(Math.ceil(numbers.resetAfterMs / 1000), retrySeconds)
  const texts = textsOf(rule, numbers.limit, numbers.windowMs)
  let lines = mark
  if (options.ietf !== 'off') {
    const untilSeconds = retrySeconds > 0 ? retrySeconds : resetSeconds
    lines += `${texts.ietf}${remaining};t=${Math.min(integerMax, untilSeconds)}\r\n`
  }
  if (options.legacy === 'off') return lines
  lines += `${texts.legacy}${remaining}\r\n`
  if (options.reset !== 'off') {
    const reset =
      options.reset === 'delta' ? resetSeconds : epochSeconds(numbers, wallMs, retrySeconds)
    lines += `X-RateLimit-Reset: ${reset}\r\n`
  }
  if (options.legacy !== 'github') return lines
  const used = Math.max(0, wholeUnits(numbers.limit) - numbers.remaining)
  return `${lines}X-RateLimit-Used: ${used}\r\nX-RateLimit-Resource: ${rule}\r\n`
}

/** Adds `rateLimitLines` to `headers`, as names and values. */
export function appendRateLimitHeaders(
  headers: string[],
  numbers: LimitNumbers,
  options: HeaderOptions,
  wallMs: number,
  retrySeconds: number,
): void {
  headers.push(...headerPairs(rateLimitLines(numbers, options, wallMs, retrySeconds)))
}

/** Lines with their CRLFs as a flat list of names and values. */
export function headerPairs(lines: string): string[] {
  const pairs: string[] = []
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) pairs.push(line.slice(0, colon), line.slice(colon + 2))
  }
  return pairs
}

/** What the headers of one limit begin with, up to the numbers that change. */
interface LimitTexts {
  readonly rule: string
  readonly limit: number
  readonly windowMs: number
  readonly ietf: string
  readonly legacy: string
}

/** The same text as one piece of memory: a text made of parts is put together at each writing. */
function inOnePiece(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/** Of the limit that was told of last: most decisions in a row are by one. */
let lastTexts: LimitTexts | null = null

function textsOf(rule: string, limit: number, windowMs: number): LimitTexts {
  const last = lastTexts
  if (last?.rule === rule && last.limit === limit && last.windowMs === windowMs) return last
  const units = wholeUnits(limit)
  const policy = `RateLimit-Policy: "${rule}";q=${units};${quotaUnit(windowMs)}\r\n`
  const texts = {
    rule,
    limit,
    windowMs,
    ietf: inOnePiece(`${policy}RateLimit: "${rule}";r=`),
    legacy: inOnePiece(`X-RateLimit-Limit: ${units}\r\nX-RateLimit-Remaining: `),
  }
  lastTexts = texts
  return texts
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
