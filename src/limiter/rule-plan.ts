/**
 * A rule made ready for decisions: its counter identity and the shapes of its limits, worked out
 * once.
 */
import { WindowClock } from '../lib/window-clock.js'
import type { CounterFamily, CounterShape, RuleName } from '../vocabulary.js'
import type { DecisionCounts } from './decision-counts.js'
import type { Algorithm, LimitSpec, RuleSpec } from './rule.js'
import type { UsageStore } from './usage-store.js'

/** One limit in force. */
export interface LimitPlan {
  readonly shape: number
  /** COUNT as the rule has it. */
  readonly count: number
  readonly windowMs: number
  readonly capacity: number
  /** Long-run units per millisecond; 0 for a concurrency rule. */
  readonly rate: number
  readonly isBucket: boolean
}

const families: Readonly<Record<Algorithm, CounterFamily>> = {
  'token-bucket': 'bucket',
  'leaky-bucket': 'bucket',
  'fixed-window': 'fixed',
  'sliding-window': 'sliding',
  'sliding-log': 'log',
}

export class RulePlan {
  readonly spec: RuleSpec
  /** The rule's name alone in a list, for decisions that name no other. */
  readonly names: readonly RuleName[]
  readonly identity: number
  /** How often it decided what. */
  readonly counts: DecisionCounts
  readonly enforces: boolean
  readonly isLeaky: boolean
  readonly isGauge: boolean
  /** Charged only when the response turned out so. */
  readonly countsOutcome: boolean
  /** Something is owed after the response. */
  readonly settles: boolean
  readonly #limits = new Map<LimitSpec | null, LimitPlan>()
  readonly #only: LimitPlan | null

  /** `counts`: kept from an earlier plan of the rule, so that a reload loses none. */
  constructor(spec: RuleSpec, store: UsageStore, counts: DecisionCounts) {
    this.spec = spec
    this.names = [spec.name]
    this.counts = counts
    this.identity = store.identityOf(ruleIdentity(spec))
    this.enforces = spec.mode === 'enforce'
    this.isGauge = spec.concurrency !== null
    this.isLeaky = !this.isGauge && spec.algorithm === 'leaky-bucket'
    this.countsOutcome = !this.isGauge && spec.count !== 'all'
    this.settles = this.isGauge || this.countsOutcome || spec.cost.responseHeader !== null
    const limits = spec.tier ? Object.values(spec.tier.limits) : [spec.limit]
    for (const limit of limits) this.#limits.set(limit, planLimit(spec, limit, store))
    this.#only = this.#limits.size === 1 ? [...this.#limits.values()][0]! : null
  }

  /** The plan of one of the rule's limits; null stands for a concurrency rule. */
  limit(limit: LimitSpec | null): LimitPlan {
    return this.#only ?? this.#limits.get(limit)!
  }

  /** The limit that a counter runs under; the first one for a shape of other rules. */
  limitOfShape(shape: number): LimitPlan {
    const limits = [...this.#limits.values()]
    return limits.find(limit => limit.shape === shape) ?? limits[0]!
  }
}

/**
 * What a rule's counters are called: name, algorithm family, and whether windows roll or follow the
 * calendar. Never the numbers, so usage survives their change (counters.md §2).
 */
export function ruleIdentity(spec: RuleSpec): string {
  if (spec.concurrency !== null) return `${spec.name}/gauge`
  const first = spec.limit ?? Object.values(spec.tier?.limits ?? {})[0] ?? null
  const family = spec.algorithm === 'leaky-bucket' ? 'leaky' : familyOf(spec.algorithm, first)
  return `${spec.name}/${family}/${first?.calendar ?? 'rolling'}`
}

/**
 * A bucket cannot follow the calendar: `10000/day` without another algorithm is a window that does.
 */
function familyOf(algorithm: Algorithm, limit: LimitSpec | null): CounterFamily {
  return algorithm === 'token-bucket' && limit?.calendar ? 'fixed' : families[algorithm]
}

function planLimit(spec: RuleSpec, limit: LimitSpec | null, store: UsageStore): LimitPlan {
  const shape = counterShape(spec, limit)
  const bucket = shape.family === 'bucket'
  return {
    shape: store.shapeOf(shape),
    count: limit?.count ?? shape.capacity,
    windowMs: limit?.windowMs ?? 0,
    capacity: shape.capacity,
    isBucket: bucket,
    rate: shape.periodMs === 0 ? 0 : (bucket ? 1 : shape.capacity) / shape.periodMs,
  }
}

/** The numbers a rule's counters run under. */
export function counterShape(spec: RuleSpec, limit: LimitSpec | null): CounterShape {
  const { onPartition } = spec
  if (limit === null) {
    return {
      family: 'gauge',
      capacity: spec.concurrency ?? 1,
      periodMs: 0,
      clock: null,
      onPartition,
    }
  }
  const family = familyOf(spec.algorithm, limit)
  if (family === 'bucket') {
    const periodMs = limit.windowMs / limit.count
    const capacity =
      spec.algorithm === 'leaky-bucket'
        ? leakyCapacity(periodMs, spec.queue, spec.maxWaitMs, limit.count)
        : (spec.burst ?? limit.count)
    return { family, capacity, periodMs, clock: null, onPartition }
  }
  const windowed = family === 'fixed' || family === 'sliding'
  const clock = windowed ? new WindowClock(limit.windowMs, limit.calendar, spec.timezone) : null
  return { family, capacity: limit.count, periodMs: limit.windowMs, clock, onPartition }
}

/**
 * A leaky bucket as a bucket: one request runs, the others wait, at most `queue` of them and none
 * longer than `maxWaitMs`. Without either bound the queue holds one window's worth.
 */
export function leakyCapacity(
  periodMs: number,
  queue: number | null,
  maxWaitMs: number | null,
  count: number,
): number {
  const byWait = maxWaitMs === null ? Number.POSITIVE_INFINITY : maxWaitMs / periodMs
  const byQueue = queue ?? Number.POSITIVE_INFINITY
  const waiting = Math.min(byWait, byQueue)
  return 1 + (Number.isFinite(waiting) ? waiting : count)
}
