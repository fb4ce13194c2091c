import { describe, expect, it } from 'vitest'
import { CounterTable } from '../../../src/counters/counter-table.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

function podOf(keysMax: number, rule: Parameters<typeof ruleOf>[1]) {
  const seed = Uint8Array.from([8, 7, 6, 5, 4, 3, 2, 1])
  const table = new CounterTable({ keysMax, secret: null, label: 'test', seed })
  const limiter = new Limiter({ store: table })
  limiter.setRules(rulesOf(ruleOf('api', rule)), 0, startWallMs)
  const ask = (key: string, atMs: number, cost = 1) =>
    limiter.check('api', [key], cost, 'check', atMs, startWallMs + atMs)!
  return { table, limiter, ask }
}

describe('a full table', () => {
  it('denies no tenant below his limit and forgets no exhausted one in a flood of random keys', () => {
    const { table, limiter, ask } = podOf(1024, { limit: limitOf(10, 1000) })
    let denied = 0
    for (let n = 0; n < 10; n++) ask('exhausted', 0)
    for (let n = 0; n < 40_000; n++) {
      const atMs = n / 20
      ask(`random ${n}`, atMs)
      // 20 tenants, each at half his limit; one that asks as fast as he can.
      if (n % 200 === 0 && !ask(`tenant ${(n / 200) % 20}`, atMs).allowed) denied++
      if (n % 40 === 0) ask('exhausted', atMs)
    }
    expect(denied).toBe(0)
    expect(table.slots.used).toBeLessThanOrEqual(1024)
    expect(table.eviction.counters).toBeGreaterThan(10_000)
    expect(limiter.top(null, 'denied', 1, 2000, startWallMs + 2000)[0]?.key).toEqual(['exhausted'])
    const view = limiter.key('api', ['exhausted'], 2000, startWallMs + 2000)!
    expect(view.parts[0]?.consumed ?? view.hits - view.denied).toBeLessThanOrEqual(31)
    table.assertInvariants()
  })

  it('tracks keys it has no place for approximately: each has its own limit, none a fresh one', () => {
    const { table, limiter, ask } = podOf(64, { limit: limitOf(3, 3_600_000) })
    for (let n = 0; n < 64; n++) ask(`first ${n}`, 0)
    const allowed = Array.from(
      { length: 50 },
      (_, n) => [0, 1, 2, 3, 4].filter(() => ask(`late ${n}`, 1).allowed).length,
    )
    expect(allowed).toEqual(Array(50).fill(3))
    expect(table.tableFull).toBeGreaterThan(0)
    expect(limiter.degradedDecisions).toBe(250)
    expect(ask('first 5', 1).remaining).toBe(1)
  })

  it('begins a new epoch when a forgotten counter comes back', () => {
    const { table, ask } = podOf(1, { limit: limitOf(10, 1000) })
    ask('a', 0)
    const epoch = table.slots.epoch[0]!
    ask('b', 10_000)
    expect(ask('a', 20_000).remaining).toBe(9)
    expect(table.slots.epoch[0]).toBeGreaterThan(epoch)
    table.assertInvariants()
  })
})

describe('keys', () => {
  it('of any length are kept apart, long ones by digest', () => {
    const { table, ask } = podOf(16, { limit: limitOf(10, 1000) })
    const long = 'x'.repeat(10_000)
    ask(`${long}a`, 0)
    ask(`${long}b`, 0)
    expect(ask(`${long}a`, 0).remaining).toBe(8)
    expect(Math.max(...table.slots.key.map(text => text?.length ?? 0))).toBeLessThan(100)
  })

  it('have the same id on every pod, another one under another secret', () => {
    const idOf = (secret: Uint8Array | null, seed: number) => {
      const table = new CounterTable({
        keysMax: 4,
        secret,
        label: 'shop',
        seed: Uint8Array.from({ length: 8 }, () => seed),
      })
      const shape = table.shapeOf({
        family: 'bucket',
        capacity: 1,
        periodMs: 1,
        clock: null,
        onPartition: 'share',
      })
      return table.idText(table.open(table.identityOf('api/bucket/rolling'), 'k', shape, 0, 0))
    }
    expect(idOf(null, 1)).toBe(idOf(null, 2))
    expect(idOf(null, 1)).not.toBe(idOf(Uint8Array.of(1), 1))
    expect(idOf(null, 1)).toMatch(/^[0-9a-f]{16}$/)
  })
})
