import { afterEach, describe, expect, it } from 'vitest'
import { type HttpWorld, openHttpWorld, rulesOf } from '../helpers/http-world.js'

let world: HttpWorld

afterEach(() => world.close())

const auth = (headers: Record<string, string>, query = ''): Promise<Response> =>
  fetch(`${world.api}/v1/auth${query}`, { headers })

describe('POST /v1/check against the real core', () => {
  it('admits the burst, denies the next, and says when to come back', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [ip], limit: 2/1s, burst: 5 }]')
    const answers = []
    for (let index = 0; index < 8; index++) {
      answers.push(await world.check({ rule: 'api', key: '192.0.2.1' }))
    }
    expect(answers.map(({ allowed }) => allowed)).toEqual([
      ...Array(5).fill(true),
      false,
      false,
      false,
    ])
    expect(answers[0]).toMatchObject({ rule: 'api', limit: 2, remaining: 4, reason: 'allowed' })
    expect(answers[7]).toMatchObject({ remaining: 0, retryAfterMs: 500, reason: 'limited' })
    world.clock.nowMs += 1500
    const later = []
    for (let index = 0; index < 4; index++) {
      later.push((await world.check({ rule: 'api', key: '192.0.2.1' })).allowed)
    }
    expect(later).toEqual([true, true, true, false])
  })

  it('a peek consumes nothing, a negative cost gives back, never above full', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 10/1h }]')
    expect(await world.check({ rule: 'api', cost: 0 })).toMatchObject({ remaining: 10 })
    expect(await world.check({ rule: 'api', cost: 4 })).toMatchObject({ remaining: 6 })
    expect(await world.check({ rule: 'api', cost: -3 })).toMatchObject({ remaining: 9 })
    expect(await world.check({ rule: 'api', cost: -100 })).toMatchObject({ remaining: 10 })
    expect(await world.check({ rule: 'api', cost: 11 })).toMatchObject({ allowed: false })
    expect(await world.check({ rule: 'api', cost: 0 })).toMatchObject({ remaining: 10 })
  })

  it('a key, a described request and forward-auth meet in one counter', async () => {
    world = await openHttpWorld(
      'rules: [{ name: api, match: { path: "/api/**" }, key: ["header:x-api-key | ip"], limit: 10/1h }]',
    )
    await world.check({ rule: 'api', key: 'k1' })
    await world.check({ request: { path: '/api/x?y=1', headers: { 'X-Api-Key': 'k1' } } })
    await auth({ 'x-forwarded-uri': '/api', 'x-api-key': 'k1' })
    expect(await world.check({ rule: 'api', key: 'k1', cost: 0 })).toMatchObject({ remaining: 7 })
    const elsewhere = { request: { path: '/other', headers: { 'X-Api-Key': 'k1' } } }
    expect(await world.check(elsewhere)).toMatchObject({ allowed: true, reason: 'no-rule' })
  })

  it('a batch is charged in order', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 2/1h }]')
    const batch = await world.check([{ rule: 'api' }, { rule: 'api' }, { rule: 'api' }])
    expect(batch).toMatchObject([{ remaining: 1 }, { remaining: 0 }, { allowed: false }])
  })

  it('a failure rule counts checks, and does not hold them open', async () => {
    world = await openHttpWorld(
      'rules: [{ name: login, key: [ip], limit: 2/15m, algorithm: sliding-log, count: failure }]',
    )
    const answers = []
    for (let index = 0; index < 3; index++) {
      answers.push((await world.check({ rule: 'login', key: '192.0.2.1' })).allowed)
    }
    expect(answers).toEqual([true, true, false])
  })

  it('deny is 403 for auth, allow is not counted', async () => {
    world = await openHttpWorld(
      `allow: [{ path: /healthz }]
deny: [{ cidr: 198.51.100.0/24 }]
rules: [{ name: api, key: [global], limit: 1/1h }]`,
    )
    expect((await auth({ 'x-forwarded-for': '198.51.100.7' })).status).toBe(403)
    const healthz = await auth({ 'x-forwarded-uri': '/healthz', 'x-forwarded-for': '192.0.2.1' })
    expect(healthz.status).toBe(200)
    expect(await world.check({ rule: 'api', cost: 0 })).toMatchObject({ remaining: 1 })
  })
})

describe('ANY /v1/auth against the real core', () => {
  it('limits the forwarded client, with headers that agree with the body', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [ip], limit: 1/10s }]')
    const headers = { 'x-forwarded-for': '192.0.2.7' }
    const first = await auth(headers)
    expect(first.status).toBe(200)
    expect(first.headers.get('ratelimit-policy')).toBe('"api";q=1;w=10')
    expect(first.headers.get('ratelimit')).toBe('"api";r=0;t=10')
    const second = await auth(headers)
    expect(second.status).toBe(429)
    const retryAfter = second.headers.get('retry-after')
    expect(Number(retryAfter)).toBeGreaterThanOrEqual(10)
    expect(second.headers.get('ratelimit')).toBe(`"api";r=0;t=${retryAfter}`)
    expect(await second.json()).toMatchObject({ retryAfter: Number(retryAfter), limit: 1 })
    expect((await auth(headers, '?denyStatus=403')).status).toBe(403)
    expect((await auth({ 'x-forwarded-for': '192.0.2.8' })).status).toBe(200)
    world.clock.nowMs += Number(retryAfter) * 1000
    expect((await auth(headers)).status).toBe(200)
  })

  it('logs the first denial of a client with a hash, never its key', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: ["header:x-api-key"], limit: 1/1h }]')
    const headers = { 'x-api-key': 'very-secret' }
    for (let index = 0; index < 5; index++) await auth(headers)
    const lines = world.lines.filter(line => line.msg === 'client hit its limit')
    expect(lines).toEqual([
      expect.objectContaining({ rule: 'api', keyHash: expect.stringMatching(/^[0-9a-f]{16}$/) }),
    ])
    expect(JSON.stringify(world.lines)).not.toContain('very-secret')
  })
})

describe('a reload', () => {
  it('keeps what was used and applies the new numbers', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 10/1h }]')
    await world.check({ rule: 'api', cost: 8 })
    world.engine.applyRules(rulesOf('rules: [{ name: api, key: [global], limit: 20/1h }]'))
    expect(await world.check({ rule: 'api', cost: 0 })).toMatchObject({ limit: 20, remaining: 12 })
    world.engine.applyRules(rulesOf('rules: [{ name: api, key: [global], limit: 5/1h }]'))
    expect(await world.check({ rule: 'api' })).toMatchObject({ allowed: false, remaining: 0 })
  })
})
