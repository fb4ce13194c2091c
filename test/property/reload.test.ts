/** Issue 5: rules are reloaded live, and what was used stays used, whatever happens to the numbers. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Algorithm } from '../../src/limiter/rule.js'
import { CoreWorld } from '../helpers/core-world.js'

const algorithms: readonly Algorithm[] = [
  'token-bucket',
  'leaky-bucket',
  'fixed-window',
  'sliding-window',
  'sliding-log',
]

/** A rule that admits `count` at once; a leaky bucket holds one and lets the others wait. */
function rules(algorithm: Algorithm, count: number, windowSeconds: number): string {
  const queue = algorithm === 'leaky-bucket' ? `, queue: ${count - 1}` : ''
  const limit = `limit: ${count}/${windowSeconds}s`
  return `rules: [{ name: api, key: [ip], algorithm: ${algorithm}, ${limit}${queue} }]`
}

function remaining(world: CoreWorld): number {
  return world.engine.check('api', ['192.0.2.7'], 0)?.remaining ?? Number.NaN
}

describe.each(algorithms)('%s', algorithm => {
  it('empty stays empty through a hundred reloads', () => {
    const text = rules(algorithm, 20, 60)
    const world = new CoreWorld(text)
    expect(world.exhaust()).toBe(20)
    for (let n = 0; n < 100; n++) {
      world.reload(text)
      expect(world.ask().allowed, `after reload ${n}`).toBe(false)
    }
  })

  it('empty stays empty while the numbers go up and down', () => {
    const world = new CoreWorld(rules(algorithm, 20, 60))
    expect(world.exhaust()).toBe(20)
    for (let n = 0; n < 100; n++) {
      world.reload(rules(algorithm, n % 2 === 0 ? 10 : 20, 60))
      expect(world.ask(), `after reload ${n}`).toMatchObject({ allowed: false, remaining: 0 })
    }
  })

  it.each([
    { used: 5, to: 10, left: 5 },
    { used: 15, to: 10, left: 0 },
    { used: 20, to: 10, left: 0 },
    { used: 5, to: 40, left: 35 },
    { used: 20, to: 40, left: 20 },
  ])('20 -> $to with $used used leaves $left', ({ used, to, left }) => {
    const world = new CoreWorld(rules(algorithm, 20, 60))
    for (let n = 0; n < used; n++) expect(world.ask().allowed).toBe(true)
    world.reload(rules(algorithm, to, 60))
    expect(remaining(world)).toBe(left)
    expect(world.exhaust()).toBe(left)
  })

  it.each([
    { from: 60, to: 10 },
    { from: 10, to: 60 },
  ])('a window of $from s -> $to s keeps what was used', ({ from, to }) => {
    const world = new CoreWorld(rules(algorithm, 20, from))
    for (let n = 0; n < 15; n++) expect(world.ask().allowed).toBe(true)
    world.reload(rules(algorithm, 20, to))
    expect(remaining(world)).toBe(5)
    expect(world.exhaust()).toBe(5)
    // And the new window is the one that counts from now on.
    const denied = world.ask()
    expect(denied.windowMs).toBe(to * 1000)
    expect(denied.retryAfterMs).toBeLessThanOrEqual(2 * to * 1000)
    world.clock.pass(2 * to * 1000 + 1)
    expect(world.exhaust()).toBe(20)
  })

  it('a client that changes its tier keeps what it used', () => {
    const queue = algorithm === 'leaky-bucket' ? ', queue: 99' : ''
    const tiers = 'tier: { by: "header:plan", default: free, limits: { free: 10/1m, pro: 40/1m } }'
    const world = new CoreWorld(
      `rules: [{ name: api, key: [ip], algorithm: ${algorithm}, ${tiers}${queue} }]`,
    )
    const ask = (plan: string) => world.ask('192.0.2.7', { plan })
    for (let n = 0; n < 8; n++) expect(ask('free').allowed).toBe(true)
    const left = (plan: string) => ask(plan).remaining
    // A leaky bucket's room is its queue, which no tier changes; its pace is the tier's.
    if (algorithm === 'leaky-bucket') {
      expect([left('pro'), left('free')]).toEqual([91, 90])
      return
    }
    expect([left('pro'), left('free'), left('free')]).toEqual([31, 0, 0])
    expect(ask('free').allowed).toBe(false)
    expect(ask('pro')).toMatchObject({ allowed: true, remaining: 29 })
  })

  it('reloading the same rules changes no answer', () => {
    const steps = fc.array(
      fc.record({
        passMs: fc.integer({ min: 0, max: 20_000 }),
        cost: fc.constantFrom(0, 0.5, 1, 2, 7),
      }),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(steps, todo => {
        const text = rules(algorithm, 20, 60)
        const [quiet, restless] = [new CoreWorld(text), new CoreWorld(text)]
        for (const { passMs, cost } of todo) {
          const answers = [quiet, restless].map(world => {
            world.clock.pass(passMs)
            if (world === restless) world.reload(text)
            const { allowed, ...numbers } = { ...world.engine.check('api', ['k'], cost) }
            const { remaining, resetAfterMs, retryAfterMs, delayMs, reason } = numbers
            return { allowed, remaining, resetAfterMs, retryAfterMs, delayMs, reason }
          })
          expect(answers[1]).toEqual(answers[0])
        }
      }),
      { numRuns: 40 },
    )
  })

  it('through any reloads, at one moment, what was admitted is what was used', () => {
    const step = fc.oneof(
      fc.record({ asks: fc.integer({ min: 1, max: 30 }) }),
      fc.record({
        count: fc.integer({ min: 1, max: 40 }),
        windowSeconds: fc.constantFrom(1, 10, 60, 3600),
      }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), todo => {
        let count = 20
        const world = new CoreWorld(rules(algorithm, count, 60))
        const isBucket = algorithm.endsWith('bucket')
        let used = 0
        for (const now of todo) {
          if ('count' in now) {
            count = now.count
            world.reload(rules(algorithm, count, now.windowSeconds))
            expect(remaining(world)).toBe(Math.max(0, count - used))
            // A bucket owes two bursts at most (counters.md §2); what is cut off is counted.
            if (isBucket) used = Math.min(used, 2 * count)
            continue
          }
          for (let n = 0; n < now.asks; n++) {
            const { allowed, remaining: left } = world.ask()
            expect(allowed).toBe(used + 1 <= count)
            if (allowed) used++
            expect(left).toBe(Math.max(0, count - used))
          }
        }
      }),
      { numRuns: 40 },
    )
  })

  it('over time and reloads, what is left is never negative and never more than the limit', () => {
    const step = fc.record({
      passMs: fc.integer({ min: 0, max: 90_000 }),
      asks: fc.integer({ min: 0, max: 12 }),
      count: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 2 }),
      windowSeconds: fc.constantFrom(1, 10, 60),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), todo => {
        let count = 20
        const world = new CoreWorld(rules(algorithm, count, 60))
        for (const now of todo) {
          world.clock.pass(now.passMs)
          if (now.count !== null) {
            count = now.count
            world.reload(rules(algorithm, count, now.windowSeconds))
          }
          for (let n = 0; n < now.asks; n++) {
            const said = world.ask()
            expect(said.remaining).toBeGreaterThanOrEqual(0)
            expect(said.remaining).toBeLessThanOrEqual(count)
            expect(said.retryAfterMs > 0).toBe(!said.allowed)
          }
        }
        world.core.takeEffects()
      }),
      { numRuns: 40 },
    )
  })
})

it('concurrency: what is in flight stays in flight when the limit moves', () => {
  const slots = (concurrency: number) =>
    `rules: [{ name: slots, key: [ip], concurrency: ${concurrency} }]`
  const world = new CoreWorld(slots(5))
  const running = [0, 1, 2].map(() => world.ask())
  world.reload(slots(2))
  expect(world.ask()).toMatchObject({ allowed: false, remaining: 0 })
  world.reload(slots(4))
  expect(world.ask()).toMatchObject({ allowed: true, remaining: 0 })
  for (const { settlement } of running) {
    if (settlement === null) throw new Error('a slot is owed')
    world.engine.settle(settlement, { status: 200, aborted: false, header: () => undefined })
  }
  expect(world.ask()).toMatchObject({ allowed: true, remaining: 2 })
})

it('another name is another rule: its count begins anew, and the old one’s is kept for its return', () => {
  const named = (name: string) => `rules: [{ name: ${name}, key: [ip], limit: 20/1m }]`
  const world = new CoreWorld(named('api'))
  expect(world.exhaust()).toBe(20)
  world.reload(named('other'))
  expect(world.exhaust()).toBe(20)
  world.reload(named('api'))
  expect(world.exhaust()).toBe(0)
})
