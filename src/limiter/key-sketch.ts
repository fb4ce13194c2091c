/**
 * Where keys go that the full table has no place for: four rows of buckets, each key in one bucket
 * of every row, judged by the emptiest of its four (a count-min sketch with conservative update,
 * over GCRA times). It never forgets consumption, so it may deny a key that shares all four buckets
 * with others, but never hands out more. Every pod gives such a key its even part: nothing of a
 * sketch is replicated. Source: Cormode and Muthukrishnan, count-min sketch (2005).
 */
import type { LimitPlan, RulePlan } from './rule-plan.js'

const rows = 4
const columns = 1 << 14

/** Nobody knows when requests in flight end. */
const gaugeWaitMs = 1000

/** A pod's even part of the burst; at least one unit, or it could admit nothing at all. */
function partOf(limit: LimitPlan, pods: number): number {
  return Math.max(1, limit.capacity / pods)
}

/** How long one unit takes to come back to one pod. */
function unitMs(limit: LimitPlan, pods: number): number {
  return pods / limit.rate
}

export class KeySketch {
  readonly #tats = new Float64Array(rows * columns)
  readonly #seed: number

  /** `seed`: a random 32-bit number. */
  constructor(seed: number) {
    this.#seed = seed >>> 0
  }

  admits(
    plan: RulePlan,
    limit: LimitPlan,
    key: string,
    cost: number,
    pods: number,
    monotonicMs: number,
  ): boolean {
    // Requests in flight are not told by time: without a counter the rule's failure mode decides.
    if (plan.isGauge) return plan.spec.failureMode === 'open'
    return cost <= 0 || this.left(plan, limit, key, pods, monotonicMs) >= cost - 1e-9
  }

  /**
   * Units that this pod has left for a key, never negative. A concurrency rule has none to tell.
   */
  left(plan: RulePlan, limit: LimitPlan, key: string, pods: number, monotonicMs: number): number {
    if (plan.isGauge) return 0
    const owedMs = Math.max(0, this.#lowest(plan.identity, key) - monotonicMs)
    return Math.max(0, partOf(limit, pods) - owedMs / unitMs(limit, pods))
  }

  /** Until `cost` fits, milliseconds; Infinity for more than a pod's part of the burst. */
  waitMs(
    plan: RulePlan,
    limit: LimitPlan,
    key: string,
    cost: number,
    pods: number,
    monotonicMs: number,
  ): number {
    if (plan.isGauge) return gaugeWaitMs
    if (cost > partOf(limit, pods)) return Number.POSITIVE_INFINITY
    const left = this.left(plan, limit, key, pods, monotonicMs)
    return Math.max(0, cost - left) * unitMs(limit, pods)
  }

  take(
    plan: RulePlan,
    limit: LimitPlan,
    key: string,
    cost: number,
    pods: number,
    monotonicMs: number,
  ): void {
    if (cost <= 0 || plan.isGauge) return
    const freeAtMs = Math.max(monotonicMs, this.#lowest(plan.identity, key))
    const tat = freeAtMs + cost * unitMs(limit, pods)
    const hash = this.#hash(plan.identity, key)
    for (let row = 0; row < rows; row++) {
      const place = this.#place(row, hash)
      if ((this.#tats[place] as number) < tat) this.#tats[place] = tat
    }
  }

  #lowest(identity: number, key: string): number {
    const hash = this.#hash(identity, key)
    let lowest = Number.POSITIVE_INFINITY
    for (let row = 0; row < rows; row++) {
      lowest = Math.min(lowest, this.#tats[this.#place(row, hash)] as number)
    }
    return lowest
  }

  #hash(identity: number, key: string): number {
    let hash = this.#seed ^ Math.imul(identity + 1, 0x9e3779b1)
    for (let index = 0; index < key.length; index++) {
      hash = Math.imul(((hash << 7) | (hash >>> 25)) ^ key.charCodeAt(index), 0x85ebca6b)
    }
    return hash ^ (hash >>> 15)
  }

  #place(row: number, hash: number): number {
    let mixed = Math.imul(hash ^ Math.imul(row + 1, 0x9e3779b1), 0xc2b2ae35)
    mixed ^= mixed >>> 16
    return row * columns + (Math.imul(mixed, 0x27d4eb2f) >>> 18)
  }
}
