import { describe, expect, it } from 'vitest'
import { CounterTable } from '../../../src/counters/counter-table.js'
import type { Outcome } from '../../../src/limiter/decision.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import type { RuleSpec } from '../../../src/limiter/rule.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { factsOf, limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

function limiterOf(...rules: RuleSpec[]) {
  const seed = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8])
  const store = new CounterTable({ keysMax: 64, secret: null, label: 'test', seed })
  const limiter = new Limiter({ store })
  limiter.setRules(rulesOf(...rules), 0, startWallMs)
  return {
    limiter,
    store,
    ask(atMs: number, key = 'a') {
      return limiter.decide(factsOf(key), 'proxy', atMs, startWallMs + atMs)
    },
    allowed(atMs: number, count: number, key = 'a') {
      let allowed = 0
      for (let n = 0; n < count; n++) if (this.ask(atMs, key).allowed) allowed++
      return allowed
    },
    check(atMs: number, cost: number, rule = 'api', key = 'a') {
      return limiter.check(rule, [key], cost, 'check', atMs, startWallMs + atMs)
    },
  }
}

const outcome = (status: number, headers: Record<string, string> = {}): Outcome => ({
  status,
  aborted: false,
  header: name => headers[name],
})

describe('Limiter with a token bucket', () => {
  it('admits the burst, then what was refilled: 5 of 8 at once, 3 more after 1.5 s at 2/s', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(2, 1000), burst: 5 }))
    expect(pod.allowed(0, 8)).toBe(5)
    expect(pod.allowed(1500, 3)).toBe(3)
    expect(pod.allowed(1500, 1)).toBe(0)
  })

  it('tells a denied client when to come back, and then admits it', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(2, 1000), burst: 5 }))
    pod.allowed(0, 5)
    const denied = pod.ask(0)
    expect(denied).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 500 })
    expect(denied.violated).toEqual(['api'])
    expect(pod.ask(499).allowed).toBe(false)
    expect(pod.ask(500).allowed).toBe(true)
  })

  it('looks without consuming at cost 0 and gives back, never beyond full, at a negative cost', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(10, 1000) }))
    pod.allowed(0, 4)
    expect(pod.check(0, 0)).toMatchObject({ allowed: true, remaining: 6 })
    expect(pod.check(0, 0)?.remaining).toBe(6)
    expect(pod.check(0, -3)?.remaining).toBe(9)
    expect(pod.check(0, -100)?.remaining).toBe(10)
  })

  it('knows no unknown rule', () => {
    expect(limiterOf(ruleOf('api')).check(0, 1, 'nope')).toBeNull()
  })

  it('keeps keys apart', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(3, 1000) }))
    expect(pod.allowed(0, 5, 'a')).toBe(3)
    expect(pod.allowed(0, 5, 'b')).toBe(3)
  })

  it('never admits a cost above the burst, and says so with a long wait', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(10, 1000) }))
    const denied = pod.check(0, 11)
    expect(denied?.allowed).toBe(false)
    expect(Number.isFinite(denied?.retryAfterMs)).toBe(true)
  })
})

describe('Limiter with several rules', () => {
  it('charges all matching rules or none', () => {
    const pod = limiterOf(
      ruleOf('wide', { limit: limitOf(10, 1000) }),
      ruleOf('tight', { limit: limitOf(3, 1000) }),
    )
    expect(pod.allowed(0, 8)).toBe(3)
    expect(pod.check(0, 0, 'wide')?.remaining).toBe(7)
    expect(pod.ask(0)).toMatchObject({ rule: 'tight', allowed: false })
  })

  it('reports the most restrictive rule of an admitted request', () => {
    const pod = limiterOf(
      ruleOf('wide', { limit: limitOf(10, 1000) }),
      ruleOf('tight', { limit: limitOf(3, 1000) }),
    )
    expect(pod.ask(0)).toMatchObject({ rule: 'tight', limit: 3, remaining: 2, allowed: true })
  })

  it('lets a shadow rule report and count, never deny', () => {
    const pod = limiterOf(
      ruleOf('real', { limit: limitOf(10, 1000) }),
      ruleOf('trial', { limit: limitOf(2, 1000), mode: 'shadow' }),
    )
    pod.allowed(0, 2)
    const third = pod.ask(0)
    expect(third.allowed).toBe(true)
    expect(third.rule).toBe('real')
    expect(third.shadowViolated).toEqual(['trial'])
    expect(pod.limiter.decisions(ruleOf('trial').name)?.shadow_denied.proxy).toBe(1)
  })

  it('denies an absent key where the rule says so', () => {
    const pod = limiterOf(ruleOf('api', { missing: 'deny' }))
    const facts = factsOf('x', { header: () => undefined })
    const decision = pod.limiter.decide(facts, 'proxy', 0, startWallMs)
    expect(decision).toMatchObject({ allowed: false, reason: 'missing-key', retryAfterMs: 0 })
  })
})

describe('Limiter when rules change', () => {
  const used = 15
  const cases = [
    { to: limitOf(10, 60_000), remaining: 0, what: 'a smaller limit is used up' },
    { to: limitOf(40, 60_000), remaining: 25, what: 'a larger limit has what is left of it' },
    { to: limitOf(20, 10_000), remaining: 5, what: 'a shorter window keeps the used part' },
  ]
  for (const algorithm of [
    'token-bucket',
    'fixed-window',
    'sliding-window',
    'sliding-log',
  ] as const)
    for (const { to, remaining, what } of cases)
      it(`${algorithm}: ${what}`, () => {
        const pod = limiterOf(ruleOf('api', { limit: limitOf(20, 60_000), algorithm }))
        pod.allowed(1, used)
        pod.limiter.setRules(rulesOf(ruleOf('api', { limit: to, algorithm })), 2, startWallMs + 2)
        expect(pod.check(2, 0)?.remaining).toBe(remaining)
      })

  it('refills nothing when the same rules are loaded a hundred times', () => {
    const rule = ruleOf('api', { limit: limitOf(10, 60_000) })
    const pod = limiterOf(rule)
    pod.allowed(0, 10)
    for (let n = 0; n < 100; n++) pod.limiter.setRules(rulesOf({ ...rule }), 0, startWallMs)
    expect(pod.allowed(0, 5)).toBe(0)
  })

  it('carries usage over when a key changes its tier', () => {
    const tier = {
      by: [{ kind: 'header' as const, name: 'x-plan' }],
      fallback: 'free',
      limits: { free: limitOf(10, 60_000), premium: limitOf(100, 60_000) },
    }
    const pod = limiterOf(ruleOf('api', { limit: null, tier }))
    const as = (plan: string) =>
      factsOf('a', {
        header: name => (name === 'x-key' ? 'a' : name === 'x-plan' ? plan : undefined),
      })
    let free = 0
    for (let n = 0; n < 12; n++)
      if (pod.limiter.decide(as('free'), 'proxy', 0, startWallMs).allowed) free++
    expect(free).toBe(10)
    const premium = pod.limiter.decide(as('premium'), 'proxy', 0, startWallMs)
    expect(premium).toMatchObject({ allowed: true, limit: 100, remaining: 89 })
  })
})

describe('Limiter with settlements', () => {
  it('counts failures only, and holds a place for each request in flight', () => {
    const rule = ruleOf('login', {
      limit: limitOf(3, 60_000),
      algorithm: 'sliding-log',
      count: 'failure',
    })
    const pod = limiterOf(rule)
    const open = [0, 1, 2].map(() => pod.ask(0).settlement)
    expect(pod.ask(0).allowed).toBe(false)
    pod.limiter.settle(open[0]!, outcome(200), 1, startWallMs + 1)
    pod.limiter.settle(open[1]!, outcome(401), 1, startWallMs + 1)
    pod.limiter.settle(open[1]!, outcome(401), 1, startWallMs + 1)
    pod.limiter.settle(open[2]!, outcome(0), 1, startWallMs + 1)
    const last = pod.ask(1)
    expect(last.allowed).toBe(true)
    expect(last.remaining).toBe(0)
    pod.limiter.settle(last.settlement!, outcome(200), 2, startWallMs + 2)
    expect(pod.check(2, 0, 'login')?.remaining).toBe(1)
  })

  it('settles a cost from a response header, below zero too, and has it repaid', () => {
    const cost = { fallback: 1, match: [], requestHeader: null, responseHeader: 'x-request-cost' }
    const pod = limiterOf(ruleOf('api', { limit: limitOf(10, 1000), cost }))
    const open = pod.ask(0).settlement!
    pod.limiter.settle(open, outcome(200, { 'x-request-cost': '15' }), 0, startWallMs)
    expect(pod.ask(500).allowed).toBe(false)
    expect(pod.ask(600).allowed).toBe(true)
    const cheap = pod.ask(3000).settlement!
    pod.limiter.settle(cheap, outcome(200, { 'x-request-cost': '0' }), 3000, startWallMs + 3000)
    expect(pod.check(3000, 0)?.remaining).toBe(10)
  })

  it('bounds a debt to one burst and counts what is forgiven', () => {
    const cost = { fallback: 1, match: [], requestHeader: null, responseHeader: 'x-request-cost' }
    const pod = limiterOf(ruleOf('api', { limit: limitOf(10, 1000), cost }))
    const open = pod.ask(0).settlement!
    pod.limiter.settle(open, outcome(200, { 'x-request-cost': '100' }), 0, startWallMs)
    expect(pod.store.levels.debtForgiven).toBe(80)
    expect(pod.ask(1000).allowed).toBe(false)
    expect(pod.ask(1101).allowed).toBe(true)
  })

  it('frees a slot of a concurrency rule when the request ends', () => {
    const pod = limiterOf(ruleOf('inflight', { limit: null, concurrency: 2 }))
    const first = pod.ask(0).settlement!
    pod.ask(0)
    expect(pod.ask(0).allowed).toBe(false)
    pod.limiter.settle(first, outcome(200), 5, startWallMs + 5)
    expect(pod.ask(5).allowed).toBe(true)
    expect(pod.ask(5).allowed).toBe(false)
  })
})

describe('Limiter with the other algorithms', () => {
  it('leaky bucket: holds requests back one by one and denies beyond queue and longest wait', () => {
    const rule = ruleOf('queue', {
      limit: limitOf(10, 1000),
      algorithm: 'leaky-bucket',
      queue: 20,
      maxWaitMs: 500,
    })
    const pod = limiterOf(rule)
    const delays = Array.from({ length: 6 }, () => pod.ask(0).delayMs)
    expect(delays).toEqual([0, 100, 200, 300, 400, 500])
    expect(pod.ask(0)).toMatchObject({ allowed: false, retryAfterMs: 100 })
    expect(pod.ask(100)).toMatchObject({ allowed: true, delayMs: 500 })
  })

  it('fixed window: counts from the epoch and begins anew at its end', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(5, 1000), algorithm: 'fixed-window' }))
    expect(pod.allowed(900, 8)).toBe(5)
    expect(pod.ask(950)).toMatchObject({ retryAfterMs: 50, resetAfterMs: 50 })
    expect(pod.allowed(1000, 8)).toBe(5)
  })

  it('sliding window: 90 in the previous minute, 70 now, 40 s in make 100 of 100', () => {
    const rule = ruleOf('api', { limit: limitOf(100, 60_000), algorithm: 'sliding-window' })
    const pod = limiterOf(rule)
    expect(pod.allowed(10_000, 90)).toBe(90)
    pod.check(60_001, 10)
    expect(pod.check(100_000, 60)?.allowed).toBe(true)
    expect(pod.check(100_000, 0)?.remaining).toBe(0)
    expect(pod.ask(100_000).allowed).toBe(false)
    expect(pod.check(102_000, 3)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('sliding log: admits exactly when the oldest request leaves the window', () => {
    const rule = ruleOf('api', { limit: limitOf(3, 10_000), algorithm: 'sliding-log' })
    const pod = limiterOf(rule)
    for (const atMs of [0, 3000, 6000]) expect(pod.ask(atMs).allowed).toBe(true)
    expect(pod.ask(9000)).toMatchObject({ allowed: false, retryAfterMs: 1000 })
    expect(pod.ask(9999).allowed).toBe(false)
    expect(pod.ask(10_000).allowed).toBe(true)
    expect(pod.ask(10_000).allowed).toBe(false)
  })

  it('calendar day: a quota without an algorithm ends at local midnight', () => {
    const limit = { count: 2, windowMs: 86_400_000, calendar: 'day' as const }
    const pod = limiterOf(ruleOf('api', { limit, timezone: 'Europe/Berlin' }))
    const decide = (iso: string) =>
      pod.limiter.decide(factsOf('a'), 'proxy', 0, Date.parse(iso)).allowed
    expect(decide('2026-07-01T12:00:00Z')).toBe(true)
    expect(decide('2026-07-01T21:59:59Z')).toBe(true)
    expect(decide('2026-07-01T21:59:59Z')).toBe(false)
    expect(decide('2026-07-01T22:00:00Z')).toBe(true)
  })
})

describe('Limiter shown to people', () => {
  it('explains without consuming or making a counter', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(3, 1000) }))
    const first = pod.limiter.explain(factsOf('a'), 0, startWallMs)
    expect(first).toMatchObject({
      allowed: true,
      rules: [{ rule: 'api', matched: true, key: null }],
    })
    expect(pod.store.slots.used).toBe(0)
    pod.allowed(0, 3)
    const after = pod.limiter.explain(factsOf('a'), 0, startWallMs)
    expect(after.allowed).toBe(false)
    expect(after.rules[0]).toMatchObject({ key: { key: ['a'], remaining: 0, hits: 3 } })
    expect(pod.limiter.key('api', ['a'], 0, startWallMs)?.hits).toBe(3)
  })

  it('shows what a counter holds when nothing is used, the burst of a bucket', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(3, 1000), burst: 9 }))
    pod.allowed(0, 4, 'a')
    expect(pod.limiter.key('api', ['a'], 0, startWallMs)).toMatchObject({
      limit: 3,
      capacity: 9,
      remaining: 5,
    })
  })

  it('lists the keys with most hits, finds one by its hash, and resets it', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(3, 1000) }))
    for (const [key, count] of [
      ['a', 1],
      ['b', 5],
      ['c', 2],
    ] as const)
      pod.allowed(0, count, key)
    const top = pod.limiter.top(null, 'hits', 2, 0, startWallMs)
    expect(top.map(view => view.key)).toEqual([['b'], ['c']])
    expect(pod.limiter.top('api', 'denied', 9, 0, startWallMs)).toHaveLength(1)
    const hash = top[0]!.hash
    expect(pod.limiter.key('api', hash, 0, startWallMs)?.key).toEqual(['b'])
    expect(pod.limiter.key('api', 'ffffffffffffffff', 0, startWallMs)).toBeNull()
    expect(pod.limiter.resetKey('api', ['b'], 0, startWallMs)).toBe(true)
    expect(pod.check(0, 0, 'api', 'b')?.remaining).toBe(3)
    expect(pod.limiter.resetKey('api', ['z'], 0, startWallMs)).toBe(false)
  })

  it('counts decisions per interface from 0', () => {
    const pod = limiterOf(ruleOf('api', { limit: limitOf(3, 1000) }))
    const name = ruleOf('api').name
    expect(pod.limiter.decisions(name)?.denied).toEqual({ proxy: 0, check: 0, auth: 0 })
    pod.allowed(0, 5)
    pod.check(0, 1)
    expect(pod.limiter.decisions(name)?.allowed.proxy).toBe(3)
    expect(pod.limiter.decisions(name)?.denied).toEqual({ proxy: 2, check: 1, auth: 0 })
  })
})
