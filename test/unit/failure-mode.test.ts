/** Issue 5, item 8: when the limiter fails or its table is full, each rule's `failureMode` answers. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { CounterTable } from '../../src/counters/counter-table.js'
import { RuleMatcher } from '../../src/limiter/rule-matcher.js'
import { CoreWorld } from '../helpers/core-world.js'
import { requestFacts } from '../helpers/rule-specs.js'

afterEach(() => vi.restoreAllMocks())

const rules = `
allow: [{ path: /healthz }]
deny: [{ path: /secret }]
rules:
  - { name: open, match: { path: "/open/**" }, key: [ip], limit: 5/1m }
  - { name: shut, match: { path: "/shut/**" }, key: [ip], limit: 5/1m, failureMode: closed }
  - { name: trial, match: { path: "/trial/**" }, key: [ip], limit: 5/1m, failureMode: closed, mode: shadow }
`

function failing(where: 'counting' | 'matching'): CoreWorld {
  const world = new CoreWorld(rules)
  const bug = () => {
    throw new Error('a bug')
  }
  if (where === 'matching') vi.spyOn(RuleMatcher.prototype, 'match').mockImplementation(bug)
  else vi.spyOn(CounterTable.prototype, 'open').mockImplementation(bug)
  return world
}

const at = (world: CoreWorld, path: string) => world.engine.decide(requestFacts({ path }), 'proxy')

describe('counting throws', () => {
  it('each rule answers for its own traffic', () => {
    const world = failing('counting')
    expect(at(world, '/open/a')).toMatchObject({ allowed: true, reason: 'degraded' })
    expect(at(world, '/shut/a')).toMatchObject({
      allowed: false,
      reason: 'degraded',
      rule: 'shut',
      violated: ['shut'],
    })
    expect(world.engine.failures).toBe(2)
    expect(world.engine.reasons.proxy.degraded).toBe(2)
  })

  it('a shadow rule closes nothing', () => {
    expect(at(failing('counting'), '/trial/a')).toMatchObject({ allowed: true, reason: 'degraded' })
  })

  it('the lists and traffic without a rule are none of its business', () => {
    const world = failing('counting')
    expect(at(world, '/healthz')).toMatchObject({ allowed: true, reason: 'exempt' })
    expect(at(world, '/secret')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(at(world, '/elsewhere')).toMatchObject({ allowed: true, reason: 'no-rule' })
    expect(world.engine.failures).toBe(0)
  })

  it('a check by name is answered by that rule alone', () => {
    const { engine } = failing('counting')
    expect(engine.check('open', ['k'], 1)).toMatchObject({ allowed: true, reason: 'degraded' })
    expect(engine.check('shut', ['k'], 1)).toMatchObject({ allowed: false, reason: 'degraded' })
    expect(engine.check('no-such-rule', ['k'], 1)).toBeNull()
  })

  it('counts on where it was when the trouble is over', () => {
    const world = new CoreWorld(rules)
    const ask = () => at(world, '/open/a')
    for (let n = 0; n < 3; n++) expect(ask().allowed).toBe(true)
    const spy = vi.spyOn(CounterTable.prototype, 'open').mockImplementation(() => {
      throw new Error('a bug')
    })
    for (let n = 0; n < 10; n++) expect(ask().reason).toBe('degraded')
    spy.mockRestore()
    const after = [0, 1, 2].map(() => ask().allowed)
    expect(after).toEqual([true, true, false])
  })
})

describe('even matching throws', () => {
  it('which rules are concerned is not known, so one closed rule closes', () => {
    const world = failing('matching')
    expect(at(world, '/open/a')).toMatchObject({ allowed: false, rule: 'shut' })
    world.reload('rules: [{ name: open, key: [ip], limit: 5/1m }]')
    expect(at(world, '/open/a')).toMatchObject({ allowed: true, reason: 'degraded', rule: null })
  })
})

describe('the table is full', () => {
  const keysMax = 16

  /** Every place is taken by a key that is not back to full. */
  function full(text: string): CoreWorld {
    const world = new CoreWorld(text, keysMax)
    for (let n = 0; n < keysMax; n++) world.ask(`192.0.2.${n}`)
    return world
  }

  const algorithms = ['token-bucket', 'fixed-window', 'sliding-window', 'sliding-log'] as const

  it.each(algorithms)('open, %s: new keys are held to the limit, and marked', algorithm => {
    const world = full(`rules: [{ name: api, key: [ip], limit: 5/1m, algorithm: ${algorithm} }]`)
    const first = world.ask('198.51.100.1')
    expect(first).toMatchObject({ allowed: true, reason: 'degraded', rule: 'api', remaining: 4 })
    expect(world.exhaust('198.51.100.1')).toBe(4)
    expect(world.ask('198.51.100.2').allowed).toBe(true)
    expect(world.engine.stats()).toMatchObject({ degradedDecisions: 7, tableFull: 7 })
  })

  it.each(algorithms)('open, %s: a refused new key passes when it waited', algorithm => {
    const world = full(`rules: [{ name: api, key: [ip], limit: 5/1m, algorithm: ${algorithm} }]`)
    world.exhaust('198.51.100.1')
    // The other keys stay in use, so that no place falls free.
    const denied = world.ask('198.51.100.1')
    expect(denied).toMatchObject({ allowed: false, reason: 'limited' })
    const waitMs = Math.ceil(denied.retryAfterMs / 1000) * 1000
    world.clock.pass(waitMs)
    for (let n = 0; n < keysMax; n++) world.ask(`192.0.2.${n}`)
    expect(world.ask('198.51.100.1').allowed).toBe(true)
  })

  it('open, leaky-bucket: a new key is paced all the same', () => {
    const world = full(
      'rules: [{ name: api, key: [ip], limit: 1/1s, algorithm: leaky-bucket, queue: 2 }]',
    )
    const delays = [1, 2, 3].map(() => world.ask('198.51.100.1').delayMs)
    expect(delays.map(Math.round)).toEqual([0, 1000, 2000])
    expect(world.ask('198.51.100.1').allowed).toBe(false)
  })

  it('closed: new keys are refused as degraded, known ones go on', () => {
    const world = full('rules: [{ name: api, key: [ip], limit: 5/1m, failureMode: closed }]')
    expect(world.ask('198.51.100.1')).toMatchObject({
      allowed: false,
      reason: 'degraded',
      rule: 'api',
    })
    expect(world.ask('192.0.2.3')).toMatchObject({ allowed: true, reason: 'allowed', remaining: 3 })
    expect(world.engine.reasons.proxy.degraded).toBe(1)
    expect(world.engine.stats().degradedDecisions).toBe(1)
  })

  it.each([
    ['open', true],
    ['closed', false],
  ] as const)('%s: a concurrency rule that cannot count a key', (failureMode, allowed) => {
    const world = new CoreWorld(
      `rules: [{ name: slots, key: [ip], concurrency: 1, failureMode: ${failureMode} }]`,
      keysMax,
    )
    for (let n = 0; n < keysMax; n++) world.ask(`192.0.2.${n}`)
    expect(world.ask('198.51.100.1')).toMatchObject({ allowed, reason: 'degraded' })
  })

  it('a place falls free once a key is back to full, and new keys are counted exactly again', () => {
    const world = full('rules: [{ name: api, key: [ip], limit: 5/1m }]')
    expect(world.ask('198.51.100.1').reason).toBe('degraded')
    for (let n = 0; n < 200; n++) {
      world.clock.pass(1000)
      world.core.advance(world.clock.monotonicMs(), world.clock.wallMs())
      world.core.takeEffects()
    }
    expect(world.ask('198.51.100.2')).toMatchObject({ allowed: true, reason: 'allowed' })
  })

  it('a flood of new keys grows nothing and denies no known one', () => {
    const world = full('rules: [{ name: api, key: [ip], limit: 100/1m }]')
    let passed = 0
    for (let n = 0; n < 20_000; n++) {
      world.ask(`2001:db8:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`)
      if (n % 1000 === 0 && world.ask('192.0.2.3').allowed) passed++
    }
    expect(passed).toBe(20)
    expect(world.engine.stats().rules[0]?.keys).toBe(keysMax)
  })
})
