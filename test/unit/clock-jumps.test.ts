/**
 * Issue 5, item 8: a clock that jumps an hour, either clock, either way. A jump may hand out a limit
 * once more or hold a client back for two windows; it neither shuts for an hour nor opens for good.
 */
import { describe, expect, it } from 'vitest'
import { CoreWorld } from '../helpers/core-world.js'

const hourMs = 3_600_000
const windowMs = 60_000
const limit = 5

const algorithms = [
  'token-bucket',
  'leaky-bucket, queue: 4',
  'fixed-window',
  'sliding-window',
  'sliding-log',
] as const

interface Jump {
  readonly name: string
  readonly wallMs: number
  readonly monotonicMs: number
}

const jumps: readonly Jump[] = [
  { name: 'the wall clock an hour ahead', wallMs: hourMs, monotonicMs: 0 },
  { name: 'the wall clock an hour back', wallMs: -hourMs, monotonicMs: 0 },
  { name: 'the wall clock half a window back', wallMs: -windowMs / 2, monotonicMs: 0 },
  { name: 'the monotonic clock an hour ahead', wallMs: 0, monotonicMs: hourMs },
  { name: 'the monotonic clock an hour back', wallMs: 0, monotonicMs: -hourMs },
  { name: 'both an hour ahead, after a sleep', wallMs: hourMs, monotonicMs: hourMs },
]

const cases = algorithms.flatMap(algorithm => jumps.map(jump => ({ algorithm, jump })))

function exhausted(algorithm: string): CoreWorld {
  const world = new CoreWorld(
    `rules: [{ name: api, key: [ip], limit: ${limit}/1m, algorithm: ${algorithm} }]`,
  )
  expect(world.exhaust()).toBe(limit)
  return world
}

function leap(world: CoreWorld, { wallMs, monotonicMs }: Jump): void {
  world.clock.epochMs += wallMs
  world.clock.nowMs += monotonicMs
}

describe.each(cases)('$algorithm: $jump.name', ({ algorithm, jump }) => {
  it('hands out the limit once more at most', () => {
    const world = exhausted(algorithm)
    leap(world, jump)
    expect(world.exhaust()).toBeLessThanOrEqual(limit)
    // And back again, as a clock that is set right does.
    leap(world, { name: '', wallMs: -jump.wallMs, monotonicMs: -jump.monotonicMs })
    expect(world.exhaust()).toBeLessThanOrEqual(limit)
  })

  it('names a wait of at most two windows, and who waits so long passes', () => {
    const world = exhausted(algorithm)
    leap(world, jump)
    world.exhaust()
    const denied = world.ask()
    expect(denied.allowed).toBe(false)
    expect(denied.remaining).toBe(0)
    expect(denied.retryAfterMs).toBeGreaterThan(0)
    expect(denied.retryAfterMs).toBeLessThanOrEqual(2 * windowMs)
    world.clock.pass(Math.ceil(denied.retryAfterMs / 1000) * 1000)
    expect(world.ask().allowed).toBe(true)
  })

  it('holds the limit again two windows later', () => {
    const world = exhausted(algorithm)
    leap(world, jump)
    world.exhaust()
    world.clock.pass(3 * windowMs)
    const passed = world.exhaust()
    expect(passed).toBeGreaterThan(0)
    expect(passed).toBeLessThanOrEqual(limit)
    expect(world.failures).toEqual([])
  })
})

describe('a core whose clocks jump', () => {
  it.each(jumps)('goes on stepping: $name', jump => {
    const world = exhausted('token-bucket')
    leap(world, jump)
    for (let step = 0; step < 50; step++) {
      world.clock.pass(100)
      world.core.advance(world.clock.monotonicMs(), world.clock.wallMs())
      world.core.takeEffects()
    }
    expect(world.core.members()).toMatchObject([{ name: 'pod-a', state: 'alive' }])
  })
})
