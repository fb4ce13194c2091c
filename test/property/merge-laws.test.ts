/** The laws that make loss, repetition, reordering and relaying harmless, for every counter family. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWireEntry, type WireEntry } from '../../src/counters/counter-codec.js'
import { CounterTable } from '../../src/counters/counter-table.js'
import { EntryMerger } from '../../src/counters/merge.js'
import { WindowClock } from '../../src/lib/window-clock.js'
import type { CounterFamily } from '../../src/vocabulary.js'

const nowMs = 100_000
const wallMs = 1_700_000_000_500
const windowId = 1_700_000_000

interface Report {
  readonly origin: number
  readonly epoch: number
  readonly consumed: number
  readonly returned: number
  readonly offered: number
  readonly window: number
  readonly before: number
  readonly slices: readonly number[]
}

/** What some origins may truthfully say: totals grow with the step, a window's totals begin anew. */
const report: fc.Arbitrary<Report> = fc
  .record({
    origin: fc.integer({ min: 0, max: 3 }),
    epoch: fc.integer({ min: 1, max: 2 }),
    step: fc.integer({ min: 0, max: 20 }),
    back: fc.integer({ min: 0, max: 20 }),
    window: fc.integer({ min: windowId - 1, max: windowId + 1 }),
  })
  .map(({ origin, epoch, step, back, window }) => ({
    origin,
    epoch,
    consumed: 3 * step,
    returned: Math.min(back, step),
    offered: 5 * step,
    window,
    before: (origin + window) % 7,
    slices: [step, Math.floor(step / 2), Math.floor(step / 3)],
  }))

const reports = fc.array(report, { minLength: 1, maxLength: 12 })

function tableOf(family: CounterFamily) {
  const seed = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)
  const table = new CounterTable({ keysMax: 4, secret: null, label: 'test', seed })
  const windowed = family === 'fixed' || family === 'sliding'
  const shape = table.shapeOf({
    family,
    capacity: 1e6,
    periodMs: family === 'gauge' ? 0 : 1000,
    clock: windowed ? new WindowClock(1000, null, 'UTC') : null,
    onPartition: 'share',
  })
  const slot = table.openById(1, 2, shape, nowMs, wallMs)
  return { table, slot, merger: new EntryMerger(table) }
}

function fill(wire: WireEntry, family: CounterFamily, report: Report): void {
  const windowed = family === 'fixed' || family === 'sliding'
  wire.epoch = report.epoch
  wire.consumed = report.consumed
  wire.returned = report.returned
  wire.offered = report.offered
  wire.demand = 1
  wire.mark = windowed ? report.window : 0
  wire.tail = windowed ? report.before : report.consumed - report.returned
  wire.sliceCount = family === 'log' ? report.slices.length : 0
  report.slices.forEach((added, index) => {
    wire.sliceTime[index] = wallMs - 500 + index * 100
    wire.sliceAdded[index] = added
    wire.sliceReturned[index] = Math.floor(added / 4)
  })
}

/** Merges reports in turn; what is then known of each origin, and the level. */
function merged(family: CounterFamily, list: readonly Report[]) {
  const { table, slot, merger } = tableOf(family)
  const wire = createWireEntry()
  for (const item of list) {
    fill(wire, family, item)
    const origin = table.origins.numberOf(7, item.origin)
    merger.merge(slot, wire, origin, 1, true, nowMs, wallMs)
  }
  const { entries, slots, slices } = table
  const known: Record<number, unknown> = {}
  let entry = slots.firstEntry[slot]!
  for (; entry >= 0; entry = entries.next[entry]!) {
    const log: number[][] = []
    const list = entries.log[entry]!
    for (let node = list < 0 ? -1 : slices.first(list); node >= 0; node = slices.next[node]!) {
      log.push([slices.time[node]!, slices.added[node]!, slices.returned[node]!])
      if (node === list) break
    }
    known[table.origins.lo[entries.origin[entry]!]!] = {
      epoch: entries.epoch[entry],
      consumed: entries.consumed[entry],
      returned: entries.returned[entry],
      window: family === 'fixed' || family === 'sliding' ? entries.mark[entry] : 0,
      log,
    }
  }
  table.assertInvariants()
  return { known, used: table.used(slot, nowMs, wallMs) }
}

const families = ['bucket', 'fixed', 'sliding', 'log', 'gauge'] as const

describe.each(families)('merging reports about a %s counter', family => {
  it('is commutative: totals do not depend on the order of arrival', () => {
    fc.assert(
      fc.property(reports, fc.infiniteStream(fc.nat()), (list, chance) => {
        const shuffled = list
          .map(item => ({ item, rank: chance.next().value as number }))
          .sort((one, other) => one.rank - other.rank)
          .map(({ item }) => item)
        expect(merged(family, shuffled).known).toEqual(merged(family, list).known)
      }),
    )
  })

  it('is idempotent: hearing everything again changes neither totals nor level', () => {
    fc.assert(
      fc.property(reports, list => {
        const once = merged(family, list)
        expect(merged(family, [...list, ...list])).toEqual(once)
      }),
    )
  })

  it('is associative: what was relayed as a whole is worth its parts', () => {
    fc.assert(
      fc.property(reports, reports, (first, second) => {
        const relayed = [...first, ...second, ...first]
        expect(merged(family, relayed).known).toEqual(merged(family, [...first, ...second]).known)
      }),
    )
  })

  it('is monotone: within an epoch and window no total ever falls', () => {
    fc.assert(
      fc.property(reports, report, (list, last) => {
        type Known = { epoch: number; window: number; consumed: number; returned: number }
        const before = merged(family, list).known[last.origin] as Known | undefined
        const after = merged(family, [...list, last]).known[last.origin] as Known
        if (before === undefined) return
        expect(after.epoch).toBeGreaterThanOrEqual(before.epoch)
        if (after.epoch !== before.epoch || after.window !== before.window) return
        expect(after.consumed).toBeGreaterThanOrEqual(before.consumed)
        expect(after.returned).toBeGreaterThanOrEqual(before.returned)
      }),
    )
  })
})

describe('what merging charges', () => {
  it('never depends on how often totals were reported on the way', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }), steps => {
        let total = 0
        const all = steps.map(step => {
          total += step
          return { ...template, consumed: total, offered: total }
        })
        const detailed = merged('gauge', all).used
        const last = merged('gauge', all.slice(-1)).used
        expect(detailed).toBe(last)
        expect(merged('bucket', all).used).toBeCloseTo(merged('bucket', all.slice(-1)).used, 6)
      }),
    )
  })
})

const template: Report = {
  origin: 1,
  epoch: 1,
  consumed: 0,
  returned: 0,
  offered: 0,
  window: windowId,
  before: 0,
  slices: [],
}
