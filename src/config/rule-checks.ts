/**
 * What a schema cannot say of a rule: which keys go together. Only for files valid by the schema.
 */
import type { LimitSpec } from '../limiter/rule.js'
import { didYouMean } from './did-you-mean.js'
import type { ConfigPath } from './finding.js'
import type { Reporter } from './locator.js'
import { defaultAlgorithm, ruleLimits } from './normal-rules.js'
import type { RuleText } from './rules-schema.js'

/** Reports every combination in the rule at `path` that means nothing. */
export function checkRule(rule: RuleText, path: ConfigPath, report: Reporter): void {
  checkAmount(rule, path, report)
  const limits = ruleLimits(rule)
  const algorithm = rule.algorithm ?? defaultAlgorithm(limits)
  checkCalendar(rule, limits, path, report)
  if (rule.burst !== undefined && rule.concurrency === undefined && algorithm !== 'token-bucket') {
    const why = rule.algorithm === undefined ? ', which a calendar window implies' : ''
    const message = `burst is for token-bucket only; this rule is ${algorithm}${why}`
    report.errorAtKey([...path, 'burst'], 'burst-algorithm', message)
  }
  for (const key of ['queue', 'maxWait'] as const) {
    if (rule[key] === undefined || algorithm === 'leaky-bucket') continue
    if (rule.concurrency !== undefined) continue
    const message = `${key} is for leaky-bucket only; this rule is ${algorithm}`
    report.errorAtKey([...path, key], 'queue-algorithm', message)
  }
  checkTier(rule, path, report)
}

function checkAmount(rule: RuleText, path: ConfigPath, report: Reporter): void {
  const kinds = ['limit', 'tier', 'concurrency'] as const
  const given = kinds.filter(kind => rule[kind] !== undefined)
  if (given.length === 0) {
    report.error(path, 'no-limit', 'one of limit, tier and concurrency is needed')
  } else if (given.length > 1) {
    const message = `only one of limit, tier and concurrency may stand, got ${given.join(' and ')}`
    report.errorAtKey([...path, given[1]!], 'two-limits', message)
  }
  if (rule.concurrency === undefined) return
  for (const key of ['algorithm', 'burst', 'queue', 'maxWait', 'count'] as const) {
    if (rule[key] === undefined) continue
    report.errorAtKey([...path, key], 'concurrency-key', `${key} does not go with concurrency`)
  }
}

function checkCalendar(
  rule: RuleText,
  limits: readonly LimitSpec[],
  path: ConfigPath,
  report: Reporter,
): void {
  const units = new Set(limits.map(limit => limit.calendar))
  if (units.size > 1) {
    const message = 'limits of one rule are all rolling or all of the same calendar window'
    report.errorAtKey([...path, 'tier', 'limits'], 'mixed-windows', message)
    return
  }
  const [unit] = units
  if (unit === null || unit === undefined) return
  if (rule.algorithm === undefined || rule.algorithm === 'fixed-window') return
  const rolling = { day: '1d', week: '7d', month: '30d' }[unit]
  const message = `${unit} is a calendar window and needs fixed-window; ${rolling} would roll`
  report.error([...path, 'algorithm'], 'calendar-algorithm', message)
}

function checkTier(rule: RuleText, path: ConfigPath, report: Reporter): void {
  if (rule.tier === undefined) return
  const names = Object.keys(rule.tier.limits)
  if (Object.hasOwn(rule.tier.limits, rule.tier.default)) return
  const near = didYouMean(rule.tier.default, names)
  const message = `tier "${rule.tier.default}" is not one of limits: ${names.join(', ')}${near}`
  report.error([...path, 'tier', 'default'], 'unknown-tier', message)
}
