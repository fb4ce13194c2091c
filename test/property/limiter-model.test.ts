/**
 * Every algorithm against a brute-force model that keeps every request in a list: a lone pod admits
 * exactly what the model admits, at any times and costs.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CounterTable } from '../../src/counters/counter-table.js'
import { Limiter } from '../../src/limiter/limiter.js'
import type { Algorithm, RuleSpec } from '../../src/limiter/rule.js'
import { startWallMs } from '../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../helpers/rules.js'

interface Ask {
  readonly atMs: number
  readonly cost: number
}

const asks: fc.Arbitrary<Ask[]> = fc
  .array(fc.record({ gapMs: fc.nat(400), cost: fc.integer({ min: 1, max: 3 }) }), { maxLength: 60 })
  .map(list => {
    let atMs = 0
    return list.map(({ gapMs, cost }) => {
      atMs += gapMs
      return { atMs, cost }
    })
  })

const limits = fc.record({
  count: fc.integer({ min: 3, max: 12 }),
  windowMs: fc.constantFrom(1000, 1500),
})

/** Admits or not, given everything admitted before. */
type Model = (admitted: readonly Ask[], ask: Ask, count: number, windowMs: number) => boolean

const sum = (list: readonly Ask[]) => list.reduce((total, { cost }) => total + cost, 0)

const models: Readonly<Record<string, { algorithm: Algorithm; burst?: number; model: Model }>> = {
  'token bucket': {
    algorithm: 'token-bucket',
    burst: 8,
    model: (admitted, ask, count, windowMs) => {
      let tokens = 8
      let lastMs = 0
      for (const { atMs, cost } of [...admitted, { atMs: ask.atMs, cost: 0 }]) {
        tokens = Math.min(8, tokens + ((atMs - lastMs) * count) / windowMs) - cost
        lastMs = atMs
      }
      return tokens >= ask.cost - 1e-6
    },
  },
  'fixed window': {
    algorithm: 'fixed-window',
    model: (admitted, ask, count, windowMs) => {
      const id = (atMs: number) => Math.floor((startWallMs + atMs) / windowMs)
      const here = admitted.filter(({ atMs }) => id(atMs) === id(ask.atMs))
      return sum(here) + ask.cost <= count
    },
  },
  'sliding window': {
    algorithm: 'sliding-window',
    model: (admitted, ask, count, windowMs) => {
      const id = (atMs: number) => Math.floor((startWallMs + atMs) / windowMs)
      const now = id(ask.atMs)
      const present = sum(admitted.filter(({ atMs }) => id(atMs) === now))
      const before = sum(admitted.filter(({ atMs }) => id(atMs) === now - 1))
      const inView = 1 - ((startWallMs + ask.atMs) % windowMs) / windowMs
      return before * inView + present + ask.cost <= count + 1e-6
    },
  },
  'sliding log': {
    algorithm: 'sliding-log',
    model: (admitted, ask, count, windowMs) =>
      sum(admitted.filter(({ atMs }) => atMs > ask.atMs - windowMs)) + ask.cost <= count,
  },
}

function podOf(rule: RuleSpec) {
  const seed = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)
  const store = new CounterTable({ keysMax: 4, secret: null, label: 'test', seed })
  const limiter = new Limiter({ store })
  limiter.setRules(rulesOf(rule), 0, startWallMs)
  return ({ atMs, cost }: Ask) =>
    limiter.check('api', ['k'], cost, 'check', atMs, startWallMs + atMs)!
}

describe.each(Object.entries(models))(
  'a lone pod with a %s',
  (_name, { algorithm, burst, model }) => {
    const rule = (count: number, windowMs: number) =>
      ruleOf('api', { limit: limitOf(count, windowMs), algorithm, burst: burst ?? null })

    it('admits exactly what the model admits', () => {
      fc.assert(
        fc.property(limits, asks, ({ count, windowMs }, list) => {
          const check = podOf(rule(count, windowMs))
          const admitted: Ask[] = []
          for (const ask of list) {
            const expected = model(admitted, ask, count, windowMs)
            expect([ask, check(ask).allowed]).toEqual([ask, expected])
            if (expected) admitted.push(ask)
          }
        }),
      )
    })

    it('admits a denied request after the time it named, and names no longer one than needed', () => {
      fc.assert(
        fc.property(limits, asks, ({ count, windowMs }, list) => {
          const check = podOf(rule(count, windowMs))
          const admitted: Ask[] = []
          for (const ask of list) {
            const decision = check(ask)
            if (decision.allowed) {
              admitted.push(ask)
              continue
            }
            const { retryAfterMs } = decision
            const later = { atMs: ask.atMs + retryAfterMs, cost: ask.cost }
            expect(model(admitted, later, count, windowMs)).toBe(true)
            const sooner = { atMs: later.atMs - 1.001, cost: ask.cost }
            if (retryAfterMs > 2) expect(model(admitted, sooner, count, windowMs)).toBe(false)
          }
        }),
      )
    })

    it('never reports less than nothing left, nor more than there is', () => {
      fc.assert(
        fc.property(limits, asks, ({ count, windowMs }, list) => {
          const check = podOf(rule(count, windowMs))
          for (const ask of list) {
            const { remaining } = check(ask)
            expect(remaining).toBeGreaterThanOrEqual(0)
            expect(remaining).toBeLessThanOrEqual(burst ?? count)
            expect(Number.isInteger(remaining)).toBe(true)
          }
        }),
      )
    })
  },
)
