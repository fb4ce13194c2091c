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

/** Where demand is left that was read, units per millisecond. */
export interface DemandNumbers {
  own: number
  others: number
  surge: number
}

export class Demand {
  readonly #slots: SlotColumns
  readonly #entries: OriginEntries
  readonly #origins: OriginRegistry
  readonly #fleet: { readonly pods: number }
  /*
   * A decision allocates nothing, so numbers with fractions go from function to function in these
   * fields: as arguments or results they may each need a place on the heap.
   */
  /** Time constant of the counter at hand, milliseconds. */
  #tauMs = Number.NaN
  /** Time over which a demand fades, milliseconds, and in time constants. */
  #quietMs = Number.NaN
  #spans = Number.NaN
  /** What is left of it, 0..1. */
  #left = Number.NaN
  /** The demand or units at hand. */
  #found = Number.NaN

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

  /** Time constant of a counter's average, milliseconds. */
  tauMs(slot: number): number {
    this.#findTau(slot)
    return this.#tauMs
  }

  /**
   * Never longer than the limit's own burst lasts, which covers what a slow average gets wrong.
   */
  #findTau(slot: number): void {
    const rate = this.#slots.rate[slot] as number
    if (rate === 0) {
      this.#tauMs = demandTauMsMin
      return
    }
    const capacity = this.#slots.capacity[slot] as number
    const tauMs = Math.min(evenShareUnits * this.#fleet.pods, capacity) / rate
    this.#tauMs = Math.max(demandTauMsMin, Math.min(demandTauMsMax, tauMs))
  }

  /** Counts an offer of `units` >= 0 to this pod. */
  offer(slot: number, units: number, monotonicMs: number): void {
    const slots = this.#slots
    this.#findTau(slot)
    const demand = slots.ownDemand[slot] as number
    this.#quietMs = monotonicMs - (slots.ownDemandAt[slot] as number)
    this.#fade()
    slots.ownDemand[slot] = demand * this.#left + units / this.#tauMs
    slots.ownDemandAt[slot] = monotonicMs
    slots.offered[slot] = (slots.offered[slot] as number) + units
  }

  /** Own demand now, not bounded. */
  own(slot: number, monotonicMs: number): number {
    this.#findOwn(slot, monotonicMs)
    return this.#found
  }

  #findOwn(slot: number, monotonicMs: number): void {
    const demand = this.#slots.ownDemand[slot] as number
    const age = monotonicMs - (this.#slots.ownDemandAt[slot] as number)
    this.#found = demand
    // Within a decision the request at hand has just been counted.
    if (demand === 0 || age <= 0) return
    this.#findTau(slot)
    this.#quietMs = age
    this.#fade()
    this.#found = demand * this.#left
  }

  /** Demand of all others now. */
  others(slot: number, monotonicMs: number): number {
    this.#findOthers(slot, monotonicMs)
    return this.#found
  }

  #findOthers(slot: number, monotonicMs: number): void {
    const demand = this.#slots.othersDemand[slot] as number
    const age = monotonicMs - (this.#slots.othersDemandAt[slot] as number)
    this.#found = demand
    if (demand === 0 || age <= demandHoldMs) return
    this.#findTau(slot)
    this.#quietMs = age - demandHoldMs
    this.#fade()
    this.#found = demand * this.#left
  }

  /** Own demand, bounded, and that of all others. */
  read(slot: number, othersAtMs: number, monotonicMs: number, into: DemandNumbers): void {
    this.#findOthers(slot, othersAtMs)
    into.others = this.#found
    this.#findOwn(slot, monotonicMs)
    this.#bound(slot)
    into.own = this.#found
  }

  readSurge(slot: number, monotonicMs: number, into: DemandNumbers): void {
    this.#findSurge(slot, monotonicMs)
    into.surge = this.#found
  }

  /** Counts offers to others that news has just told of. */
  noteSurge(slot: number, units: number, monotonicMs: number): void {
    const slots = this.#slots
    this.#findRecent(slot, monotonicMs)
    slots.surge[slot] = this.#found + units
    slots.surgeAt[slot] = monotonicMs
  }

  /**
   * Others' demand of the last moments: knows of a burst long before the average does. What chance
   * alone may have brought together, one deviation, is not believed.
   */
  surge(slot: number, monotonicMs: number): number {
    this.#findSurge(slot, monotonicMs)
    return this.#found
  }

  #findSurge(slot: number, monotonicMs: number): void {
    this.#findRecent(slot, monotonicMs)
    const units = this.#found
    this.#found = units <= 1 ? 0 : (units - Math.sqrt(units)) / surgeTauMs
  }

  #findRecent(slot: number, monotonicMs: number): void {
    const units = this.#slots.surge[slot] as number
    const age = monotonicMs - (this.#slots.surgeAt[slot] as number)
    this.#found = 0
    if (units === 0 || age > 10 * surgeTauMs) return
    this.#spans = age / surgeTauMs
    this.#decay()
    this.#found = units * this.#left
  }

  /** What of a pod's demand counts. A gauge has no rate and knows no such bound. */
  plausible(slot: number, demand: number): number {
    this.#found = demand
    this.#bound(slot)
    return this.#found
  }

  #bound(slot: number): void {
    const rate = this.#slots.rate[slot] as number
    if (rate > 0) this.#found = Math.min(this.#found, plausibleRates * rate)
  }

  /** Adds the others' demand up; after news. Walks the counter's origins. */
  sumOthers(slot: number, monotonicMs: number): void {
    const slots = this.#slots
    const entries = this.#entries
    this.#findTau(slot)
    let sum = 0
    let entry = slots.firstEntry[slot] as number
    for (; entry >= 0; entry = entries.next[entry] as number) {
      const demand = entries.demand[entry] as number
      if (demand === 0) continue
      const state = this.#origins.state[entries.origin[entry] as number]
      if (state === originDeparted || state === originSilent) continue
      const age = monotonicMs - (entries.publishedAt[entry] as number)
      this.#quietMs = age - demandHoldMs
      this.#fade()
      sum += this.plausible(slot, demand) * this.#left
    }
    slots.othersDemand[slot] = sum
    slots.othersDemandAt[slot] = monotonicMs
  }

  /** What is left of a demand that has faded for `#quietMs`. */
  #fade(): void {
    if (this.#quietMs <= 0) this.#left = 1
    else if (this.#quietMs > 12 * this.#tauMs) this.#left = 0
    else {
      this.#spans = this.#quietMs / this.#tauMs
      this.#decay()
    }
  }

  /** exp(-x) for x >= 0, by its series (error below 1e-5) where that is several times quicker. */
  #decay(): void {
    const x = this.#spans
    this.#left = x < 0.1 ? 1 - x * (1 - x * (0.5 - x / 6)) : Math.exp(-x)
  }
}
