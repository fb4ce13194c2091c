/**
 * Turns columns into the entries that travel: a counter's own totals, or another origin's to be
 * handed on.
 */
import { entrySlicesMax, type WireEntry, type WireShape } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily, familyCode, gaugeFamily, logFamily, slicesPerWindow } from './family.js'
import { calendarCode } from './shape-list.js'

/** Slices before the last publication that an entry repeats, for what may have been lost. */
const slicesAgain = 8

export interface OriginNumbers {
  readonly hi: number
  readonly lo: number
}

/**
 * Fills `wire` with this pod's totals of a counter. `everySlice`: the whole of a log, not its end.
 */
export function describeOwn(
  table: CounterTable,
  slot: number,
  self: OriginNumbers,
  wire: WireEntry,
  everySlice: boolean,
  monotonicMs: number,
  wallMs: number,
): void {
  const { slots, demand, levels } = table
  const family = slots.family[slot] as number
  const since = slots.dirtySince[slot] as number
  wire.originHi = self.hi
  wire.originLo = self.lo
  wire.epoch = slots.epoch[slot] as number
  wire.holdMs = 0
  wire.spanMs = Number.isNaN(since) ? 0 : Math.max(0, monotonicMs - since)
  wire.consumed = slots.consumed[slot] as number
  wire.returned = slots.returned[slot] as number
  wire.offered = slots.offered[slot] as number
  wire.demand = demand.own(slot, monotonicMs) * 1000
  wire.sliceCount = 0
  if (family === bucketFamily) {
    wire.mark = Math.max(0, Math.ceil(monotonicMs - (slots.fullAt[slot] as number)))
    wire.tail = Math.max(0, levels.ownUsage(slot) - (slots.fullBase[slot] as number))
  } else if (family === gaugeFamily) {
    wire.mark = 0
    wire.tail = wire.consumed - wire.returned
  } else if (family === logFamily) {
    wire.mark = Math.round(slots.periodMs[slot] as number)
    wire.tail = wire.consumed - wire.returned
    describeSlices(table, slot, wire, everySlice, monotonicMs, wallMs)
  } else {
    wire.mark = slots.level[slot] as number
    wire.tail = slots.previous[slot] as number
  }
}

function describeSlices(
  table: CounterTable,
  slot: number,
  wire: WireEntry,
  everySlice: boolean,
  monotonicMs: number,
  wallMs: number,
): void {
  const { slots, slices } = table
  const list = slots.ownLog[slot] as number
  if (list < 0) return
  const periodMs = slots.periodMs[slot] as number
  const sliceMs = periodMs / slicesPerWindow
  const sentAgo = monotonicMs - (slots.sentAt[slot] as number)
  const from = everySlice ? wallMs - periodMs : wallMs - sentAgo - slicesAgain * sliceMs
  let count = 0
  let node = slices.first(list)
  for (;;) {
    const time = slices.time[node] as number
    if (time >= from) {
      const start = Math.floor(time / sliceMs) * sliceMs
      if (count === 0 || wire.sliceTime[count - 1] !== start) {
        if (count === entrySlicesMax) break
        wire.sliceTime[count] = start
        wire.sliceAdded[count] = 0
        wire.sliceReturned[count] = 0
        count++
      }
      const place = count - 1
      wire.sliceAdded[place] = (wire.sliceAdded[place] as number) + (slices.added[node] as number)
      wire.sliceReturned[place] =
        (wire.sliceReturned[place] as number) + (slices.returned[node] as number)
    }
    if (node === list) break
    node = slices.next[node] as number
  }
  // A slice that is only partly repeated says too little, and the maximum holds against it.
  wire.sliceCount = count
}

/** Fills `wire` with what is known of another origin's totals. */
export function describeEntry(
  table: CounterTable,
  slot: number,
  entry: number,
  wire: WireEntry,
  monotonicMs: number,
): void {
  const { slots, entries, origins, slices } = table
  const origin = entries.origin[entry] as number
  const family = slots.family[slot] as number
  const publishedAt = entries.publishedAt[entry] as number
  wire.originHi = origins.hi[origin] as number
  wire.originLo = origins.lo[origin] as number
  wire.epoch = entries.epoch[entry] as number
  wire.holdMs = Math.max(0, monotonicMs - publishedAt)
  wire.spanMs = 0
  wire.consumed = entries.consumed[entry] as number
  wire.returned = entries.returned[entry] as number
  wire.offered = entries.offered[entry] as number
  wire.demand = (entries.demand[entry] as number) * 1000
  wire.tail = entries.tail[entry] as number
  wire.mark = entries.mark[entry] as number
  if (family === bucketFamily) wire.mark = Math.max(0, Math.ceil(publishedAt - wire.mark))
  wire.sliceCount = 0
  const list = entries.log[entry] as number
  if (family !== logFamily || list < 0) return
  let node = slices.first(list)
  for (;;) {
    const place = wire.sliceCount++
    wire.sliceTime[place] = slices.time[node] as number
    wire.sliceAdded[place] = slices.added[node] as number
    wire.sliceReturned[place] = slices.returned[node] as number
    if (node === list || wire.sliceCount === entrySlicesMax) break
    node = slices.next[node] as number
  }
}

/** What the counters that follow have in common. */
export function wireShapeOf(table: CounterTable, shape: number): WireShape {
  const numbers = table.shapes.at(shape)
  return {
    family: familyCode(numbers.family),
    calendar: calendarCode(numbers),
    capacity: numbers.capacity,
    periodMs: numbers.periodMs,
  }
}
