/**
 * Issue 5: a lone client that waits as long as Retry-After says passes, by every algorithm; asked a
 * little earlier it is still refused, so nobody is kept waiting for nothing.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { retryAfterSeconds } from '../../src/http/rate-limit-headers.js'
import type { Algorithm } from '../../src/limiter/rule.js'
import { CoreWorld } from '../helpers/core-world.js'

const algorithms: readonly Algorithm[] = [
  'token-bucket',
  'leaky-bucket',
  'fixed-window',
  'sliding-window',
  'sliding-log',
]

const scenario = fc.record({
  count: fc.integer({ min: 1, max: 300 }),
  windowSeconds: fc.constantFrom(1, 7, 60, 3600, 86_400),
  burst: fc.integer({ min: 1, max: 300 }),
  /** Where in the windows it begins. */
  offsetMs: fc.integer({ min: 0, max: 86_400_000 }),
  before: fc.array(
    fc.record({ passPart: fc.double({ min: 0, max: 1.5, noNaN: true }), asks: fc.nat(400) }),
    { minLength: 1, maxLength: 4 },
  ),
  costPart: fc.double({ min: 0, max: 1, noNaN: true }),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

function worldOf(algorithm: Algorithm, given: Scenario): { world: CoreWorld; capacity: number } {
  const { count, windowSeconds, burst } = given
  const more =
    algorithm === 'token-bucket'
      ? `, burst: ${burst}`
      : algorithm === 'leaky-bucket'
        ? `, queue: ${burst - 1}`
        : ''
  const limit = `limit: ${count}/${windowSeconds}s, algorithm: ${algorithm}${more}`
  const world = new CoreWorld(`rules: [{ name: api, key: [ip], ${limit} }]`)
  world.clock.pass(given.offsetMs)
  return { world, capacity: more === '' ? count : burst }
}

/** Traffic as the scenario has it, then single requests until one is refused. */
function denial(world: CoreWorld, given: Scenario, cost: number) {
  const ask = (units: number) => ({ ...world.engine.check('api', ['k'], units) })
  for (const { passPart, asks } of given.before) {
    world.clock.pass(Math.floor(passPart * given.windowSeconds * 1000))
    for (let n = 0; n < asks; n++) if (!ask(1).allowed) break
  }
  for (let n = 0; n < 2000; n++) {
    const said = ask(cost)
    if (!said.allowed) return said
  }
  throw new Error('the limit admits without end')
}

describe.each(algorithms)('%s', algorithm => {
  it('who waits for Retry-After passes', () => {
    fc.assert(
      fc.property(scenario, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), run),
      { numRuns: 60 },
    )
    function run(given: Scenario, chance: number): void {
      const { world, capacity } = worldOf(algorithm, given)
      // Between a fraction of a unit and all that fits.
      const cost = Math.max(0.5, Math.floor(given.costPart * capacity))
      const denied = denial(world, given, cost)
      const seconds = retryAfterSeconds(denied.retryAfterMs ?? 0, () => chance)
      expect(seconds).toBeGreaterThanOrEqual(1)
      world.clock.pass(seconds * 1000)
      expect(world.engine.check('api', ['k'], cost)).toMatchObject({ allowed: true })
    }
  })

  it('the wait is the shortest one: nine tenths of it are not enough', () => {
    fc.assert(
      fc.property(scenario, given => {
        const { world, capacity } = worldOf(algorithm, given)
        const cost = Math.max(0.5, Math.floor(given.costPart * capacity))
        const { retryAfterMs = 0 } = denial(world, given, cost)
        fc.pre(retryAfterMs >= 20)
        world.clock.pass(Math.floor(0.9 * retryAfterMs))
        expect(world.engine.check('api', ['k'], cost)).toMatchObject({ allowed: false })
        world.clock.pass(retryAfterMs - Math.floor(0.9 * retryAfterMs))
        expect(world.engine.check('api', ['k'], cost)).toMatchObject({ allowed: true })
      }),
      { numRuns: 60 },
    )
  })
})

it('several rules: the longest wait is named, and it is enough for all', () => {
  fc.assert(
    fc.property(fc.array(scenario, { minLength: 2, maxLength: 3 }), givens => {
      const rules = givens.map(({ count, windowSeconds }, index) => {
        const algorithm = algorithms[(count + index) % algorithms.length]
        return `{ name: r${index}, key: [ip], limit: ${count}/${windowSeconds}s, algorithm: ${algorithm} }`
      })
      const world = new CoreWorld(`rules: [${rules.join(', ')}]`)
      world.clock.pass(givens[0]?.offsetMs ?? 0)
      world.exhaust()
      const seconds = retryAfterSeconds(world.ask().retryAfterMs, () => 0)
      world.clock.pass(seconds * 1000)
      expect(world.ask().allowed).toBe(true)
    }),
    { numRuns: 50 },
  )
})

it('a calendar window: the wait ends where the window does, in the rule’s zone', () => {
  const world = new CoreWorld(
    'rules: [{ name: api, key: [ip], limit: 3/day, algorithm: fixed-window, timezone: Europe/Berlin }]',
  )
  expect(world.exhaust()).toBe(3)
  const { retryAfterMs } = world.ask()
  const end = new Date(world.clock.wallMs() + retryAfterMs)
  const time = { timeZone: 'Europe/Berlin', timeStyle: 'medium' } as const
  expect(end.toLocaleTimeString('de-DE', time)).toBe('00:00:00')
  world.clock.pass(retryAfterMs)
  expect(world.ask().allowed).toBe(true)
})

it('a cost above the limit never passes, and the wait is bounded', () => {
  const world = new CoreWorld('rules: [{ name: api, key: [ip], limit: 3/1s }]')
  const denied = world.engine.check('api', ['k'], 4)
  expect(denied?.allowed).toBe(false)
  expect(denied?.retryAfterMs).toBeLessThanOrEqual(366 * 86_400_000)
})
