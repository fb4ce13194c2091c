/** Shows counters to people: admin pages and `explain`. Changes nothing. */
import type { RuleName } from '../vocabulary.js'
import type { FairShare } from './fair-share.js'
import { unitEpsilon } from './fair-share.js'
import type { RulePlan } from './rule-plan.js'
import type { UsagePart, UsageStore } from './usage-store.js'

/** One counter; the shape of `KeyView` in core-types. */
export interface CounterView {
  readonly rule: RuleName
  readonly hash: string
  readonly key: readonly string[] | null
  readonly limit: number
  readonly capacity: number
  readonly windowMs: number
  readonly remaining: number
  readonly resetAfterMs: number
  readonly scarce: boolean
  readonly hits: number
  readonly denied: number
  readonly parts: readonly UsagePart[]
}

export class KeyViews {
  readonly store: UsageStore
  readonly #share: FairShare

  constructor(store: UsageStore, share: FairShare) {
    this.store = store
    this.#share = share
  }

  view(plan: RulePlan, slot: number, monotonicMs: number, wallMs: number): CounterView {
    const { store } = this
    const { slots } = store
    const room = (slots.capacity[slot] as number) - store.used(slot, monotonicMs, wallMs)
    const limit = plan.limitOfShape(slots.shape[slot] as number)
    const text = slots.key[slot] ?? null
    store.forecast.findReset(slot, monotonicMs, wallMs)
    return {
      rule: plan.spec.name,
      hash: store.idText(slot),
      key: text === null ? null : keyValues(text),
      limit: limit.count,
      capacity: slots.capacity[slot] as number,
      windowMs: limit.windowMs,
      remaining: Math.max(0, Math.floor(this.#share.share(slot, room, monotonicMs) + unitEpsilon)),
      resetAfterMs: Math.max(0, store.forecast.foundMs),
      scarce: slots.scarce[slot] === 1,
      hits: slots.hits[slot] as number,
      denied: slots.denied[slot] as number,
      parts: store.parts(slot, monotonicMs),
    }
  }

  top(
    plans: readonly RulePlan[],
    by: 'denied' | 'hits',
    n: number,
    monotonicMs: number,
    wallMs: number,
  ): CounterView[] {
    const { slots } = this.store
    const column = by === 'hits' ? slots.hits : slots.denied
    const planOf = new Map(plans.map(plan => [plan.identity, plan]))
    const best: number[] = []
    for (let slot = 0; slot < slots.slotsMax; slot++) {
      if (!slots.isTaken(slot) || !planOf.has(slots.identity[slot] as number)) continue
      if ((column[slot] as number) === 0) continue
      if (best.length >= n && column[slot]! <= column[best[best.length - 1]!]!) continue
      let place = best.length
      while (place > 0 && column[best[place - 1]!]! < column[slot]!) place--
      best.splice(place, 0, slot)
      if (best.length > n) best.pop()
    }
    return best.map(slot => {
      const plan = planOf.get(slots.identity[slot] as number) as RulePlan
      return this.view(plan, slot, monotonicMs, wallMs)
    })
  }
}

/** The raw values in a canonical key text: every part is `LENGTH:SOURCE` and `LENGTH:VALUE`. */
export function keyValues(text: string): readonly string[] | null {
  const values: string[] = []
  let at = 0
  while (at < text.length) {
    for (let half = 0; half < 2; half++) {
      const colon = text.indexOf(':', at)
      const length = colon < 0 ? Number.NaN : Number(text.slice(at, colon))
      if (!Number.isInteger(length) || colon + 1 + length > text.length) return null
      at = colon + 1 + length
      if (half === 1) values.push(text.slice(colon + 1, at))
    }
  }
  return values
}
