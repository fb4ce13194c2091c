/**
 * What each rule says to one request, before anything is charged. One object serves all decisions;
 * the numbers are columns so that a decision allocates nothing.
 */
import type { DecisionReason } from './decision.js'
import { type FairShare, unitEpsilon } from './fair-share.js'
import type { KeySketch } from './key-sketch.js'
import type { ReusedDecision } from './reused-decision.js'
import type { LimitPlan, RulePlan } from './rule-plan.js'
import type { UsageStore } from './usage-store.js'

/** Longest time a verdict names, milliseconds: a cost above the limit never passes. */
const waitMsMax = 366 * 86_400_000

export class Evaluation {
  readonly plans: RulePlan[] = []
  readonly limits: LimitPlan[] = []
  readonly keys: string[] = []
  readonly slot: Int32Array
  readonly cost: Float64Array
  readonly admitted: Uint8Array
  /** The key is absent and the rule denies that. */
  readonly missing: Uint8Array
  readonly delayMs: Float64Array
  /** Units left of the fleet's, kept up to date through the decision. */
  readonly room: Float64Array
  count = 0
  /** Until a pod's share lets the request pass. */
  readonly #waitMs: Float64Array
  /** Room of a counter outside a decision. */
  readonly #single = new Float64Array(1)
  readonly #store: UsageStore
  readonly #share: FairShare
  readonly #sketch: KeySketch

  constructor(
    rulesMax: number,
    parts: { readonly store: UsageStore; readonly share: FairShare; readonly sketch: KeySketch },
  ) {
    this.slot = new Int32Array(rulesMax)
    this.cost = new Float64Array(rulesMax)
    this.admitted = new Uint8Array(rulesMax)
    this.missing = new Uint8Array(rulesMax)
    this.delayMs = new Float64Array(rulesMax)
    this.room = new Float64Array(rulesMax)
    this.#waitMs = new Float64Array(rulesMax)
    this.#store = parts.store
    this.#share = parts.share
    this.#sketch = parts.sketch
  }

  /** Adds a rule to the request at hand and judges it. Charges nothing. */
  add(
    plan: RulePlan,
    limit: LimitPlan,
    key: string,
    cost: number,
    missing: boolean,
    monotonicMs: number,
    wallMs: number,
  ): void {
    const place = this.count++
    this.plans[place] = plan
    this.limits[place] = limit
    this.keys[place] = key
    this.cost[place] = plan.isGauge && cost > 0 ? 1 : cost
    this.missing[place] = missing ? 1 : 0
    this.delayMs[place] = 0
    this.slot[place] = -1
    this.admitted[place] = 0
    if (missing) return
    const slot = this.#store.open(plan.identity, key, limit.shape, monotonicMs, wallMs)
    this.slot[place] = slot
    this.admitted[place] = (
      slot < 0
        ? this.#judgeUnplaced(place, monotonicMs)
        : this.#judge(place, slot, monotonicMs, wallMs)
    )
      ? 1
      : 0
  }

  /**
   * The table has no place for the key: `failureMode: closed` refuses, else a sketch keeps count.
   */
  #judgeUnplaced(place: number, monotonicMs: number): boolean {
    const plan = this.plans[place] as RulePlan
    const limit = this.limits[place] as LimitPlan
    const key = this.keys[place] as string
    const cost = this.cost[place] as number
    if (plan.spec.failureMode === 'closed') return cost <= 0
    const { pods } = this.#store
    if (plan.isLeaky) {
      const left = this.#sketch.left(plan, limit, key, pods, monotonicMs)
      this.delayMs[place] = Math.max(0, limit.capacity / pods - left) * (pods / limit.rate)
    }
    return this.#sketch.admits(plan, limit, key, cost, pods, monotonicMs)
  }

  #judge(place: number, slot: number, monotonicMs: number, wallMs: number): boolean {
    const store = this.#store
    const slots = store.slots
    const plan = this.plans[place] as RulePlan
    const cost = this.cost[place] as number
    store.readRoom(slot, this.room, place, monotonicMs, wallMs)
    const room = this.room[place] as number
    if (cost < 0) return true
    if (cost === 0) return room >= -unitEpsilon
    slots.hits[slot] = (slots.hits[slot] as number) + 1
    store.offer(slot, cost, monotonicMs)
    if (this.#isShut(plan, slot)) return false
    if (plan.isLeaky) {
      const used = (slots.capacity[slot] as number) - room
      this.delayMs[place] = used * (slots.periodMs[slot] as number)
      return room >= cost - unitEpsilon
    }
    return this.#share.admits(slot, cost, this.room, place, monotonicMs)
  }

  /** `onPartition: closed` gives nothing to keys that were first seen while the fleet is split. */
  #isShut(plan: RulePlan, slot: number): boolean {
    const since = this.#store.splitSinceMs
    if (since === Number.POSITIVE_INFINITY || plan.spec.onPartition !== 'closed') return false
    return (this.#store.slots.createdAt[slot] as number) >= since
  }

  /** Takes the cost of a rule that admits. */
  charge(place: number, monotonicMs: number, wallMs: number): void {
    const store = this.#store
    const slot = this.slot[place] as number
    const cost = this.cost[place] as number
    const plan = this.plans[place] as RulePlan
    if (slot < 0) {
      const limit = this.limits[place] as LimitPlan
      const key = this.keys[place] as string
      if (this.missing[place] === 0) {
        this.#sketch.take(plan, limit, key, cost, store.pods, monotonicMs)
      }
      return
    }
    if (cost === 0) return
    let taken = cost
    if (cost < 0) {
      taken = -store.giveBack(slot, -cost, monotonicMs, wallMs)
      this.#share.took(slot, cost)
    } else if (plan.countsOutcome) {
      const { reserved } = store.slots
      reserved[slot] = (reserved[slot] as number) + cost
    } else {
      store.consume(slot, cost, monotonicMs, wallMs)
      this.#share.took(slot, cost)
    }
    this.room[place] = (this.room[place] as number) - taken
    store.noteChange(slot, this.room, place, monotonicMs)
  }

  /** Counts a denial, and lets the others know of the demand. */
  deny(place: number, monotonicMs: number): void {
    const slot = this.slot[place] as number
    if (slot < 0) return
    const { denied } = this.#store.slots
    denied[slot] = (denied[slot] as number) + 1
    this.#store.noteChange(slot, this.room, place, monotonicMs)
  }

  /** Tells the sending side of a counter that moved outside a decision. */
  note(slot: number, monotonicMs: number, wallMs: number): void {
    this.#store.readRoom(slot, this.#single, 0, monotonicMs, wallMs)
    this.#store.noteChange(slot, this.#single, 0, monotonicMs)
  }

  /** The verdict of a rule as it stands now: after charging, when it was charged. */
  read(place: number, into: ReusedDecision, monotonicMs: number, wallMs: number): void {
    const limit = this.limits[place] as LimitPlan
    const slot = this.slot[place] as number
    into.allowed = this.admitted[place] === 1
    into.limit = limit.count
    into.windowMs = limit.windowMs
    into.delayMs = into.allowed ? (this.delayMs[place] as number) : 0
    into.remaining = 0
    into.resetAfterMs = 0
    into.retryAfterMs = 0
    if (this.missing[place] === 1) return
    if (slot < 0) {
      this.#readUnplaced(place, into, monotonicMs)
      return
    }
    const store = this.#store
    const room = this.room[place] as number
    const share = this.#share.share(slot, room, monotonicMs)
    into.remaining = Math.max(0, Math.floor(share + unitEpsilon))
    // A bucket's times follow from its room; the other families are asked.
    const capacity = store.slots.capacity[slot] as number
    const unitMs = limit.isBucket ? (store.slots.periodMs[slot] as number) : 0
    if (limit.isBucket) into.resetAfterMs = Math.max(0, capacity - room) * unitMs
    else {
      store.forecast.findReset(slot, monotonicMs, wallMs)
      into.resetAfterMs = Math.max(0, store.forecast.foundMs)
    }
    if (into.allowed) return
    const cost = Math.max(this.cost[place] as number, unitEpsilon)
    let byLevel = Math.max(0, cost - room) * unitMs
    if (!limit.isBucket || cost > capacity) {
      store.forecast.findWait(slot, cost, monotonicMs, wallMs)
      byLevel = store.forecast.foundMs
    }
    this.#share.readWait(slot, cost, this.room, this.#waitMs, place, monotonicMs)
    const byShare = this.#waitMs[place] as number
    into.retryAfterMs = Math.min(waitMsMax, Math.ceil(Math.max(byLevel, byShare, 1)))
  }

  #readUnplaced(place: number, into: ReusedDecision, monotonicMs: number): void {
    const plan = this.plans[place] as RulePlan
    const limit = this.limits[place] as LimitPlan
    const key = this.keys[place] as string
    const { pods } = this.#store
    const left = this.#sketch.left(plan, limit, key, pods, monotonicMs)
    into.remaining = Math.floor(left + unitEpsilon)
    if (into.allowed) return
    const cost = Math.max(this.cost[place] as number, unitEpsilon)
    const waitMs = this.#sketch.waitMs(plan, limit, key, cost, pods, monotonicMs)
    into.retryAfterMs = Math.min(waitMsMax, Math.ceil(Math.max(waitMs, 1)))
  }

  /** The rule could not count the key in the table. */
  isDegraded(place: number): boolean {
    return this.slot[place] === -1 && this.missing[place] === 0
  }

  /** Why a rule denies. */
  reason(place: number): DecisionReason {
    if (this.missing[place] === 1) return 'missing-key'
    const closed = (this.plans[place] as RulePlan).spec.failureMode === 'closed'
    return closed && this.isDegraded(place) ? 'degraded' : 'limited'
  }
}
