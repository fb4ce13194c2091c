/**
 * Who may take what is left: counts say whether the fleet still has tokens, shares say whose they
 * are when they are scarce (counters.md §3). While there is plenty everybody takes what he needs;
 * below a guard a pod needs *entitlement*, which fills in proportion to its part of the demand, and
 * *availability*, the fleet's balance less a reserve for what others took and this pod has not
 * heard of yet. All functions are pure; `FairShare` keeps entitlement and mode in the store's
 * columns.
 */
import { DemandView, type UsageStore } from './usage-store.js'
import { WindowShare } from './window-share.js'

/** Shortest lag that the guard is sized for, milliseconds. */
const guardLagMsMin = 20
/** The guard believes a sudden burst to be this much more than what news has told of it so far. */
const surgeFactor = 2
/**
 * The reserve is sized for this lag, milliseconds, and so much more per pod: each may hold news
 * back.
 */
const reserveLagMsBase = 4
const reserveLagMsPerPod = 0.16
const reserveLagFactor = 1.2
/**
 * And so much of the capacity per pod: a large bucket can spare what keeps it from going into debt.
 */
const reserveCapacityPerPod = 0.0004
/** A surplus is handed out over this time, milliseconds. */
const surplusMs = 100
/** Or over the time in which the rate brings this many units, if that is longer. */
const surplusUnits = 3
/**
 * What is always left before there is a surplus: a unit, and this many milliseconds of the rate.
 */
const floorUnits = 1
const floorMs = 4
/** Unused entitlement is kept for this long at most, milliseconds. */
const entitlementMs = 200
/** After a stall news may still be on its way for this long: every pod has sent again by then. */
const roundMs = 100
/** A pod that was asked for fewer requests than this lately enters scarcity with one in hand. */
const newcomerRequests = 6
/** Time that "lately" means; the demand average's own, milliseconds. */
const newcomerMs = 300
/** The part of a bucket by which views of it may drift apart until they are compared again. */
const driftPart = 0.02
/** Views are compared about this often, milliseconds (`BalanceTeller`). */
const driftMs = 1000
/**
 * A demand of this part of the rate is to be served without shares, and by chance it looks so many
 * deviations larger for a moment; each share withheld then would be a false denial.
 */
const calmPart = 0.8
const calmDeviations = 6
/** What is more than this many times the rate is no chance, however few requests tell of it. */
const calmLoadMax = 1.6
/** So much of what others asked for in the last moments counts against calm, */
const calmSurge = 0.3
/** or all of it, when it is so many deviations beyond what they usually ask for. */
const burstDeviations = 1
/**
 * While others ask for more than the average knows of, this many times what more they may take
 * unseen is kept back, but with the rest of the reserve no more than this part of the capacity.
 */
const burstReserveFactor = 1.5
const burstReservePart = 0.4
/** A bucket that holds what the rate brings in this time needs none of it, milliseconds. */
const burstReserveMs = 500
/** What "the last moments" are; the surge's own, milliseconds. */
const surgeMs = 20
/** Asked for in such a moment by those who hardly ask, units: leaves room for one of chance. */
const strayUnits = 0.1
/** Rounding of sums of fractions must not deny a unit that is there. */
export const unitEpsilon = 1e-6

/**
 * Units below which others could be taking the same ones: what they may ask for during a news round
 * trip.
 */
export function guardUnits(capacity: number, othersDemand: number, lagMs: number): number {
  if (othersDemand <= 0) return 0
  const unseen = Math.max(guardLagMsMin, 2 * lagMs) * othersDemand
  return Math.min(capacity / 2, Math.max(1, unseen))
}

/** Units that end scarcity. */
export function plentyUnits(capacity: number, guard: number): number {
  return Math.min(0.9 * capacity, Math.max(3 * guard, capacity / 4))
}

/** Units kept back for consumption that is still on its way; the same for every pod. */
export function reserveUnits(
  capacity: number,
  cost: number,
  rate: number,
  totalDemand: number,
  news: { readonly lagMs: number; readonly pods: number },
): number {
  const ofCapacity = reserveCapacityPerPod * news.pods * capacity
  const unseen = ofCapacity + unseenMs(news) * Math.min(rate, totalDemand)
  return Math.min(capacity / 4, unseen, Math.max(0, capacity - cost))
}

/** For how long others may have taken units that this pod has not heard of, milliseconds. */
function unseenMs({ lagMs, pods }: { readonly lagMs: number; readonly pods: number }): number {
  return Math.max(reserveLagMsBase + reserveLagMsPerPod * pods, reserveLagFactor * lagMs)
}

/**
 * Units kept back beside `reserve` while others ask for `surge` in place of the usual `others`: at
 * the start of a burst a small bucket is empty before the average of demand has moved.
 */
export function burstReserveUnits(
  capacity: number,
  cost: number,
  rate: number,
  reserve: number,
  { others, surge }: { readonly others: number; readonly surge: number },
  news: { readonly lagMs: number; readonly pods: number },
): number {
  const roomy = rate * burstReserveMs
  if (surge <= others || capacity >= roomy) return 0
  const smallness = 1 - capacity / roomy
  const unseen = burstReserveFactor * smallness * unseenMs(news) * (surge - others)
  return Math.max(
    0,
    Math.min(burstReservePart * capacity - reserve, capacity - cost - reserve, unseen),
  )
}

/**
 * Units that are not handed out as surplus. With a few in stock a request finds one when its pod's
 * turn comes; at an empty stock whoever asks most often would get each unit.
 */
export function surplusFloor(capacity: number, rate: number): number {
  return Math.min(capacity / 4, floorUnits + floorMs * rate)
}

/**
 * Where the balance comes to rest while shares decide. A pod that still took this for plenty would
 * take whatever it likes of what the others leave.
 */
export function restUnits(
  capacity: number,
  cost: number,
  rate: number,
  demand: number,
  news: { readonly lagMs: number; readonly pods: number },
): number {
  if (rate === 0) return 0
  const rest = reserveUnits(capacity, cost, rate, demand, news) + surplusFloor(capacity, rate)
  return Math.min(capacity / 8, rest)
}

/**
 * Entitlement on entering scarcity. A pod that has hardly asked yet may go first: fractions of a
 * unit in many hands would be lost. Busy pods start with next to nothing.
 */
export function firstEntitlement(cost: number, ownDemand: number): number {
  if (ownDemand <= 0) return cost
  return cost * Math.min(1, (newcomerRequests * cost) / (newcomerMs * ownDemand))
}

/** How fast the fleet's entitlement fills, units per millisecond. */
export function entitlementRate(rate: number, surplus: number, hasSurplus: boolean): number {
  return Math.max(0, rate + (hasSurplus ? surplus / Math.max(surplusMs, surplusUnits / rate) : 0))
}

/**
 * Views of one bucket drift a unit or two apart. In a slow one, whose rate brings less than that
 * until they are compared, the pod that sees least would be denied all the while and its
 * entitlement pile up: so much it may draw the reserve down.
 */
export function driftUnits(capacity: number, rate: number, unusedEntitlement: number): number {
  const drift = driftPart * capacity
  return rate * driftMs < drift ? Math.max(0, Math.min(unusedEntitlement, drift)) : 0
}

/**
 * Demand below which requests are served in the order of arrival, as a multiple of the rate. Chance
 * is what the average of demand, or a whole bucket if it lasts longer, does not even out.
 */
export function calmLoad(capacity: number, rate: number): number {
  const units = Math.max(capacity, 2 * newcomerMs * rate)
  return Math.max(1, Math.min(calmLoadMax, calmPart + calmDeviations / Math.sqrt(units)))
}

/** Do the others ask for more, all at once, than chance makes of what they usually ask for? */
export function isBurst(others: number, surge: number): boolean {
  const usual = others * surgeMs
  return surge * surgeMs > usual + burstDeviations * Math.sqrt(usual + strayUnits)
}

export class FairShare {
  readonly #store: UsageStore
  readonly #windows: WindowShare
  /**
   * The latest stall of the process, monotonic: from when, until when, and to when it has effect.
   */
  #stalledAtMs = Number.NEGATIVE_INFINITY
  #resumedAtMs = Number.NEGATIVE_INFINITY
  #carefulUntilMs = Number.NEGATIVE_INFINITY
  /** Demand on the counter that is asked about. */
  readonly #demand = new DemandView()
  // More that would need a place on the heap each if functions returned them.
  /** What of a sudden burst of the others counts against calm, and what demand still is calm. */
  #feared = Number.NaN
  #calm = Number.NaN
  /** Units of it that may be taken, shares apart. */
  #available = Number.NaN
  /** Units at which scarcity begins, or above which it ends. */
  #bound = Number.NaN

  constructor(store: UsageStore) {
    this.#store = store
    this.#windows = new WindowShare(store)
  }

  /**
   * The process stood still between the two. Balances look full and the others idle while the news
   * still waits in the sockets: for one round others ask for what they did before, and a pod takes
   * its part of the rate.
   */
  stalled(sinceMs: number, monotonicMs: number): void {
    this.#stalledAtMs = sinceMs
    this.#resumedAtMs = monotonicMs
    this.#carefulUntilMs = monotonicMs + roundMs
  }

  /**
   * May `cost` > 0 be taken out of the room of a counter? It stands at `place` of a list, where it
   * needs no heap. Changes the mode, takes nothing.
   */
  admits(
    slot: number,
    cost: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
  ): boolean {
    const careful = monotonicMs < this.#carefulUntilMs
    const othersAtMs = careful ? this.#stalledAtMs : monotonicMs
    this.#store.readDemand(slot, othersAtMs, monotonicMs, this.#demand)
    if (this.#demand.others > 0) this.#store.readSurge(slot, monotonicMs, this.#demand)
    return this.#grants(slot, cost, rooms, place, monotonicMs)
  }

  /** As `admits`, with the demand at hand. Apart, as V8 merges only so much into one function. */
  #grants(
    slot: number,
    cost: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
  ): boolean {
    const store = this.#store
    const slots = store.slots
    const room = rooms[place] as number
    const careful = monotonicMs < this.#carefulUntilMs
    const { others } = this.#demand
    const isWindow = this.#store.isWindow(slot)
    if (others <= 0 || (isWindow && !careful && this.#windows.isAlone(slot, monotonicMs))) {
      slots.scarce[slot] = 0
      return room >= cost - unitEpsilon
    }
    const { own } = this.#demand
    const sudden = surgeFactor * this.#demand.surge
    if (!careful && !isWindow && this.#isCalm(slot)) {
      slots.scarce[slot] = 0
      return room >= cost - unitEpsilon
    }
    if (slots.scarce[slot] === 0) {
      this.#findBeginning(slot, cost)
      if (!careful && room - cost >= this.#bound) return true
      slots.scarce[slot] = 1
      slots.entitlement[slot] = firstEntitlement(cost, own)
      slots.entitledAt[slot] = careful ? this.#stalledAtMs : monotonicMs
      if (isWindow) this.#windows.enter(slot, cost, room, monotonicMs)
    } else {
      this.#findEnd(slot)
      if (!careful && room > this.#bound) {
        slots.scarce[slot] = 0
        return room >= cost - unitEpsilon
      }
    }
    this.#accrue(slot, cost, rooms, place, monotonicMs)
    if (isWindow && !careful && own + Math.max(others, sudden) < (slots.rate[slot] as number)) {
      return room >= cost - unitEpsilon
    }
    if ((slots.entitlement[slot] as number) < cost - unitEpsilon) return false
    if (room < cost - unitEpsilon) return false
    if (!isWindow) this.#addDrift(slot, cost)
    return this.#available >= cost - unitEpsilon
  }

  #addDrift(slot: number, cost: number): void {
    const { slots } = this.#store
    const rate = slots.rate[slot] as number
    const unused = (slots.entitlement[slot] as number) - cost
    this.#available += driftUnits(slots.capacity[slot] as number, rate, unused)
  }

  /** So little demand that requests are served in the order of arrival. */
  #isCalm(slot: number): boolean {
    const { own, others } = this.#demand
    if (own + others >= calmLoadMax * (this.#store.slots.rate[slot] as number)) return false
    this.#findFeared()
    this.#findCalm(slot)
    return own + Math.max(others, this.#feared) < this.#calm
  }

  #findFeared(): void {
    const { others, surge } = this.#demand
    this.#feared = surgeFactor * (isBurst(others, surge) ? surge : calmSurge * surge)
  }

  #findCalm(slot: number): void {
    const { slots } = this.#store
    const rate = slots.rate[slot] as number
    this.#calm = calmLoad(slots.capacity[slot] as number, rate) * rate
  }

  /** Below so many units scarcity begins. */
  #findBeginning(slot: number, cost: number): void {
    const store = this.#store
    const { others, surge } = this.#demand
    const capacity = store.slots.capacity[slot] as number
    const rate = store.slots.rate[slot] as number
    const seen = Math.max(others, surgeFactor * surge)
    const guard = guardUnits(capacity, seen, store.lagMs)
    this.#bound = Math.max(guard, restUnits(capacity, cost, rate, seen, store))
  }

  /** Above so many it ends. */
  #findEnd(slot: number): void {
    const store = this.#store
    const capacity = store.slots.capacity[slot] as number
    this.#bound = plentyUnits(capacity, guardUnits(capacity, this.#demand.others, store.lagMs))
  }

  /** Brings the entitlement up to now, and finds the units available. */
  #accrue(
    slot: number,
    cost: number,
    rooms: Float64Array,
    place: number,
    monotonicMs: number,
  ): void {
    const store = this.#store
    const slots = store.slots
    const room = rooms[place] as number
    const { own, others } = this.#demand
    const rate = slots.rate[slot] as number
    const capacity = slots.capacity[slot] as number
    const careful = monotonicMs < this.#carefulUntilMs
    // What was asked of a pod that stood still says little: it may have an even part at least.
    const part = Math.max(own > 0 ? own / (own + others) : 0, careful ? 1 / store.pods : 0)
    if (this.#store.isWindow(slot)) {
      const fits = room >= cost - unitEpsilon
      this.#windows.part = part
      this.#windows.fromMs = this.#resumedAtMs - entitlementMs
      this.#windows.accrue(slot, cost, rooms, place, monotonicMs, fits, careful)
      this.#available = room
      return
    }
    if (rate === 0) {
      slots.entitlement[slot] = Math.max(1, part * capacity) - store.ownUsage(slot)
      this.#available = room
      return
    }
    const reserve = reserveUnits(capacity, cost, rate, own + others, store)
    const burst = burstReserveUnits(capacity, cost, rate, reserve, this.#demand, store)
    const available = room - reserve - burst
    const seen = available - surplusFloor(capacity, rate)
    const surplus = careful ? Math.min(0, seen) : seen
    const fill = part * entitlementRate(rate, surplus, store.hasSurplus(slot))
    // Of the time that this pod slept through, the end counts: requests have been waiting.
    const keptFromMs = this.#resumedAtMs - entitlementMs
    const elapsedMs = monotonicMs - Math.max(slots.entitledAt[slot] as number, keptFromMs)
    const most = Math.max(2, cost, part * room, part * rate * entitlementMs)
    const grown = (slots.entitlement[slot] as number) + fill * Math.max(0, elapsedMs)
    slots.entitlement[slot] = Math.min(grown, most)
    slots.entitledAt[slot] = monotonicMs
    this.#available = available
  }

  /** After `cost` was taken (or given back, negative). */
  took(slot: number, cost: number): void {
    const slots = this.#store.slots
    if (slots.scarce[slot] === 0) return
    slots.entitlement[slot] = (slots.entitlement[slot] as number) - cost
  }

  /** Units this pod may take now: whole fleet's room, or its own part of it. */
  share(slot: number, room: number, monotonicMs: number): number {
    const slots = this.#store.slots
    if (slots.scarce[slot] === 0) return room
    const isMine = this.#store.isWindow(slot) && this.#windows.isAlone(slot, monotonicMs)
    return isMine ? room : Math.min(room, slots.entitlement[slot] as number)
  }

  /**
   * Puts into a list how long it takes until the entitlement covers `cost`, milliseconds; 0 when it
   * does or when there is plenty.
   */
  readWait(
    slot: number,
    cost: number,
    rooms: Float64Array,
    waits: Float64Array,
    place: number,
    monotonicMs: number,
  ): void {
    waits[place] = 0
    const store = this.#store
    const slots = store.slots
    if (slots.scarce[slot] === 0) return
    const room = rooms[place] as number
    const missing = cost - (slots.entitlement[slot] as number)
    const rate = slots.rate[slot] as number
    if (missing <= 0 || rate === 0) return
    if (this.#store.isWindow(slot)) {
      this.#windows.readWait(slot, cost, rooms, waits, place, monotonicMs)
      return
    }
    store.readDemand(slot, monotonicMs, monotonicMs, this.#demand)
    const { own, others } = this.#demand
    const part = own / (own + others)
    const fill = part * entitlementRate(rate, room, store.hasSurplus(slot))
    if (fill > 0) waits[place] = Math.min(missing / fill, cost / (rate * 0.01))
  }
}
