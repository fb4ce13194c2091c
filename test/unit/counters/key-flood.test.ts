/**
 * A million keys that nobody saw before, at full speed, beside a hundred paying tenants: ten tables
 * of the default size full.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { CounterTable } from '../../../src/counters/counter-table.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import type { LimitSpec } from '../../../src/limiter/rule.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const tenants = 100
/** Keys that spent their limit before the flood, and go on asking through it. */
const exhausted = 100
const keysMax = 100_000
const durationMs = 10_000
/** Requests of an exhausted key for one of a tenant. */
const greed = 4

function usedBytes(): number {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function podOf(limit: LimitSpec) {
  const seed = Uint8Array.from([8, 7, 6, 5, 4, 3, 2, 1])
  const table = new CounterTable({ keysMax, secret: null, label: 'test', seed })
  const limiter = new Limiter({ store: table })
  limiter.setRules(rulesOf(ruleOf('api', { limit })), 0, startWallMs)
  const ask = (key: string, atMs: number, cost = 1): boolean =>
    limiter.check('api', [key], cost, 'check', atMs, startWallMs + atMs)!.allowed
  return { table, ask }
}

/**
 * `gapMs` between the requests of one tenant. Returns what was denied to tenants, what exhausted keys
 * got, and how many bytes the second half of the flood added.
 */
function flood(limit: LimitSpec, gapMs: number, randomKeys: number) {
  const { table, ask } = podOf(limit)
  for (let n = 0; n < exhausted; n++) ask(`exhausted ${n}`, 0, limit.count)
  for (let n = 0; n < tenants; n++) ask(`tenant ${n}`, 0, 0)
  const tally = { asked: 0, denied: 0, stolen: 0 }
  // One every gap for each tenant, in turn; the exhausted ones ask for twice their limit.
  const every = Math.round((randomKeys * gapMs) / durationMs / tenants)
  let halfBytes = 0
  for (let n = 0; n < randomKeys; n++) {
    const atMs = (n * durationMs) / randomKeys
    if (n === randomKeys / 2) halfBytes = usedBytes()
    ask(`random ${n}`, atMs)
    if (n % every !== 0) continue
    const turn = (n / every) % tenants
    tally.asked++
    if (!ask(`tenant ${turn}`, atMs)) tally.denied++
    for (let again = 0; again < greed; again++) if (ask(`exhausted ${turn}`, atMs)) tally.stolen++
  }
  const grownBytes = usedBytes() - halfBytes
  table.assertInvariants()
  return { table, ask, grownBytes, ...tally }
}

describe('a flood of random keys beside a hundred tenants at half their limit', () => {
  it('of a short window: nobody is denied, the exhausted get their rate, memory stays', {
    timeout: 120_000,
  }, () => {
    const randomKeys = 10 * keysMax
    const { table, asked, denied, stolen, grownBytes } = flood(limitOf(10, 1000), 200, randomKeys)
    expect(asked).toBe(tenants * 50)
    expect(denied).toBe(0)
    // The refill of ten seconds, not one full bucket more.
    expect(stolen).toBeLessThanOrEqual(exhausted * 100)
    expect(stolen).toBeGreaterThan(exhausted * 95)
    expect(table.slots.used).toBeLessThanOrEqual(keysMax)
    expect(table.eviction.counters).toBeGreaterThan(randomKeys - 2 * keysMax)
    expect(grownBytes).toBeLessThan(4 << 20)
  })

  // Two and a half tables of them; the rest would find what these did.
  it('of an hour: the table is full of them, and still nobody is denied nor let off', {
    timeout: 120_000,
  }, () => {
    const randomKeys = 2.5 * keysMax
    const limit = limitOf(100, 3_600_000)
    const { table, ask, asked, denied, stolen, grownBytes } = flood(limit, 200, randomKeys)
    expect(asked).toBe(tenants * 50)
    expect(denied).toBe(0)
    // A hundred per hour refill by a quarter of a unit in the ten seconds.
    expect(stolen).toBe(0)
    expect(table.slots.used).toBe(keysMax)
    expect(table.tableFull).toBeGreaterThan(randomKeys - 2 * keysMax)
    expect(grownBytes).toBeLessThan(4 << 20)
    // All that was asked is still on the books.
    expect(ask('tenant 7', durationMs, 51)).toBe(false)
    expect(ask('tenant 7', durationMs, 50)).toBe(true)
  })
})
