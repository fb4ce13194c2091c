/** Rule sets and requests for tests of the limiter, with everything unsaid at its default. */
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { KeySource, ListEntry, MatchSpec, RuleSet, RuleSpec } from '../../src/limiter/rule.js'
import type { RuleName } from '../../src/vocabulary.js'
import { plainRule } from './plain-rule.js'

export const ip: KeySource = { kind: 'ip' }

export function header(name: string): KeySource {
  return { kind: 'header', name }
}

export function matchSpec(given: Partial<MatchSpec> = {}): MatchSpec {
  return { path: null, method: null, header: null, ...given }
}

export function listEntry(given: Partial<ListEntry>): ListEntry {
  return { cidr: null, ...matchSpec(), ...given }
}

/** 10 per second by address, unless told otherwise. */
export function ruleSpec(
  given: Partial<Omit<RuleSpec, 'name'>> & { name?: string } = {},
): RuleSpec {
  return {
    ...plainRule,
    key: [[ip]],
    limit: { count: 10, windowMs: 1000, calendar: null },
    ...given,
    name: (given.name ?? 'api') as RuleName,
  }
}

export function ruleSet(
  rules: readonly RuleSpec[],
  lists: { allow?: readonly ListEntry[]; deny?: readonly ListEntry[] } = {},
): RuleSet {
  return { allow: lists.allow ?? [], deny: lists.deny ?? [], rules, hash: 0 }
}

type FactsGiven = Partial<Omit<RequestFacts, 'header'>> & {
  readonly headers?: Readonly<Record<string, string>>
}

/** GET / from 192.0.2.7, an untrusted peer, unless told otherwise. */
export function requestFacts(given: FactsGiven = {}): RequestFacts {
  const { headers = {}, ...rest } = given
  return {
    method: 'GET',
    path: '/',
    query: '',
    host: 'shop.example',
    ip: '192.0.2.7',
    peerTrusted: false,
    jwt: null,
    header: name => (Object.hasOwn(headers, name) ? headers[name] : undefined),
    ...rest,
  }
}
