import { afterEach, describe, expect, it } from 'vitest'
import { type HttpWorld, openHttpWorld } from '../helpers/http-world.js'

let world: HttpWorld

afterEach(() => world.close())

const rules =
  'rules: [{ name: api, match: { path: "/api/**" }, key: ["header:x-key"], limit: 5/1h }]'

async function get(path: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(world.admin + path)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function post(path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(world.admin + path, {
    method: 'POST',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return (await response.json()) as Record<string, unknown>
}

describe('admin against the real core', () => {
  it('lists this pod as an alive member under its configured name', async () => {
    world = await openHttpWorld(rules)
    expect((await get('/members')).body).toMatchObject({
      members: [
        {
          name: 'pod-a',
          address: '127.0.0.1:7946',
          state: 'alive',
          self: true,
          meta: { node: 'pod-a', version: '0.1.0', draining: false },
        },
      ],
    })
  })

  it('shows a key by its value and by its hash, hits, denials and the own part', async () => {
    world = await openHttpWorld(rules)
    for (let index = 0; index < 7; index++) await world.check({ rule: 'api', key: 'a/b c' })
    const byValue = await get('/limits/api/keys/a%2Fb%20c')
    expect(byValue.body).toMatchObject({
      rule: 'api',
      limit: 5,
      remaining: 0,
      hits: 7,
      denied: 2,
      own: { consumed: 5, returned: 0, ageMs: 0 },
      peers: [],
    })
    const byHash = await get(`/limits/api/keys/${String(byValue.body.hash)}`)
    expect(byHash.body).toEqual(byValue.body)
    expect(JSON.stringify(byValue.body)).not.toContain('a/b c')
    expect((await get('/limits/api/keys/other')).status).toBe(404)
  })

  it('finds a key by the hash that forward-auth answered with', async () => {
    world = await openHttpWorld(rules)
    const headers = { 'x-forwarded-uri': '/api/x', 'x-key': 'k' }
    const answer = await fetch(`${world.api}/v1/auth`, { headers })
    const hash = answer.headers.get('x-ratelimit-key-hash')
    expect((await get(`/limits/api/keys/${hash}`)).body).toMatchObject({ hash, hits: 1 })
  })

  it('orders the top keys, and reveals them only when told to', async () => {
    world = await openHttpWorld(rules, { revealKeys: true })
    for (const [key, times] of [
      ['quiet', 1],
      ['loud', 9],
      ['busy', 5],
    ] as const) {
      for (let index = 0; index < times; index++) await world.check({ rule: 'api', key })
    }
    const byHits = (await get('/limits/top?by=hits&n=2')).body.keys
    expect(byHits).toMatchObject([
      { key: ['loud'], hits: 9 },
      { key: ['busy'], hits: 5 },
    ])
    expect((await get('/limits/top?rule=api&by=denied&n=1')).body.keys).toMatchObject([
      { key: ['loud'], denied: 4 },
    ])
  })

  it('a reset gives the whole limit back', async () => {
    world = await openHttpWorld(rules)
    for (let index = 0; index < 6; index++) await world.check({ rule: 'api', key: 'k' })
    expect(await post('/limits/api/keys/k/reset')).toEqual({ reset: true, rule: 'api' })
    expect(await world.check({ rule: 'api', key: 'k', cost: 0 })).toMatchObject({ remaining: 5 })
  })

  it('explains a request and consumes nothing', async () => {
    world = await openHttpWorld(rules)
    await world.check({ rule: 'api', key: 'k' })
    const request = { method: 'GET', path: '/api/x', headers: { 'X-Key': 'k' }, ip: '192.0.2.1' }
    const matched = await post('/explain', request)
    expect(matched).toMatchObject({
      allowed: true,
      rules: [{ rule: 'api', matched: true, key: { remaining: 4 }, verdict: { allowed: true } }],
    })
    expect(await post('/explain', { ...request, path: '/other' })).toMatchObject({
      allowed: true,
      rules: [{ rule: 'api', matched: false, because: expect.stringContaining('/other') }],
    })
    expect(await world.check({ rule: 'api', key: 'k', cost: 0 })).toMatchObject({ remaining: 4 })
  })

  it('explains why a limited request would be denied', async () => {
    world = await openHttpWorld(rules)
    for (let index = 0; index < 5; index++) await world.check({ rule: 'api', key: 'k' })
    const request = { path: '/api/x', headers: { 'x-key': 'k' } }
    expect(await post('/explain', request)).toMatchObject({
      allowed: false,
      reason: 'limited by api',
      rules: [{ key: { own: { node: 'pod-a' } }, verdict: { allowed: false, remaining: 0 } }],
    })
  })

  it('draining turns readiness off and tells the fleet, and goes on serving', async () => {
    world = await openHttpWorld(rules)
    world.readiness.listenersUp()
    world.readiness.rulesSettled()
    world.clock.nowMs += 2_000
    expect((await fetch(`${world.telemetry}/readyz`)).status).toBe(200)
    expect(await post('/drain')).toEqual({ draining: true })
    expect((await fetch(`${world.telemetry}/readyz`)).status).toBe(503)
    expect((await get('/members')).body).toMatchObject({ members: [{ meta: { draining: true } }] })
    expect(await world.check({ rule: 'api', key: 'k' })).toMatchObject({ allowed: true })
  })
})
