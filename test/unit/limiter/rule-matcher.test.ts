import { describe, expect, it } from 'vitest'
import { createMatchResult, type MatchResult } from '../../../src/limiter/match-result.js'
import type { RequestFacts } from '../../../src/limiter/request-facts.js'
import type { KeySource, LimitSpec, RuleSet } from '../../../src/limiter/rule.js'
import { parseCost, RuleMatcher } from '../../../src/limiter/rule-matcher.js'
import {
  header,
  ip,
  listEntry,
  matchSpec,
  requestFacts,
  ruleSet,
  ruleSpec,
} from '../../helpers/rule-specs.js'

const perSecond = (count: number): LimitSpec => ({ count, windowMs: 1000, calendar: null })
const jwtSub: KeySource = { kind: 'jwt', name: 'sub' }

function match(rules: RuleSet, facts: RequestFacts): MatchResult {
  const out = createMatchResult(rules.rules.length)
  new RuleMatcher(rules).match(facts, out)
  return out
}

function names(rules: RuleSet, facts: RequestFacts): string[] {
  const out = match(rules, facts)
  return Array.from(out.rule.slice(0, out.count), index => rules.rules[index]!.name)
}

describe('which rules apply', () => {
  const rules = ruleSet([
    ruleSpec({ name: 'posts', match: matchSpec({ method: ['POST', 'PUT'] }) }),
    ruleSpec({ name: 'api', match: matchSpec({ path: '/api/**' }) }),
    ruleSpec({ name: 'prod', match: matchSpec({ header: { 'x-env': 'prod', 'x-a': '1' } }) }),
    ruleSpec({ name: 'all' }),
  ])

  it('takes every rule of which all given parts match, in order', () => {
    expect(names(rules, requestFacts({ path: '/api/x' }))).toEqual(['api', 'all'])
    expect(names(rules, requestFacts({ path: '/api', method: 'PUT' }))).toEqual([
      'posts',
      'api',
      'all',
    ])
    expect(names(rules, requestFacts({ headers: { 'x-env': 'prod', 'x-a': '1' } }))).toEqual([
      'prod',
      'all',
    ])
    expect(names(rules, requestFacts({ headers: { 'x-env': 'prod' } }))).toEqual(['all'])
    expect(names(rules, requestFacts({ headers: { 'x-env': 'PROD', 'x-a': '1' } }))).toEqual([
      'all',
    ])
  })

  it('stops at a matching rule that says stop', () => {
    const stopping = ruleSet([
      ruleSpec({ name: 'login', match: matchSpec({ path: '/login' }), stop: true }),
      ruleSpec({ name: 'rest' }),
    ])
    expect(names(stopping, requestFacts({ path: '/login/' }))).toEqual(['login'])
    expect(names(stopping, requestFacts({ path: '/other' }))).toEqual(['rest'])
  })

  it('does not stop at a rule that is skipped for want of its key', () => {
    const skipping = ruleSet([
      ruleSpec({ name: 'keyed', key: [[header('x-key')]], missing: 'skip', stop: true }),
      ruleSpec({ name: 'rest' }),
    ])
    expect(names(skipping, requestFacts())).toEqual(['rest'])
    expect(names(skipping, requestFacts({ headers: { 'x-key': 'a' } }))).toEqual(['keyed'])
  })

  it('reuses one result without leftovers of the last request', () => {
    const matcher = new RuleMatcher(rules)
    const out = createMatchResult(4)
    matcher.match(requestFacts({ path: '/api', method: 'POST' }), out)
    expect(out.count).toBe(3)
    matcher.match(requestFacts(), out)
    expect([out.count, out.rule[0], out.outcome]).toEqual([1, 3, 'rules'])
  })
})

describe('allow and deny', () => {
  const rules = ruleSet([ruleSpec()], {
    allow: [
      listEntry({ cidr: '192.0.2.0/24' }),
      listEntry({ path: '/healthz' }),
      listEntry({ header: { 'x-internal': 'yes' } }),
    ],
    deny: [listEntry({ cidr: '0.0.0.0/0' }), listEntry({ path: '/admin/**', method: ['POST'] })],
  })
  const outcome = (facts: RequestFacts) => match(rules, facts).outcome

  it('exempts by network and by path, and allow wins over deny', () => {
    expect(outcome(requestFacts({ ip: '192.0.2.9' }))).toBe('exempt')
    expect(outcome(requestFacts({ ip: '203.0.113.1', path: '/healthz' }))).toBe('exempt')
    expect(outcome(requestFacts({ ip: '203.0.113.1' }))).toBe('blocked')
  })

  it('exempts by header only callers that are trusted', () => {
    const headers = { 'x-internal': 'yes' }
    expect(outcome(requestFacts({ ip: '203.0.113.1', headers }))).toBe('blocked')
    expect(outcome(requestFacts({ ip: '203.0.113.1', headers, peerTrusted: true }))).toBe('exempt')
  })

  it('wants all parts of an entry', () => {
    const at = { ip: '2001:db8::1', path: '/admin/x' }
    expect(outcome(requestFacts({ ...at, method: 'POST' }))).toBe('blocked')
    expect(outcome(requestFacts({ ...at, method: 'GET' }))).toBe('rules')
  })
})

describe('an ambiguous path', () => {
  it.each([
    ['a match', ruleSet([ruleSpec({ match: matchSpec({ path: '/x' }) })])],
    ['a key', ruleSet([ruleSpec({ key: [[{ kind: 'path' }]] })])],
    ['a deny entry', ruleSet([], { deny: [listEntry({ path: '/x' })] })],
    [
      'a cost',
      ruleSet([
        ruleSpec({
          cost: {
            fallback: 1,
            match: [{ match: matchSpec({ path: '/x' }), cost: 2 }],
            requestHeader: null,
            responseHeader: null,
          },
        }),
      ]),
    ],
  ])('is refused where %s looks at the path', (_what, rules) => {
    expect(match(rules, requestFacts({ path: null })).outcome).toBe('ambiguous-path')
  })

  it('is not exempted by an allow entry with a path, and not refused for it', () => {
    const rules = ruleSet([ruleSpec()], { allow: [listEntry({ path: '/healthz' })] })
    expect(match(rules, requestFacts({ path: null }))).toMatchObject({ outcome: 'rules', count: 1 })
  })

  it('is let through where nothing looks at the path', () => {
    expect(match(ruleSet([ruleSpec()]), requestFacts({ path: null })).count).toBe(1)
  })
})

describe('the key', () => {
  const key = (parts: readonly KeySource[][], facts: RequestFacts, missing = 'ip' as const) =>
    match(ruleSet([ruleSpec({ key: parts, missing })]), facts).key[0]

  it('takes the first alternative that is present', () => {
    const parts = [[header('x-api-key'), jwtSub, ip]]
    expect(key(parts, requestFacts({ headers: { 'x-api-key': 'c7' } }))).toBe(
      '16:header:x-api-key2:c7',
    )
    expect(key(parts, requestFacts({ jwt: { sub: 'al' } }))).toBe('7:jwt:sub2:al')
    expect(key(parts, requestFacts())).toBe('2:ip9:192.0.2.7')
  })

  it('never lets a header spell an address', () => {
    const parts = [[header('x-api-key'), ip]]
    const forged = key(parts, requestFacts({ headers: { 'x-api-key': '192.0.2.7' } }))
    expect(forged).not.toBe(key(parts, requestFacts()))
  })

  it('joins the parts of a compound key so that no value runs into the next', () => {
    const parts = [[header('a')], [header('b')]]
    const one = key(parts, requestFacts({ headers: { a: 'x', b: 'yz' } }))
    const other = key(parts, requestFacts({ headers: { a: 'xy', b: 'z' } }))
    expect(one).toBe('8:header:a1:x8:header:b2:yz')
    expect(one).not.toBe(other)
  })

  it('falls back to the address, is skipped or denied as missing says', () => {
    const rules = ruleSet([
      ruleSpec({ name: 'a', key: [[header('x')]], missing: 'ip' }),
      ruleSpec({ name: 'b', key: [[header('x')]], missing: 'skip' }),
      ruleSpec({ name: 'c', key: [[header('x')], [ip]], missing: 'deny' }),
    ])
    const out = match(rules, requestFacts())
    expect(out.count).toBe(2)
    expect(Array.from(out.rule.slice(0, 2))).toEqual([0, 2])
    expect(out.key.slice(0, 2)).toEqual(['2:ip9:192.0.2.7', ''])
    expect(Array.from(out.missing.slice(0, 2))).toEqual([0, 1])
  })

  it('is the same for all addresses of one IPv6 /64', () => {
    const rules = ruleSet([ruleSpec()])
    const matcher = new RuleMatcher(rules)
    const out = createMatchResult(1)
    const seen = new Set<string>()
    for (let host = 1; host <= 200; host++) {
      matcher.match(requestFacts({ ip: `2001:db8::${host.toString(16)}` }), out)
      seen.add(out.key[0]!)
    }
    expect([...seen]).toEqual(['2:ip13:2001:db8::/64'])
  })

  it('is right for many clients of one matcher, whatever its cache holds', () => {
    const matcher = new RuleMatcher(ruleSet([ruleSpec({ key: [[header('x'), ip]] })]))
    const out = createMatchResult(1)
    for (let client = 0; client < 3000; client++) {
      const value = `client-${(client * 7919) % 500}`
      const facts = requestFacts(
        client % 3 === 0 ? { ip: value } : { headers: { x: value }, ip: value },
      )
      matcher.match(facts, out)
      const source = client % 3 === 0 ? '2:ip' : '8:header:x'
      expect(out.key[0]).toBe(`${source}${value.length}:${value}`)
    }
  })
})

describe('keyOf', () => {
  const rules = ruleSet([
    ruleSpec({ name: 'api', key: [[header('x-api-key'), ip]] }),
    ruleSpec({ name: 'pair', key: [[header('a')], [ip]] }),
    ruleSpec({ name: 'all', key: [[{ kind: 'global' }]] }),
    ruleSpec({ name: 'mixed', key: [[{ kind: 'global' }], [header('a')]] }),
  ])
  const matcher = new RuleMatcher(rules)

  it('is the key of a request with the same values', () => {
    const out = createMatchResult(4)
    const headers = { 'x-api-key': 'c7', a: 'x' }
    matcher.match(requestFacts({ headers, ip: '2001:db8::9' }), out)
    expect(matcher.keyOf(0, ['c7'])).toBe(out.key[0])
    expect(matcher.keyOf(1, ['x', '2001:db8::5'])).toBe(out.key[1])
    expect(matcher.keyOf(2, [])).toBe(out.key[2])
    expect(matcher.keyOf(2, ['ignored'])).toBe(out.key[2])
    expect(matcher.keyOf(3, ['x'])).toBe(out.key[3])
    expect(matcher.keyOf(3, ['ignored', 'x'])).toBe(out.key[3])
  })

  it('says how many values it needs', () => {
    expect([0, 1, 2, 3].map(rule => matcher.valuesExpected(rule))).toEqual([1, 2, 0, 1])
  })
})

describe('tiers', () => {
  const limits = { free: perSecond(10), gold: perSecond(100) }
  const tier = { by: [jwtSub, header('x-plan')], fallback: 'free', limits }
  const rules = ruleSet([ruleSpec({ limit: null, tier, key: [[header('x-plan')]] })])
  const limitFor = (facts: RequestFacts) => match(rules, facts).limit[0]?.count

  it('go by the first source that is present, and by the default when that names none', () => {
    expect(limitFor(requestFacts({ headers: { 'x-plan': 'gold' } }))).toBe(100)
    expect(limitFor(requestFacts({ jwt: { sub: 'free' }, headers: { 'x-plan': 'gold' } }))).toBe(10)
    expect(limitFor(requestFacts({ headers: { 'x-plan': 'platinum' } }))).toBe(10)
    expect(limitFor(requestFacts({ headers: { 'x-plan': 'constructor' } }))).toBe(10)
    expect(limitFor(requestFacts())).toBe(10)
  })

  it('are found for a spelled-out key where the key is what names the tier', () => {
    const matcher = new RuleMatcher(rules)
    expect(matcher.limitOf(0, ['gold'])?.count).toBe(100)
    expect(matcher.limitOf(0, ['other'])?.count).toBe(10)
  })

  it('leave a concurrency rule without a limit', () => {
    const inflight = ruleSet([ruleSpec({ limit: null, concurrency: 5 })])
    expect(match(inflight, requestFacts()).limit[0]).toBeNull()
  })
})

describe('costs', () => {
  const cost = {
    fallback: 2,
    match: [
      { match: matchSpec({ path: '/v1/reports' }), cost: 10 },
      { match: matchSpec({ path: '/v1/**' }), cost: 0.5 },
    ],
    requestHeader: 'x-cost',
    responseHeader: null,
  }
  const rules = ruleSet([ruleSpec({ cost })])
  const costFor = (facts: RequestFacts) => match(rules, facts).cost[0]

  it('are those of the first entry that matches, else the default', () => {
    expect(costFor(requestFacts({ path: '/v1/reports' }))).toBe(10)
    expect(costFor(requestFacts({ path: '/v1/other' }))).toBe(0.5)
    expect(costFor(requestFacts())).toBe(2)
  })

  it('are named by a header of trusted callers only', () => {
    const headers = { 'x-cost': '7' }
    expect(costFor(requestFacts({ headers }))).toBe(2)
    expect(costFor(requestFacts({ headers, peerTrusted: true }))).toBe(7)
  })

  it.each(['', '-5', 'NaN', 'Infinity', '1e3', '0x10', '1,2', ' 1', '1000000001', '1.'])(
    'pass over the header value %j',
    text => {
      expect(parseCost(text)).toBeNull()
      expect(costFor(requestFacts({ headers: { 'x-cost': text }, peerTrusted: true }))).toBe(2)
    },
  )

  it('may have a fraction and be nothing', () => {
    expect(['0', '0.25', '1000000000'].map(parseCost)).toEqual([0, 0.25, 1e9])
  })
})

describe('explain', () => {
  const rules = ruleSet(
    [
      ruleSpec({ name: 'posts', match: matchSpec({ method: ['POST'] }) }),
      ruleSpec({ name: 'prod', match: matchSpec({ header: { 'x-env': 'prod' } }) }),
      ruleSpec({ name: 'keyed', key: [[header('x-api-key')]], missing: 'skip' }),
      ruleSpec({ name: 'api', key: [[header('x-api-key')], [ip]], stop: true }),
      ruleSpec({ name: 'rest' }),
    ],
    { allow: [listEntry({ path: '/healthz' })] },
  )
  const matcher = new RuleMatcher(rules)

  it('says for each rule why it applies or not, and agrees with match', () => {
    const facts = requestFacts({ path: '/x', headers: { 'x-env': 'test' } })
    const told = matcher.explain(facts)
    expect(told.outcome).toBe('rules')
    expect(told.rules.map(({ matched, because }) => [matched, because])).toEqual([
      [false, 'method GET is not POST'],
      [false, 'header x-env has another value'],
      [false, 'no header:x-api-key; missing: skip'],
      [true, 'key from no header:x-api-key, so ip, ip'],
      [false, 'not reached: rule api says stop'],
    ])
    const out = match(rules, facts)
    expect(told.rules.filter(({ matched }) => matched).map(({ rule }) => rule)).toEqual(
      Array.from(out.rule.slice(0, out.count)),
    )
    expect(told.rules[3]?.key).toBe(out.key[0])
    expect(told.rules[3]?.keyParts).toEqual(['192.0.2.7', '192.0.2.7'])
  })

  it('says which entry exempts a request', () => {
    const told = matcher.explain(requestFacts({ path: '/healthz' }))
    expect([told.outcome, told.because]).toEqual(['exempt', 'allow entry: path /healthz'])
    expect(told.rules.every(({ matched }) => !matched)).toBe(true)
  })
})
