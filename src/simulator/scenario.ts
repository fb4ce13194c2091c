/**
 * A simulation in plain data, after validation: what `parse-scenario.ts` makes from the YAML of
 * product.md §9 and the simulator runs. All times are virtual milliseconds from the start.
 */
import type { KeyPart, LimitSpec } from '../limiter/rule.js'

export type SimAlgorithm =
  | 'token-bucket'
  | 'leaky-bucket'
  | 'fixed-window'
  | 'sliding-window'
  | 'sliding-log'

export interface ScenarioRule {
  readonly limit: LimitSpec
  /** Bucket size; null = the limit's count. */
  readonly burst: number | null
  readonly algorithm: SimAlgorithm
  readonly onPartition: 'open' | 'share' | 'closed'
  readonly key: readonly KeyPart[]
  /** Leaky bucket only, as in a rules file. */
  readonly queue: number | null
  readonly maxWaitMs: number | null
}

export interface TrafficEntry {
  /** Pod numbers, or `all`, which includes the pods that join. */
  readonly pods: 'all' | readonly number[]
  /** Requests per second of each pod while the entry is on, > 0; Poisson arrivals. */
  readonly ratePerSecond: number
  readonly fromMs: number
  /** Exclusive; at most the duration. */
  readonly toMs: number
  /** Bursts: on for the first `onMs` of every `periodMs`, counted from 0; null = always on. */
  readonly periodMs: number | null
  readonly onMs: number
  /** Distinct clients that the requests come from, each equally often; 1 = always the same. */
  readonly keys: number
}

export interface NetworkSpec {
  /** One way, milliseconds. */
  readonly latencyMs: number
  /** Added or taken off uniformly: latency ± jitter; at most the latency. */
  readonly jitterMs: number
  /** Chances per packet, 0..1. */
  readonly loss: number
  readonly duplicate: number
  /** A packet held back for two to ten latencies, so that later ones overtake it. */
  readonly reorder: number
  /** Largest UDP payload that passes, bytes. */
  readonly mtuBytes: number
}

export type ScenarioEvent =
  /** No packet passes between pods of different groups; a pod in no group keeps all its links. */
  | {
      readonly kind: 'partition'
      readonly atMs: number
      readonly untilMs: number
      readonly groups: readonly (readonly number[])[]
    }
  /** One direction only: nothing from `from` reaches `to`. */
  | {
      readonly kind: 'block'
      readonly atMs: number
      readonly untilMs: number
      readonly from: readonly number[]
      readonly to: readonly number[]
    }
  /** The process stands still; packets and requests wait in its sockets. */
  | {
      readonly kind: 'pause'
      readonly atMs: number
      readonly untilMs: number
      readonly pods: readonly number[]
    }
  | { readonly kind: 'join'; readonly atMs: number; readonly count: number }
  | { readonly kind: 'kill' | 'leave'; readonly atMs: number; readonly pods: readonly number[] }
  /** Killed and started again at once: the same node name, a new process at a new address. */
  | { readonly kind: 'restart'; readonly atMs: number; readonly pods: readonly number[] }

export interface Scenario {
  readonly pods: number
  readonly durationMs: number
  readonly rule: ScenarioRule
  readonly traffic: readonly TrafficEntry[]
  readonly network: NetworkSpec
  /** In order of time. */
  readonly events: readonly ScenarioEvent[]
}

/** Pods that exist at one time or another: those of the start and those that join. */
export function podsEver(scenario: Scenario): number {
  return scenario.events.reduce(
    (sum, event) => sum + (event.kind === 'join' ? event.count : 0),
    scenario.pods,
  )
}

/** What the rule lets through at once, in requests; the unit of `excessOverBurst`. */
export function burstOf(rule: ScenarioRule): number {
  if (rule.algorithm === 'token-bucket') return rule.burst ?? rule.limit.count
  if (rule.algorithm === 'leaky-bucket') return rule.queue ?? rule.limit.count
  return rule.limit.count
}

/**
 * The times at which the world changes: the start, switches of traffic, events and their ends.
 * Ascending, without repetition, below the duration.
 */
export function changesMs(scenario: Scenario): number[] {
  const times = new Set<number>([0])
  for (const entry of scenario.traffic) {
    times.add(entry.fromMs)
    times.add(entry.toMs)
    const { periodMs } = entry
    if (periodMs === null || entry.onMs >= periodMs) continue
    for (let start = 0; start < entry.toMs; start += periodMs) {
      if (start >= entry.fromMs) times.add(start)
      const end = start + entry.onMs
      if (end >= entry.fromMs && end < entry.toMs) times.add(end)
    }
  }
  for (const event of scenario.events) {
    times.add(event.atMs)
    if ('untilMs' in event) times.add(event.untilMs)
  }
  return [...times].filter(time => time < scenario.durationMs).sort((a, b) => a - b)
}
