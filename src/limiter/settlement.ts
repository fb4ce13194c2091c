/** What a decision left open, and how it is closed when the response's fate is known. */
import type { Outcome, Settlement } from './decision.js'
import type { RulePlan } from './rule-plan.js'
import type { UsageStore } from './usage-store.js'

interface Claim {
  readonly plan: RulePlan
  readonly slot: number
  /** The slot's epoch: a counter that was forgotten meanwhile is left alone. */
  readonly epoch: number
  readonly cost: number
}

/** Greatest settled cost, units. */
const costMax = 1e9

export class OpenSettlement implements Settlement {
  open = true
  readonly claims: Claim[] = []

  add(claim: Claim): void {
    this.claims.push(claim)
  }
}

/** Closes a settlement; a second call does nothing. Calls `changed` for each counter that moved. */
export function closeSettlement(
  settlement: OpenSettlement,
  outcome: Outcome,
  store: UsageStore,
  changed: (slot: number) => void,
  monotonicMs: number,
  wallMs: number,
): void {
  if (!settlement.open) return
  settlement.open = false
  for (const claim of settlement.claims) {
    if (store.slots.epoch[claim.slot] !== claim.epoch) continue
    settleClaim(claim, outcome, store, monotonicMs, wallMs)
    changed(claim.slot)
  }
}

function settleClaim(
  claim: Claim,
  outcome: Outcome,
  store: UsageStore,
  monotonicMs: number,
  wallMs: number,
): void {
  const { plan, slot, cost } = claim
  if (plan.isGauge) {
    store.giveBack(slot, cost, monotonicMs, wallMs)
    return
  }
  const { responseHeader } = plan.spec.cost
  const reported = responseHeader === null ? null : reportedCost(outcome.header(responseHeader))
  if (plan.countsOutcome) {
    const { reserved } = store.slots
    reserved[slot] = Math.max(0, (reserved[slot] as number) - cost)
    if (!counts(plan.spec.count, outcome)) return
    const units = reported ?? cost
    if (units > 0) store.consume(slot, units, monotonicMs, wallMs)
    return
  }
  if (reported === null) return
  if (reported > cost) store.consume(slot, reported - cost, monotonicMs, wallMs)
  else if (reported < cost) store.giveBack(slot, cost - reported, monotonicMs, wallMs)
}

/** A failure is a status of 400 and above, or no complete response at all. */
export function counts(which: 'all' | 'success' | 'failure', outcome: Outcome): boolean {
  if (which === 'all') return true
  const failed = outcome.aborted || outcome.status >= 400 || outcome.status === 0
  return (which === 'failure') === failed
}

/** A cost in a response header: plain decimal, 0..1e9; null for anything else. */
export function reportedCost(text: string | undefined): number | null {
  if (text === undefined || !/^\s*\d{1,10}(?:\.\d{1,9})?\s*$/.test(text)) return null
  const cost = Number(text)
  return cost <= costMax ? cost : null
}
