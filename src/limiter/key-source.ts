/**
 * Reading what a key is made of from a request, and writing the canonical text of a key.
 * Knows nothing of rules, counters or HTTP parsing beyond cookie and query text.
 *
 * Canonical text, per part: LENGTH ':' SOURCE LENGTH ':' VALUE, lengths in UTF-16 units, e.g.
 * `16:header:x-api-key8:client-7`. It can be cut up in one way only, so a header value can neither
 * spell somebody's address nor run into the next part.
 */
import { clientGroup } from './cidr.js'
import { withoutTrailingSlash } from './normal-path.js'
import type { RequestFacts } from './request-facts.js'
import type { KeySource } from './rule.js'

/** The source as users write it: `ip`, `header:x-api-key`. */
export function sourceText(source: KeySource): string {
  return 'name' in source ? `${source.kind}:${source.name}` : source.kind
}

/** The head of a part's canonical text; precompute it once per source. */
export function partHead(source: KeySource): string {
  const text = sourceText(source)
  return `${text.length}:${text}`
}

/** A part's canonical text. */
export function partText(head: string, value: string): string {
  return `${head}${value.length}:${value}`
}

/**
 * The value of `source` in a request, or undefined when absent. An empty value is absent, but `ip`
 * and `global` never are. Of a value given several times, the first is taken (a header: all).
 */
export function readSource(source: KeySource, facts: RequestFacts): string | undefined {
  switch (source.kind) {
    case 'ip':
      return clientGroup(facts.ip)
    case 'global':
      return ''
    case 'method':
      return facts.method || undefined
    case 'host':
      return facts.host || undefined
    case 'path':
      return facts.path === null ? undefined : withoutTrailingSlash(facts.path)
    case 'header':
      return facts.header(source.name) || undefined
    case 'cookie':
      return readCookie(facts.header('cookie'), source.name)
    case 'query':
      return readQuery(facts.query, source.name)
    case 'jwt':
      return readClaim(facts.jwt, source.name)
  }
}

/** `value` as the source itself would have given it; for keys that callers spell out. */
export function canonicalValue(source: KeySource, value: string): string {
  switch (source.kind) {
    case 'ip':
      return clientGroup(value)
    case 'global':
      return ''
    case 'method':
      return value.toUpperCase()
    case 'host':
      return value.toLowerCase()
    case 'path':
      return withoutTrailingSlash(value)
    default:
      return value
  }
}

/** A cookie's value by its exact name, quotes removed, not decoded. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  let start = 0
  while (start < header.length) {
    let end = header.indexOf(';', start)
    if (end < 0) end = header.length
    const equals = header.indexOf('=', start)
    if (equals >= 0 && equals < end && header.slice(start, equals).trim() === name) {
      const value = header.slice(equals + 1, end).trim()
      const quoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"')
      return (quoted ? value.slice(1, -1) : value) || undefined
    }
    start = end + 1
  }
  return undefined
}

/** A query parameter's decoded value by its decoded, exact name. */
export function readQuery(query: string, name: string): string | undefined {
  let start = 0
  while (start < query.length) {
    let end = query.indexOf('&', start)
    if (end < 0) end = query.length
    let equals = query.indexOf('=', start)
    if (equals < 0 || equals > end) equals = end
    if (isNamed(query, start, equals, name)) {
      return decodeQueryText(query.slice(equals + 1, end)) || undefined
    }
    start = end + 1
  }
  return undefined
}

function isNamed(query: string, start: number, end: number, name: string): boolean {
  if (end - start === name.length && query.startsWith(name, start)) return true
  // An escaped name is longer than what it stands for; `+` may stand for a space.
  if (end - start < name.length) return false
  return decodeQueryText(query.slice(start, end)) === name
}

function decodeQueryText(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

/**
 * A claim as text: strings as they are, numbers and booleans as JSON, lists of these joined by
 * commas; objects and null are absent. `a.b` is the claim of that name, else `b` within `a`.
 */
export function readClaim(
  claims: Readonly<Record<string, unknown>> | null,
  name: string,
): string | undefined {
  if (claims === null) return undefined
  if (Object.hasOwn(claims, name)) return claimText(claims[name])
  if (!name.includes('.')) return undefined
  let value: unknown = claims
  for (const step of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return claimText(value)
}

function claimText(value: unknown): string | undefined {
  if (typeof value === 'string') return value || undefined
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (!Array.isArray(value)) return undefined
  const parts = value.filter(part => ['string', 'number', 'boolean'].includes(typeof part))
  return parts.length === value.length ? parts.join(',') || undefined : undefined
}
