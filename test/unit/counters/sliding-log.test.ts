/** A sliding log that is asked without a pause: units must leave it as they grow old. */
import { describe, expect, it, test } from 'vitest'
import { CounterTable } from '../../../src/counters/counter-table.js'
import { sliceGone } from '../../../src/counters/levels.js'
import { SlicePool } from '../../../src/counters/slice-pool.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

describe('a lone pod, asked every 5 ms', () => {
  it.each([100, 1000])('admits %i in every window of ten seconds', count => {
    const seed = Uint8Array.from([8, 7, 6, 5, 4, 3, 2, 1])
    const table = new CounterTable({ keysMax: 16, secret: null, label: 'test', seed })
    const limiter = new Limiter({ store: table })
    const rule = ruleOf('api', { limit: limitOf(count, 10_000), algorithm: 'sliding-log' })
    limiter.setRules(rulesOf(rule), 0, startWallMs)
    const admitted = [0, 0, 0, 0]
    for (let atMs = 0; atMs < 40_000; atMs += 5) {
      const window = Math.floor(atMs / 10_000)
      const answer = limiter.check('api', ['k'], 1, 'check', atMs, startWallMs + atMs)
      if (answer?.allowed) admitted[window]!++
    }
    expect(admitted).toEqual([count, count, count, count])
  })
})

test('a node keeps to its span of the clock, and never forgets early within it', () => {
  const pool = new SlicePool(8)
  let log = -1
  for (const time of [100, 120, 139, 141, 159, 160, 158]) log = pool.append(log, time, 1, 40)
  const nodes: [number, number][] = []
  for (let node = pool.first(log); ; node = pool.next[node]!) {
    nodes.push([pool.time[node]!, pool.added[node]!])
    if (node === log) break
  }
  expect(nodes).toEqual([
    [100, 1],
    [159, 4],
    [160, 2],
  ])
})

test.each([
  [7400, 0],
  [16_400, 0],
  [16_450, 0.5],
  [16_500, 1],
  [20_000, 1],
])('at %i ms so much of a slice of 10 s in a log of 6.4 s is gone: %d', (wallMs, gone) => {
  expect(sliceGone(10_000, 6400, wallMs)).toBeCloseTo(gone)
})
