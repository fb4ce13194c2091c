/**
 * From a valid rules file to the plain data the limiter takes. Checks nothing; see
 * `rule-checks.ts`.
 */
import type {
  Algorithm,
  CostSpec,
  KeyPart,
  LimitSpec,
  ListEntry,
  MatchSpec,
  OnExceededSpec,
  RuleSpec,
  TierSpec,
} from '../limiter/rule.js'
import type { RuleName } from '../vocabulary.js'
import { type Read, readDuration, readKeyPart, readLimit } from './grammar.js'
import type { ListEntryText, MatchText, RuleText } from './rules-schema.js'

/** The value of a reading that the schema has already checked. */
export function known<T>(read: Read<T>): T {
  if (!read.ok) throw new Error(`a validated value could not be read: ${read.error}`)
  return read.value
}

export function normalMatch(text: MatchText): MatchSpec {
  const { path, method, header } = text
  return {
    path: path ?? null,
    method: method === undefined ? null : asList(method).map(name => name.toUpperCase()),
    header: header === undefined ? null : lowerNames(header),
  }
}

export function normalEntry(text: ListEntryText): ListEntry {
  return { cidr: text.cidr ?? null, ...normalMatch(text) }
}

export function normalRule(text: RuleText, timezone: string): RuleSpec {
  const limits = ruleLimits(text)
  const algorithm = text.algorithm ?? defaultAlgorithm(limits)
  const leaky = algorithm === 'leaky-bucket'
  // Without any bound for waiting nobody waits: a queue without end would hold sockets without end.
  const queue = text.queue ?? (leaky && text.maxWait === undefined ? 0 : null)
  return {
    name: text.name as RuleName,
    match: text.match === undefined ? null : normalMatch(text.match),
    key: normalKey(text.key),
    limit: text.limit === undefined ? null : known(readLimit(text.limit)),
    tier: text.tier === undefined ? null : normalTier(text.tier),
    concurrency: text.concurrency ?? null,
    burst: text.burst ?? null,
    algorithm,
    queue,
    maxWaitMs: text.maxWait === undefined ? null : known(readDuration(text.maxWait)),
    onPartition: text.onPartition ?? 'share',
    failureMode: text.failureMode ?? 'open',
    mode: text.mode ?? 'enforce',
    missing: text.missing ?? 'ip',
    stop: text.stop ?? false,
    count: text.count ?? 'all',
    cost: normalCost(text.cost),
    onExceeded: normalOnExceeded(text.onExceeded),
    timezone: text.timezone ?? timezone,
  }
}

/** Every limit a rule names, its own or its tiers'. */
export function ruleLimits(text: RuleText): LimitSpec[] {
  const texts = [...(text.limit === undefined ? [] : [text.limit])]
  texts.push(...Object.values(text.tier?.limits ?? {}))
  return texts.map(limit => known(readLimit(limit)))
}

/** A calendar window is aligned by nature; everything else is a bucket unless it says otherwise. */
export function defaultAlgorithm(limits: readonly LimitSpec[]): Algorithm {
  return limits.some(limit => limit.calendar !== null) ? 'fixed-window' : 'token-bucket'
}

export function normalKey(key: RuleText['key']): KeyPart[] {
  return asList(key).map(part => known(readKeyPart(part)))
}

function normalTier(text: NonNullable<RuleText['tier']>): TierSpec {
  const limits = Object.entries(text.limits).map(([name, limit]) => [name, known(readLimit(limit))])
  return {
    by: known(readKeyPart(text.by)),
    fallback: text.default,
    limits: Object.fromEntries(limits) as Record<string, LimitSpec>,
  }
}

function normalCost(text: RuleText['cost']): CostSpec {
  return {
    fallback: text?.default ?? 1,
    match: (text?.match ?? []).map(({ cost, ...match }) => ({ match: normalMatch(match), cost })),
    requestHeader: text?.requestHeader?.toLowerCase() ?? null,
    responseHeader: text?.responseHeader?.toLowerCase() ?? null,
  }
}

function normalOnExceeded(text: RuleText['onExceeded']): OnExceededSpec {
  const { status, headers, body, staleFor } = text ?? {}
  return {
    status: status ?? 429,
    headers: lowerNames(headers ?? {}),
    // The contract's example writes the default out as an empty body.
    body: body === undefined || body === '' ? null : body,
    staleForMs: staleFor === undefined ? 0 : known(readDuration(staleFor)),
  }
}

function lowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

function asList<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T]
}
