/**
 * What a split of the fleet does to a counter (counters.md §5). A side that sees `visible` of
 * `known` pods works with that fraction of rate and capacity, and takes the rest to be in the
 * others' hands: they hold their part of what was used, and their part refills it. When the link is
 * back, what they really used replaces what they were taken to use, so that both sides come to the
 * same level and owe nothing twice.
 *
 *   whole:   used u of B
 *   split:   own part f*u of f*B, refilled at f*R
 *            others' x = (1-f)*u - (1-f)*R*t, later + what they report
 *   healed:  own part + others' part
 */
import { bucketTat } from '../lib/bucket-level.js'
import type { SlotColumns } from './slot-columns.js'

/** The fleet as this pod sees it; replaced as a whole when it changes. */
export interface FleetView {
  /** Counts the changes. */
  readonly number: number
  /** Pods that answer, own included, and pods that should be there. */
  readonly visible: number
  readonly known: number
  /** When the present split began, monotonic; Infinity when there is none. */
  readonly splitSinceMs: number
}

export const wholeFleet: FleetView = {
  number: 0,
  visible: 1,
  known: 1,
  splitSinceMs: Number.POSITIVE_INFINITY,
}

/** The part of a limit that this side may give out. */
export function splitFraction(fleet: FleetView, policy: 'open' | 'share' | 'closed'): number {
  if (policy === 'open' || fleet.visible >= fleet.known) return 1
  return policy === 'share' ? fleet.visible / fleet.known : 1 / fleet.known
}

/** The others' part of a bucket, between nothing and all they may have. */
export function othersPart(slots: SlotColumns, slot: number): number {
  const used = slots.splitUsed[slot] as number
  const capacity = slots.splitCapacity[slot] as number
  return used <= 0 ? 0 : Math.min(used, capacity)
}

/**
 * What the undivided bucket holds as far as this side can tell: its own part, and what it takes the
 * others' to be by now. For somebody who knows nothing yet and may not be part of the split.
 */
export function undividedUsed(
  slots: SlotColumns,
  slot: number,
  own: { readonly used: number; readonly wholeRate: number; readonly wholeCapacity: number },
  nowMs: number,
): number {
  const fraction = (slots.capacity[slot] as number) / own.wholeCapacity
  if (fraction >= 1 - 1e-9) return own.used
  const elapsedMs = nowMs - (slots.splitAt[slot] as number)
  const others = (slots.splitUsed[slot] as number) - own.wholeRate * (1 - fraction) * elapsedMs
  return own.used + Math.min(Math.max(0, others), slots.splitCapacity[slot] as number)
}

/**
 * Divides a bucket's usage between the sides when the fraction changes from `before` to `after`;
 * the whole rate and capacity are of the undivided rule. Returns this side's used units.
 */
export function divideUsage(
  slots: SlotColumns,
  slot: number,
  change: {
    readonly used: number
    readonly before: number
    readonly after: number
    readonly wholeRate: number
    readonly wholeCapacity: number
    readonly nowMs: number
  },
): number {
  const { used, before, after, wholeRate, wholeCapacity, nowMs } = change
  const elapsedMs = nowMs - (slots.splitAt[slot] as number)
  let others = before < 1 ? (slots.splitUsed[slot] as number) : 0
  others -= wholeRate * (1 - before) * elapsedMs
  slots.splitAt[slot] = nowMs
  if (after >= 1) {
    slots.splitUsed[slot] = others
    slots.splitCapacity[slot] = (1 - before) * wholeCapacity
    return used + othersPart(slots, slot)
  }
  const own = (used * after) / before
  const moved = before < 1 && after > before ? (others * (1 - after)) / (1 - before) : others
  slots.splitUsed[slot] = moved + (after < before ? used - own : 0)
  slots.splitCapacity[slot] = (1 - after) * wholeCapacity
  return own
}

/** Sets what the undivided bucket holds, `used`, and gives each side its part of it. */
export function divideAnew(
  slots: SlotColumns,
  slot: number,
  whole: { readonly used: number; readonly wholeCapacity: number },
  nowMs: number,
): void {
  const fraction = Math.min(1, (slots.capacity[slot] as number) / whole.wholeCapacity)
  const own = whole.used * fraction
  slots.level[slot] = bucketTat(own, nowMs, slots.periodMs[slot] as number)
  if (fraction >= 1 - 1e-9) return
  slots.splitUsed[slot] = whole.used - own
  slots.splitCapacity[slot] = (1 - fraction) * whole.wholeCapacity
  slots.splitAt[slot] = nowMs
}
