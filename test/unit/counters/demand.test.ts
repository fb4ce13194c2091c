import { describe, expect, it } from 'vitest'
import { CounterTable } from '../../../src/counters/counter-table.js'
import { demandTauMsMax, demandTauMsMin } from '../../../src/counters/demand.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** A table with one counter, asked for at 0, in a fleet of `pods`. */
function counterOf(pods: number, count: number, windowMs: number) {
  const seed = Uint8Array.from([8, 7, 6, 5, 4, 3, 2, 1])
  const table = new CounterTable({ keysMax: 16, secret: null, label: 'test', seed })
  table.queue.pods = pods
  const limiter = new Limiter({ store: table })
  limiter.setRules(rulesOf(ruleOf('api', { limit: limitOf(count, windowMs) })), 0, startWallMs)
  limiter.check('api', ['a'], 1, 'check', 0, startWallMs)
  return table
}

describe('demand is averaged', () => {
  it.each([
    { pods: 50, count: 1000, windowMs: 1000, tauMs: demandTauMsMin, why: 'a quick limit' },
    { pods: 5, count: 100, windowMs: 1000, tauMs: demandTauMsMin, why: 'few pods' },
    { pods: 50, count: 100, windowMs: 60_000, tauMs: 30_000, why: 'a unit for each pod' },
    { pods: 50, count: 10, windowMs: 10_000, tauMs: 10_000, why: 'as long as the burst lasts' },
    { pods: 50, count: 100, windowMs: 3_600_000, tauMs: demandTauMsMax, why: 'never for longer' },
  ])('over $tauMs ms at $count in $windowMs ms with $pods pods: $why', row => {
    const { demand } = counterOf(row.pods, row.count, row.windowMs)
    expect(demand.tauMs(0)).toBeCloseTo(row.tauMs)
    expect(demand.own(0, 0)).toBeCloseTo(1 / row.tauMs)
    expect(demand.own(0, row.tauMs)).toBeCloseTo(Math.exp(-1) / row.tauMs)
    expect(demand.own(0, 13 * row.tauMs)).toBe(0)
  })

  it('so that pods that ask once in twelve seconds are seen to ask alike', () => {
    const { demand } = counterOf(50, 100, 60_000)
    for (let atMs = 12_000; atMs <= 240_000; atMs += 12_000) demand.offer(0, 1, atMs)
    const rightAfter = demand.own(0, 240_000)
    const rightBefore = demand.own(0, 251_999)
    expect(rightAfter / rightBefore).toBeLessThan(1.6)
    expect(rightAfter).toBeGreaterThan(1 / 12_000)
    expect(rightBefore).toBeLessThan(1 / 12_000)
  })
})
