/** A rule with everything unsaid at its default: what other rules of tests and benchmarks start from. */
import type { RuleSpec } from '../../src/limiter/rule.js'
import type { RuleName } from '../../src/vocabulary.js'

/** 10 per second by address, burst 10. */
export const plainRule: RuleSpec = {
  name: 'api' as RuleName,
  match: null,
  key: [[{ kind: 'ip' }]],
  limit: { count: 10, windowMs: 1000, calendar: null },
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
}
