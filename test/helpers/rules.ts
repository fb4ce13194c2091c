/** Rule sets for tests, with every field filled in. */
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { LimitSpec, RuleSet, RuleSpec } from '../../src/limiter/rule.js'
import type { RuleName } from '../../src/vocabulary.js'
import { plainRule } from './plain-rule.js'

export function limitOf(count: number, windowMs: number): LimitSpec {
  return { count, windowMs, calendar: null }
}

export function ruleOf(name: string, parts: Partial<RuleSpec> = {}): RuleSpec {
  return {
    ...plainRule,
    name: name as RuleName,
    key: [[{ kind: 'header', name: 'x-key' }]],
    limit: limitOf(100, 1000),
    ...parts,
  }
}

export function rulesOf(...rules: RuleSpec[]): RuleSet {
  return { allow: [], deny: [], rules, hash: 1 }
}

export function factsOf(key: string, parts: Partial<RequestFacts> = {}): RequestFacts {
  return {
    method: 'GET',
    path: '/',
    query: '',
    host: 'test',
    ip: '192.0.2.1',
    peerTrusted: false,
    jwt: null,
    header: name => (name === 'x-key' ? key : undefined),
    ...parts,
  }
}
