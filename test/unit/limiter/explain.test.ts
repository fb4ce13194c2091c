/** What `explain` says is what the next decision does. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CoreWorld } from '../../helpers/core-world.js'
import { requestFacts } from '../../helpers/rule-specs.js'

const tiers = 'tier: { by: "header:plan", default: free, limits: { free: 4/1m, pro: 9/1m } }'

describe.each([
  'token-bucket',
  'leaky-bucket, queue: 3',
  'fixed-window',
  'sliding-window',
  'sliding-log',
])('%s', algorithm => {
  const limit = algorithm.startsWith('leaky') ? 'limit: 4/1m' : tiers

  it('foretells the next decision, and the one after a change of tier', () => {
    const step = fc.record({
      passMs: fc.integer({ min: 0, max: 30_000 }),
      plan: fc.constantFrom('free', 'pro'),
    })
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), todo => {
        const world = new CoreWorld(
          `rules: [{ name: api, key: [ip], algorithm: ${algorithm}, ${limit} }]`,
        )
        for (const { passMs, plan } of todo) {
          world.clock.pass(passMs)
          const facts = requestFacts({ headers: { plan } })
          const told = world.engine.explain(facts)
          const again = world.engine.explain(facts)
          expect(again).toEqual(told)
          const said = { ...world.engine.decide(facts, 'proxy') }
          const verdict = told.rules[0]?.verdict
          expect(told.allowed).toBe(said.allowed)
          expect(verdict?.limit).toBe(said.limit)
          expect(verdict?.remaining).toBe(said.remaining + (said.allowed ? 1 : 0))
          if (!said.allowed) {
            expect(verdict?.retryAfterMs).toBeGreaterThan(0)
          }
        }
      }),
      { numRuns: 30 },
    )
  })
})

it('makes no counter for a key that was never asked for', () => {
  const world = new CoreWorld('rules: [{ name: api, key: [ip], limit: 4/1m }]')
  for (let n = 0; n < 50; n++) world.engine.explain(requestFacts({ ip: `192.0.2.${n}` }))
  expect(world.engine.stats().rules[0]?.keys).toBe(0)
})
