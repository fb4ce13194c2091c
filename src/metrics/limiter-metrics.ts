/** Metrics of decisions, keys and configuration: product.md §6. */
import type { DecisionResult, RuleStats } from '../core-types.js'
import type { DecisionInterface, RuleName } from '../vocabulary.js'
import { byLabel, type MetricDefinition, ofHistogram, one, type Sample } from './scraped-metric.js'
import type { Snapshot } from './snapshot.js'

const results: readonly DecisionResult[] = ['allowed', 'denied', 'shadow_denied', 'delayed']
const interfaces: readonly DecisionInterface[] = ['proxy', 'check', 'auth']

export const limiterMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'decisions_total',
    type: 'counter',
    labels: ['rule', 'result', 'interface'],
    help: 'What each rule said to the requests it matched.',
    read: snapshot =>
      perRule(snapshot, (rule, stats) =>
        results.flatMap(result =>
          interfaces.map(via => ({
            labels: { rule, result, interface: via },
            value: stats?.decisions[result]?.[via] ?? 0,
          })),
        ),
      ),
  },
  {
    name: 'requests_total',
    type: 'counter',
    labels: ['interface', 'reason'],
    help: 'Requests decided, by the reason of the decision, those that no rule matched included.',
    read: ({ reasons }) =>
      interfaces.flatMap(via =>
        Object.entries(reasons[via]).map(([reason, value]) => ({
          labels: { interface: via, reason },
          value,
        })),
      ),
  },
  {
    name: 'decision_duration_seconds',
    type: 'histogram',
    labels: [],
    help: 'Time one decision took. One decision in 16 is timed and stands for 16.',
    read: ({ durations }) => ofHistogram(durations),
  },
  {
    name: 'keys',
    type: 'gauge',
    labels: ['rule'],
    help: 'Keys with live counters in this pod.',
    read: snapshot =>
      perRule(snapshot, (rule, stats) => [{ labels: { rule }, value: stats?.keys ?? 0 }]),
  },
  {
    name: 'estimated_overshoot_ratio',
    type: 'gauge',
    labels: ['rule'],
    help: 'What the fleet admitted against what the limit admits, as this pod sees it; 1 is exact.',
    read: snapshot =>
      perRule(snapshot, (rule, stats) => [
        { labels: { rule }, value: stats?.estimatedOvershootRatio ?? 0 },
      ]),
  },
  {
    name: 'key_evictions_total',
    type: 'counter',
    labels: [],
    help: 'Keys dropped from the table to make room; only keys that were back to full.',
    read: ({ core }) => one(core.keyEvictions),
  },
  {
    name: 'key_table_full_total',
    type: 'counter',
    labels: [],
    help: 'Times the key table was full and a new key was tracked approximately.',
    read: ({ core }) => one(core.tableFull),
  },
  {
    name: 'debt_forgiven_total',
    type: 'counter',
    labels: [],
    help: 'Units consumed beyond what a key may owe, and so never repaid.',
    read: ({ core }) => one(core.debtForgiven),
  },
  {
    name: 'degraded_decisions_total',
    type: 'counter',
    labels: [],
    help: 'Decisions that failureMode made because the limiter failed.',
    read: ({ core, coreFailures }) => one(core.degradedDecisions + coreFailures),
  },
  {
    name: 'denials_unlogged_total',
    type: 'counter',
    labels: [],
    help: 'Denials beyond the first per key and window, or beyond the log lines of a second.',
    read: ({ denialsUnlogged }) => one(denialsUnlogged),
  },
]

export const configMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'config_last_reload_successful',
    type: 'gauge',
    labels: [],
    help: 'Whether the last load of the rules succeeded (1) or the ones before stayed (0).',
    read: ({ config }) => one(config.lastReloadSuccessful ? 1 : 0),
  },
  {
    name: 'config_last_reload_success_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When rules were last loaded with success, Unix time; 0 if never.',
    read: ({ config }) => one(config.lastSuccessSeconds),
  },
  {
    name: 'config_reloads_total',
    type: 'counter',
    labels: ['result'],
    help: 'Loads of the rules.',
    read: ({ config }) =>
      byLabel('result', { success: config.reloadsSucceeded, failure: config.reloadsFailed }),
  },
  {
    name: 'config_hash',
    type: 'gauge',
    labels: [],
    help: 'First 48 bits of a hash over the rules in force; pods with equal rules have equal ones.',
    read: ({ configHash }) => one(configHash),
  },
]

/** Series of the rules in force only: there from the start, gone with the rule. */
function perRule(
  snapshot: Snapshot,
  samples: (rule: RuleName, stats: RuleStats | undefined) => Sample[],
): Sample[] {
  const stats = new Map(snapshot.core.rules.map(rule => [rule.rule, rule]))
  return snapshot.rules.flatMap(rule => samples(rule, stats.get(rule)))
}
