/**
 * Who may take what is left of a window: fixed, sliding or a log. No refill paces a window as it
 * does a bucket, so a pod is entitled to a part of *what remains*, and that anew all the time:
 * entitlement fills so fast that the pods together would spend the rest in `handOutMs`. What is
 * left shrinks with every piece of news, and so does what may be taken unseen; nothing is kept
 * back, and the last unit goes to the pod whose entitlement is whole first.
 */
import { DemandView, type UsageStore } from './usage-store.js'

/**
 * What is left is handed out over this time, milliseconds, or so many news lags. A log gets units
 * back in lumps, which each hand-out delays: there it is shorter.
 */
const handOutMsMin = 100
const handOutMsMinLog = 50
const handOutLags = 6
/**
 * Others of whom no request was heard for so long do not ask, milliseconds: while shares decide a
 * pod tells of its requests every 100 ms, and some of that may be lost.
 */
const silentMs = 500
/**
 * A window that gains units all the time comes to rest with what it gains meanwhile, milliseconds.
 */
const restMsBase = 8
const restMsPerPod = 0.16
/** Entitlement to what is still to come is kept for this long at most, milliseconds. */
const keptMs = 200
/** Numbers that a seed may be. */
const seeds = 2 ** 32

/** Time over which the fleet spends what is left, milliseconds. */
export function handOutMs(lagMs: number, isLog: boolean): number {
  return Math.max(isLog ? handOutMsMinLog : handOutMsMin, handOutLags * lagMs)
}

/** Units that a window gaining `refill` units per millisecond rests at while shares decide. */
export function windowRest(capacity: number, refill: number, pods: number): number {
  return Math.min(capacity / 8, refill * (restMsBase + restMsPerPod * pods))
}

/**
 * How fast the fleet's entitlement fills, units per millisecond; where there is no room nothing
 * does. `refill`: units per millisecond that come back by themselves; `spendMs`: see `handOutMs`.
 */
export function windowFill(room: number, refill: number, rest: number, spendMs: number): number {
  if (room <= 0) return 0
  return Math.max(0, refill + (room - rest) / spendMs)
}

/**
 * Entitlement on entering scarcity. Pods begin at different phases of a unit, or all of them would
 * have a whole one in the same moment. `quietMs`: since another pod was last heard to be asked.
 */
export function firstWindowEntitlement(
  cost: number,
  phase: number,
  fill: number,
  quietMs: number,
): number {
  return Math.min(cost, phase * cost + fill * quietMs)
}

export class WindowShare {
  readonly #store: UsageStore
  /** Where in a unit this pod begins, 0..1. */
  readonly #phase: number
  readonly #demand = new DemandView()
  // Two that `accrue` is told here: as arguments they would need a place on the heap.
  part = Number.NaN
  fromMs = Number.NaN

  constructor(store: UsageStore) {
    this.#store = store
    this.#phase = store.seed / seeds
  }

  /** No other pod has been asked lately, as far as news tells. */
  isAlone(slot: number, monotonicMs: number): boolean {
    return monotonicMs - (this.#store.slots.othersAskedAt[slot] as number) > silentMs
  }

  /** On entering scarcity. */
  enter(slot: number, cost: number, room: number, monotonicMs: number): void {
    const { slots } = this.#store
    const askedAt = slots.othersAskedAt[slot] as number
    const quietMs = Math.max(0, monotonicMs - askedAt - this.#handOutMs(slot))
    this.#findPart(slot, monotonicMs)
    const fill = this.#fill(slot, room, this.part)
    slots.entitlement[slot] = firstWindowEntitlement(cost, this.#phase, fill, quietMs)
  }

  /**
   * Brings the entitlement of a pod with `part` of the demand up to now; time before `fromMs` does
   * not count. `fits`: the fleet has room for `cost`; while it has not, entitlement to the next
   * unit fills up to this pod's phase only: of whole ones in all hands each would be taken as that
   * unit appears. `careful`: what room there seems to be is not believed.
   */
  accrue(
    slot: number,
    cost: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
    fits: boolean,
    careful: boolean,
  ): void {
    const { slots } = this.#store
    const { part } = this
    const room = rooms[place] as number
    const sinceMs = Math.max(slots.entitledAt[slot] as number, this.fromMs)
    const elapsedMs = Math.max(0, monotonicMs - sinceMs)
    const before = slots.entitlement[slot] as number
    const refill = this.#refill(slot)
    if (fits) {
      const fill = careful ? part * refill : this.#fill(slot, room, part)
      const most = Math.max(cost, part * room, part * refill * keptMs)
      slots.entitlement[slot] = Math.min(before + fill * elapsedMs, most)
    } else {
      const grown = Math.min(before + part * refill * elapsedMs, this.#phase * cost)
      slots.entitlement[slot] = Math.max(grown, Math.min(before, cost))
    }
    slots.entitledAt[slot] = monotonicMs
  }

  /** Until the entitlement covers `cost`, milliseconds, were everything to stay as it is. */
  readWait(
    slot: number,
    cost: number,
    rooms: Float64Array,
    waits: Float64Array,
    place: number,
    monotonicMs: number,
  ): void {
    const store = this.#store
    const missing = cost - (store.slots.entitlement[slot] as number)
    this.#findPart(slot, monotonicMs)
    const fill = this.#fill(slot, rooms[place] as number, this.part)
    waits[place] = fill > 0 ? Math.min(silentMs, missing / fill) : 0
  }

  /** Units per millisecond that come back by themselves; a fixed window's come when it ends. */
  #refill(slot: number): number {
    const store = this.#store
    return store.familyOf(slot) === 'fixed' ? 0 : (store.slots.rate[slot] as number)
  }

  /** This pod's part of the demand. */
  #findPart(slot: number, monotonicMs: number): void {
    this.#store.readDemand(slot, monotonicMs, monotonicMs, this.#demand)
    const { own, others } = this.#demand
    this.part = own > 0 ? own / (own + others) : 0
  }

  #fill(slot: number, room: number, part: number): number {
    const store = this.#store
    const refill = this.#refill(slot)
    const rest = windowRest(store.slots.capacity[slot] as number, refill, store.pods)
    return part * windowFill(room, refill, rest, this.#handOutMs(slot))
  }

  #handOutMs(slot: number): number {
    return handOutMs(this.#store.lagMs, this.#store.familyOf(slot) === 'log')
  }
}
