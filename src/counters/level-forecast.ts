/** When a counter will have room again if nobody takes more: for `Retry-After` and reset times. */
import { bucketUsed, bucketWaitMs } from '../lib/bucket-level.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily, fixedFamily, gaugeFamily, logFamily, slicesPerWindow } from './family.js'
import { sliceGone } from './levels.js'

/** Nobody knows when requests in flight end. */
const gaugeWaitMs = 1000

/** Until `units` more fit, milliseconds; 0 when they fit now. A cost above the limit never fits. */
export function levelWaitMs(
  table: CounterTable,
  slot: number,
  units: number,
  monotonicMs: number,
  wallMs: number,
): number {
  const { slots, levels } = table
  const capacity = slots.capacity[slot] as number
  const used = levels.used(slot, monotonicMs, wallMs)
  if (used + units <= capacity + 1e-9) return 0
  if (units > capacity) return Number.POSITIVE_INFINITY
  const family = slots.family[slot] as number
  if (family === bucketFamily) {
    return bucketWaitMs(used, capacity, units, slots.periodMs[slot] as number)
  }
  if (family === gaugeFamily) return gaugeWaitMs
  if (family === logFamily) return logWaitMs(table, slot, used + units - capacity, wallMs)
  const clock = levels.clock(slot)
  const leftMs = windowLeftMs(table, slot, wallMs)
  if (family === fixedFamily) return leftMs
  const present = levels.ownUsage(slot) + (slots.othersUsed[slot] as number)
  const reserved = slots.reserved[slot] as number
  const lengthMs = clock.endMs(wallMs) - clock.startMs(wallMs)
  const previous = (slots.previous[slot] as number) + (slots.othersPrevious[slot] as number)
  return slidingWaitMs(
    { previous, present, limit: capacity - reserved, elapsedMs: lengthMs - leftMs, lengthMs },
    units,
  )
}

/**
 * Until the window that is counted in ends; after a clock went back a little that is the next one.
 */
function windowLeftMs(table: CounterTable, slot: number, wallMs: number): number {
  const clock = table.levels.clock(slot)
  const isAhead = (table.slots.level[slot] as number) > clock.idAt(wallMs)
  return clock.endMs(wallMs) - wallMs + (isAhead ? clock.lengthMs : 0)
}

/** Until two weighted windows leave room for `units`, milliseconds; > 0. */
export function slidingWaitMs(
  window: {
    readonly previous: number
    readonly present: number
    readonly limit: number
    readonly elapsedMs: number
    readonly lengthMs: number
  },
  units: number,
): number {
  const { previous, present, limit, elapsedMs, lengthMs } = window
  if (present + units <= limit) {
    // The part of the window before that may still be in view.
    const inView = previous > 0 ? (limit - present - units) / previous : 1
    return Math.max(0, lengthMs * (1 - inView) - elapsedMs)
  }
  const inView = present > 0 ? Math.max(0, (limit - units) / present) : 1
  return lengthMs - elapsedMs + lengthMs * Math.max(0, 1 - inView)
}

/** Until the oldest moments that hold `excess` units have left the window. */
function logWaitMs(table: CounterTable, slot: number, excess: number, wallMs: number): number {
  const { slots, slices } = table
  const lengthMs = slots.periodMs[slot] as number
  const sliceMs = lengthMs / slicesPerWindow
  let own = slots.ownLog[slot] as number
  let others = slots.othersLog[slot] as number
  const ownEnd = own
  const othersEnd = others
  if (own >= 0) own = slices.first(own)
  if (others >= 0) others = slices.first(others)
  let left = excess - 1e-9
  let at = wallMs
  while (left > 0 && (own >= 0 || others >= 0)) {
    const ownAt = own < 0 ? Number.POSITIVE_INFINITY : (slices.time[own] as number) + lengthMs
    const othersAt =
      others < 0 ? Number.POSITIVE_INFINITY : (slices.time[others] as number) + lengthMs + sliceMs
    if (ownAt <= othersAt) {
      at = Math.max(at, ownAt)
      left -= slices.net(own)
      own = own === ownEnd ? -1 : (slices.next[own] as number)
    } else {
      const time = slices.time[others] as number
      const net = slices.net(others)
      const gone = sliceGone(time, lengthMs, wallMs)
      // A slice leaves evenly: not all of it need be gone.
      const needed = net > 0 ? Math.min(1, gone + left / net) : 1
      at = Math.max(at, time + lengthMs + needed * sliceMs)
      left -= net * (1 - gone)
      others = others === othersEnd ? -1 : (slices.next[others] as number)
    }
  }
  return left > 0 ? lengthMs : Math.max(0, at - wallMs)
}

/** Until the counter is untouched again, milliseconds; a fixed window: until it ends. */
export function levelResetMs(
  table: CounterTable,
  slot: number,
  monotonicMs: number,
  wallMs: number,
): number {
  const { slots, slices, levels } = table
  const family = slots.family[slot] as number
  const periodMs = slots.periodMs[slot] as number
  if (family === bucketFamily) {
    return bucketUsed(slots.level[slot] as number, monotonicMs, periodMs) * periodMs
  }
  if (family === gaugeFamily) return 0
  if (family === logFamily) {
    const own = slots.ownLog[slot] as number
    const others = slots.othersLog[slot] as number
    const ownMs = own < 0 ? 0 : (slices.time[own] as number) + periodMs - wallMs
    const sliceMs = periodMs / slicesPerWindow
    const othersMs = others < 0 ? 0 : (slices.time[others] as number) + periodMs + sliceMs - wallMs
    return Math.max(0, ownMs, othersMs)
  }
  const leftMs = windowLeftMs(table, slot, wallMs)
  if (family === fixedFamily) return leftMs
  const present = levels.ownUsage(slot) + (slots.othersUsed[slot] as number)
  if (present > 0) return leftMs + periodMs
  return levels.published(slot, monotonicMs, wallMs) > 0 ? leftMs : 0
}
