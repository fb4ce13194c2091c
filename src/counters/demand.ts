/**
 * How much each pod is asked for: a decaying average of offers, denied ones included (counters.md
 * §3). Own demand moves with every request; the others' is what they publish, bounded to what is
 * plausible, held while it is fresh and faded out when they fall silent. Rates are units per
 * millisecond.
 */
import type { OriginEntries } from './origin-entries.js'
import { type OriginRegistry, originDeparted, originSilent } from './origin-registry.js'
import type { SlotColumns } from './slot-columns.js'

/**
 * Shortest and longest time constant of the average, milliseconds. The shortest (counters.md §3)
 * serves every limit of which a pod can take a unit several times within it.
 */
export const demandTauMsMin = 300
export const demandTauMsMax = 60_000
/**
 * A limit of fewer units is averaged for as long as it takes an even share to bring this many: what
 * fewer requests tell of a pod's part is chance.
 */
const evenShareUnits = 1
/** The same for sudden bursts of the others. */
export const surgeTauMs = 20
/** Others' demand stands unchanged this long after it was published, then it fades. */
export const demandHoldMs = 250
/**
 * One pod's demand counts for at most this many times the limit's rate: a retry storm buys no
 * share.
 */
export const plausibleRates = 2

export class Demand {
  readonly #slots: SlotColumns
  readonly #entries: OriginEntries
  readonly #origins: OriginRegistry
  readonly #fleet: { readonly pods: number }

  constructor(parts: {
    readonly slots: SlotColumns
    readonly entries: OriginEntries
    readonly origins: OriginRegistry
    readonly pods: number
  }) {
    this.#slots = parts.slots
    this.#entries = parts.entries
    this.#origins = parts.origins
    this.#fleet = parts
  }

  /**
   * Time constant of a counter's average, milliseconds. Never longer than the limit's own burst
   * lasts, which covers what a slow average gets wrong.
   */
  tauMs(slot: number): number {
    const rate = this.#slots.rate[slot] as number
    if (rate === 0) return demandTauMsMin
    const capacity = this.#slots.capacity[slot] as number
    const tauMs = Math.min(evenShareUnits * this.#fleet.pods, capacity) / rate
    return Math.max(demandTauMsMin, Math.min(demandTauMsMax, tauMs))
  }

  /** Counts an offer of `units` >= 0 to this pod. */
  offer(slot: number, units: number, monotonicMs: number): void {
    const slots = this.#slots
    const tauMs = this.tauMs(slot)
    const age = monotonicMs - (slots.ownDemandAt[slot] as number)
    slots.ownDemand[slot] = (slots.ownDemand[slot] as number) * faded(age, tauMs) + units / tauMs
    slots.ownDemandAt[slot] = monotonicMs
    slots.offered[slot] = (slots.offered[slot] as number) + units
  }

  /** Own demand now, not bounded. */
  own(slot: number, monotonicMs: number): number {
    const demand = this.#slots.ownDemand[slot] as number
    if (demand === 0) return 0
    const age = monotonicMs - (this.#slots.ownDemandAt[slot] as number)
    // Within a decision the request at hand has just been counted.
    return age <= 0 ? demand : demand * faded(age, this.tauMs(slot))
  }

  /** Demand of all others now. */
  others(slot: number, monotonicMs: number): number {
    const demand = this.#slots.othersDemand[slot] as number
    if (demand === 0) return 0
    const age = monotonicMs - (this.#slots.othersDemandAt[slot] as number)
    return age <= demandHoldMs ? demand : demand * faded(age - demandHoldMs, this.tauMs(slot))
  }

  /** Counts offers to others that news has just told of. */
  noteSurge(slot: number, units: number, monotonicMs: number): void {
    const slots = this.#slots
    slots.surge[slot] = this.#recentUnits(slot, monotonicMs) + units
    slots.surgeAt[slot] = monotonicMs
  }

  /**
   * Others' demand of the last moments: knows of a burst long before the average does. What chance
   * alone may have brought together, one deviation, is not believed.
   */
  surge(slot: number, monotonicMs: number): number {
    const units = this.#recentUnits(slot, monotonicMs)
    return units <= 1 ? 0 : (units - Math.sqrt(units)) / surgeTauMs
  }

  #recentUnits(slot: number, monotonicMs: number): number {
    const units = this.#slots.surge[slot] as number
    if (units === 0) return 0
    const age = monotonicMs - (this.#slots.surgeAt[slot] as number)
    return age > 10 * surgeTauMs ? 0 : units * decay(age / surgeTauMs)
  }

  /** What of a pod's demand counts. A gauge has no rate and knows no such bound. */
  plausible(slot: number, demand: number): number {
    const rate = this.#slots.rate[slot] as number
    return rate > 0 ? Math.min(demand, plausibleRates * rate) : demand
  }

  /** Adds the others' demand up; after news. Walks the counter's origins. */
  sumOthers(slot: number, monotonicMs: number): void {
    const slots = this.#slots
    const entries = this.#entries
    const tauMs = this.tauMs(slot)
    let sum = 0
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      const demand = entries.demand[entry] as number
      if (demand === 0) continue
      const state = this.#origins.state[entries.origin[entry] as number]
      if (state === originDeparted || state === originSilent) continue
      const age = monotonicMs - (entries.publishedAt[entry] as number)
      sum += this.plausible(slot, demand) * faded(age - demandHoldMs, tauMs)
    }
    slots.othersDemand[slot] = sum
    slots.othersDemandAt[slot] = monotonicMs
  }
}

/** What is left of a demand that has faded for `quietMs`. */
function faded(quietMs: number, tauMs: number): number {
  if (quietMs <= 0) return 1
  return quietMs > 12 * tauMs ? 0 : decay(quietMs / tauMs)
}

/** exp(-x) for x >= 0, by its series (error below 1e-5) where that is several times quicker. */
function decay(x: number): number {
  return x < 0.1 ? 1 - x * (1 - x * (0.5 - x / 6)) : Math.exp(-x)
}
