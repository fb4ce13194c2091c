/**
 * What a simulation measures (product.md §9): each request as the fleet decided it beside one ideal
 * limiter per key that sees all of them in order. Streaming: memory is bounded by pods and keys,
 * not by requests. Knows nothing of pods' inner state, only of decisions.
 */
import { assert } from '../lib/assert.js'
import { Excess } from './excess.js'
import { type IdealLimiter, idealLimiter } from './ideal-limiter.js'
import { burstOf, changesMs, type Scenario } from './scenario.js'
import { Settling } from './settling.js'

export interface PodCount {
  readonly offered: number
  readonly admitted: number
}

/** Decisions in slices of equal length, for charts. */
export interface Series {
  /** Length of a slice in milliseconds. */
  readonly sliceMs: number
  readonly offered: readonly number[]
  readonly admitted: readonly number[]
  readonly ideal: readonly number[]
  /** `[pod][slice]` admitted. */
  readonly podAdmitted: readonly (readonly number[])[]
}

export interface Measured {
  readonly offered: number
  readonly admitted: number
  readonly ideal: number
  readonly ratio: number
  readonly worstSecondAbove: number
  readonly worstSecondBelow: number
  readonly excessOverBurst: number
  readonly jain: number
  readonly falseDenials: number
  readonly settleMs: number | null
  readonly perPod: readonly PodCount[]
}

/** Slices of a series: enough for a chart, few enough for a page. */
const slicesMax = 600

/** Pods with fewer requests say nothing about fairness. */
const fairnessOffersMin = 5

interface KeyOracle {
  readonly ideal: IdealLimiter
  readonly excess: Excess
}

export class Measures {
  private readonly oracles: KeyOracle[] = []
  private readonly settling: Settling
  private readonly offeredOf: Float64Array
  private readonly admittedOf: Float64Array
  readonly sliceMs: number
  private readonly slices: number
  private readonly series: { offered: Uint32Array; admitted: Uint32Array; ideal: Uint32Array }
  private readonly podSlices: Uint32Array
  private offered = 0
  private admitted = 0
  private ideal = 0
  private lastAtMs = 0
  private secondEndMs = 1000
  private secondAdmitted = 0
  private secondIdeal = 0
  private worstAbove = 0
  private worstBelow = 0

  constructor(
    private readonly scenario: Scenario,
    private readonly pods: number,
  ) {
    this.settling = new Settling(changesMs(scenario), scenario.durationMs)
    this.offeredOf = new Float64Array(pods)
    this.admittedOf = new Float64Array(pods)
    this.sliceMs = Math.max(1, Math.ceil(scenario.durationMs / slicesMax / 1000)) * 1000
    this.slices = Math.max(1, Math.ceil(scenario.durationMs / this.sliceMs))
    this.series = {
      offered: new Uint32Array(this.slices),
      admitted: new Uint32Array(this.slices),
      ideal: new Uint32Array(this.slices),
    }
    this.podSlices = new Uint32Array(pods * this.slices)
  }

  /**
   * One decided request. `atMs` in [0, duration) and never falling; `wallMs`: the true wall clock
   * then; `key`: number of the client from 0.
   */
  observe(atMs: number, wallMs: number, pod: number, key: number, admitted: boolean): void {
    assert(atMs >= this.lastAtMs, 'decisions are observed in order')
    this.lastAtMs = atMs
    const oracle = this.oracleOf(key)
    const ideal = oracle.ideal.admit(atMs, wallMs)
    if (admitted) oracle.excess.admit(atMs)
    this.settling.observe(atMs, admitted, ideal)
    if (atMs >= this.secondEndMs) this.closeSeconds(atMs)
    this.count(atMs, pod, admitted, ideal)
  }

  finish(): Measured {
    const { durationMs } = this.scenario
    this.closeSeconds(durationMs)
    const denied = this.offered - this.admitted
    return {
      offered: this.offered,
      admitted: this.admitted,
      ideal: this.ideal,
      ratio: this.ideal === 0 ? 1 : rounded(this.admitted / this.ideal),
      worstSecondAbove: rounded(this.worstAbove),
      worstSecondBelow: rounded(this.worstBelow),
      excessOverBurst: rounded(this.excessShare()),
      jain: rounded(jain(this.offeredOf, this.admittedOf)),
      falseDenials: Math.max(0, denied - (this.offered - this.ideal)),
      settleMs: this.settling.finishMs(),
      perPod: Array.from(this.offeredOf, (offered, pod) => ({
        offered,
        admitted: this.admittedOf[pod]!,
      })),
    }
  }

  chart(): Series {
    const { slices } = this
    return {
      sliceMs: this.sliceMs,
      offered: [...this.series.offered],
      admitted: [...this.series.admitted],
      ideal: [...this.series.ideal],
      podAdmitted: Array.from({ length: this.pods }, (_, pod) => [
        ...this.podSlices.subarray(pod * slices, (pod + 1) * slices),
      ]),
    }
  }

  private count(atMs: number, pod: number, admitted: boolean, ideal: boolean): void {
    const slice = Math.min(this.slices - 1, Math.floor(atMs / this.sliceMs))
    this.offered++
    this.offeredOf[pod]!++
    this.series.offered[slice]!++
    if (admitted) {
      this.admitted++
      this.secondAdmitted++
      this.admittedOf[pod]!++
      this.series.admitted[slice]!++
      this.podSlices[pod * this.slices + slice]!++
    }
    if (ideal) {
      this.ideal++
      this.secondIdeal++
      this.series.ideal[slice]!++
    }
  }

  /** Compares the whole seconds that have ended by `atMs`. */
  private closeSeconds(atMs: number): void {
    if (atMs < this.secondEndMs) return
    // A second in which the ideal admits less than one request is weighed as one request.
    const difference = (this.secondAdmitted - this.secondIdeal) / Math.max(1, this.secondIdeal)
    this.worstAbove = Math.max(this.worstAbove, difference)
    this.worstBelow = Math.max(this.worstBelow, -difference)
    this.secondAdmitted = 0
    this.secondIdeal = 0
    this.secondEndMs = (Math.floor(atMs / 1000) + 1) * 1000
  }

  private oracleOf(key: number): KeyOracle {
    const known = this.oracles[key]
    if (known !== undefined) return known
    const { rule } = this.scenario
    const oracle = {
      ideal: idealLimiter(rule),
      excess: new Excess(rule.limit.count / rule.limit.windowMs, burstOf(rule)),
    }
    this.oracles[key] = oracle
    return oracle
  }

  /** Of the worst key; -1 (nothing of the burst used) when nothing was asked for. */
  private excessShare(): number {
    let worst = -1
    for (const oracle of this.oracles) {
      if (oracle !== undefined) worst = Math.max(worst, oracle.excess.share())
    }
    return worst
  }
}

/**
 * Jain's fairness index over the pods' admitted/offered (Jain, Chiu, Hawe, DEC-TR-301): 1 when all
 * fare alike, 1/n when one has everything. 1 when no pod asked often enough to tell.
 */
export function jain(offered: ArrayLike<number>, admitted: ArrayLike<number>): number {
  let pods = 0
  let sum = 0
  let squares = 0
  for (let pod = 0; pod < offered.length; pod++) {
    if (offered[pod]! <= fairnessOffersMin) continue
    const share = admitted[pod]! / offered[pod]!
    pods++
    sum += share
    squares += share * share
  }
  return squares === 0 ? 1 : (sum * sum) / (pods * squares)
}

/** Six decimals: what a reader compares, and no noise of the last bit. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6 + 0
}
