/** Rule sets for tests, with every field filled in. */
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { LimitSpec, RuleSet, RuleSpec } from '../../src/limiter/rule.js'
import type { RuleName } from '../../src/vocabulary.js'

export function limitOf(count: number, windowMs: number): LimitSpec {
  return { count, windowMs, calendar: null }
}

export function ruleOf(name: string, parts: Partial<RuleSpec> = {}): RuleSpec {
  return {
    name: name as RuleName,
    match: null,
    key: [[{ kind: 'header', name: 'x-key' }]],
    limit: limitOf(100, 1000),
    tier: null,
    concurrency: null,
    burst: null,
    algorithm: 'token-bucket',
    queue: null,
    maxWaitMs: null,
    onPartition: 'share',
    failureMode: 'open',
    mode: 'enforce',
    missing: 'ip',
    stop: false,
    count: 'all',
    cost: { fallback: 1, match: [], requestHeader: null, responseHeader: null },
    onExceeded: { status: 429, headers: {}, body: null, staleForMs: 0 },
    timezone: 'UTC',
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
