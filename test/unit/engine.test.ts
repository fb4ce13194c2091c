import { describe, expect, it } from 'vitest'
import { Engine } from '../../src/engine.js'
import type { RequestFacts } from '../../src/limiter/request-facts.js'
import type { RuleName } from '../../src/vocabulary.js'
import { decision, denied, fakeEngine, ruleSet, ruleSpec } from '../helpers/fake-core.js'

const facts = { method: 'GET' } as RequestFacts

describe('Engine', () => {
  it('wakes the driver after every call that may have moved a deadline', () => {
    const { engine, core, wakes } = fakeEngine()
    engine.decide(facts, 'proxy')
    engine.check('api', ['k'], 1)
    engine.applyRules(ruleSet())
    engine.setDraining()
    engine.settle({ open: true }, { status: 200, aborted: false, header: () => undefined })
    expect(wakes()).toBe(5)
    expect(core.draining).toBe(true)
  })

  it('counts decisions by interface and reason', () => {
    const { engine, core } = fakeEngine()
    engine.decide(facts, 'proxy')
    core.next = denied()
    engine.decide(facts, 'auth')
    engine.check('api', ['k'], 1)
    expect(engine.reasons.proxy.allowed).toBe(1)
    expect(engine.reasons.auth.limited).toBe(1)
    expect(engine.reasons.check.limited).toBe(1)
  })

  it('tells its listener of denials only', () => {
    const { engine, core, clock } = fakeEngine()
    const heard: unknown[] = []
    engine.setDenialListener((said, via, wallMs) => heard.push([said.reason, via, wallMs]))
    engine.decide(facts, 'proxy')
    core.next = denied()
    engine.decide(facts, 'proxy')
    expect(heard).toEqual([['limited', 'proxy', clock.wallMs()]])
  })

  it('times one decision in 16, each standing for 16', () => {
    const { engine, clock, core } = fakeEngine()
    core.next = () => {
      clock.nowMs += 0.002
      return decision()
    }
    for (let index = 0; index < 32; index++) engine.decide(facts, 'proxy')
    expect(engine.durations.total).toBe(32)
    expect(engine.durations.sum).toBeCloseTo(32 * 2e-6, 9)
  })

  it.each([
    ['open', true],
    ['closed', false],
  ] as const)('a core that throws is answered by failureMode %s', (failureMode, allowed) => {
    const { engine, core } = fakeEngine()
    core.ruleSet = ruleSet(ruleSpec('api', { failureMode }))
    core.next = () => {
      throw new Error('a bug')
    }
    const viaFacts = engine.decide(facts, 'proxy')
    const viaKey = engine.check('api', ['k'], 1)
    expect(viaFacts).toMatchObject({ allowed, reason: 'degraded' })
    expect(viaKey).toMatchObject({ allowed, reason: 'degraded' })
    expect(engine.failures).toBe(2)
  })

  it('what the core threw is told once a second, and counted always', () => {
    const { core, clock } = fakeEngine()
    const told: unknown[] = []
    const engine = new Engine({ core, clock, wake: () => {}, onFailure: error => told.push(error) })
    const bug = new Error('a bug')
    core.next = () => {
      throw bug
    }
    for (let index = 0; index < 5; index++) engine.decide(facts, 'proxy')
    expect([told, engine.failures]).toEqual([[bug], 5])
    clock.nowMs += 1000
    engine.decide(facts, 'proxy')
    expect(told).toHaveLength(2)
  })

  it('a core that throws while settling does not stop a response', () => {
    const { engine, core } = fakeEngine()
    core.settle = () => {
      throw new Error('a bug')
    }
    const outcome = { status: 200, aborted: false, header: () => undefined }
    expect(() => engine.settle({ open: true }, outcome)).not.toThrow()
    expect(engine.failures).toBe(1)
  })

  it('a shadow rule never closes, not even when the core throws', () => {
    const { engine, core } = fakeEngine()
    core.ruleSet = ruleSet(ruleSpec('api', { failureMode: 'closed', mode: 'shadow' }))
    core.next = () => {
      throw new Error('a bug')
    }
    expect(engine.decide(facts, 'proxy').allowed).toBe(true)
  })

  it('an unknown rule is null, also when the core throws', () => {
    const { engine, core } = fakeEngine()
    expect(engine.check('nope', ['k'], 1)).toBeNull()
    core.next = () => {
      throw new Error('a bug')
    }
    core.ruleSet = ruleSet()
    expect(engine.check('api', ['k'], 1)).toBeNull()
  })

  it.each([
    ['nothing', ruleSet(ruleSpec('a')), { path: false, jwt: false }],
    [
      'the path of a match',
      ruleSet(ruleSpec('a', { match: { path: '/x', method: null, header: null } })),
      { path: true, jwt: false },
    ],
    ['the path as a key', ruleSet(ruleSpec('a', { key: [[{ kind: 'path' }]] })), { path: true }],
    [
      'the path of a cost',
      ruleSet(
        ruleSpec('a', {
          cost: {
            fallback: 1,
            match: [{ match: { path: '/x', method: null, header: null }, cost: 2 }],
            requestHeader: null,
            responseHeader: null,
          },
        }),
      ),
      { path: true },
    ],
    [
      'the path of a deny entry',
      {
        ...ruleSet(),
        deny: [{ path: '/x', method: null, header: null, cidr: null }],
      },
      { path: true },
    ],
    [
      'a claim as an alternative key',
      ruleSet(ruleSpec('a', { key: [[{ kind: 'jwt', name: 'sub' }, { kind: 'ip' }]] })),
      { path: false, jwt: true },
    ],
    [
      'a claim that picks the tier',
      ruleSet(
        ruleSpec('a', {
          tier: { by: [{ kind: 'jwt', name: 'plan' }], fallback: 'free', limits: {} },
        }),
      ),
      { jwt: true },
    ],
  ])('knows that rules look at %s', (_what, rules, needs) => {
    const { engine } = fakeEngine()
    engine.applyRules(rules)
    expect(engine.needs()).toMatchObject(needs)
  })

  it('works the needs out again when the rules change', () => {
    const { engine } = fakeEngine()
    expect(engine.needs().jwt).toBe(false)
    engine.applyRules(ruleSet(ruleSpec('a', { key: [[{ kind: 'jwt', name: 'sub' }]] })))
    expect(engine.needs().jwt).toBe(true)
    expect(engine.rule('a')?.name).toBe('a' as RuleName)
  })
})
