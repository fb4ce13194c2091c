import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { trustedNetworks } from '../../../src/http/client-address.js'
import { addForwardAuth } from '../../../src/http/forward-auth.js'
import { createServer } from '../../../src/http/server.js'
import type { RequestFacts } from '../../../src/limiter/request-facts.js'
import type { RuleName } from '../../../src/vocabulary.js'
import {
  decision,
  denied,
  type FakeCore,
  fakeEngine,
  ruleSet,
  ruleSpec,
} from '../../helpers/fake-core.js'

function setup(): { app: FastifyInstance; core: FakeCore } {
  const { core, engine } = fakeEngine()
  const app = createServer(pino({ level: 'silent' }))
  addForwardAuth(app, {
    engine,
    trustedProxies: trustedNetworks(['10.0.0.0/8']),
    jwt: null,
    headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'delta' },
    random: () => 0,
  })
  return { app, core }
}

async function factsOf(options: InjectOptions): Promise<RequestFacts> {
  const { app, core } = setup()
  const response = await app.inject({ url: '/v1/auth', ...options })
  expect(response.statusCode).toBe(200)
  return core.decided[0]!.facts
}

const read = ({ method, path, query, host, ip }: RequestFacts): object => ({
  method,
  path,
  query,
  host,
  ip,
})

describe('ANY /v1/auth', () => {
  it.each([
    [
      'Traefik and Caddy',
      {
        'x-forwarded-method': 'POST',
        'x-forwarded-uri': '/api/x?q=1',
        'x-forwarded-host': 'shop.test',
        'x-forwarded-for': '192.0.2.9',
      },
      { method: 'POST', path: '/api/x', query: 'q=1', host: 'shop.test', ip: '192.0.2.9' },
    ],
    [
      'nginx',
      { 'x-original-method': 'PUT', 'x-original-uri': '/a?b', 'x-real-ip': '192.0.2.8' },
      { method: 'PUT', path: '/a', query: 'b', host: 'localhost', ip: '192.0.2.8' },
    ],
    [
      'ingress-nginx',
      { 'x-original-url': 'https://shop.test/a?b', 'x-original-method': 'GET' },
      { method: 'GET', path: '/a', query: 'b', host: 'shop.test', ip: '127.0.0.1' },
    ],
    [
      'X-Forwarded before X-Original',
      {
        'x-forwarded-uri': '/f',
        'x-original-uri': '/o',
        'x-forwarded-for': '192.0.2.1',
        'x-real-ip': '192.0.2.2',
      },
      { method: 'GET', path: '/f', query: '', host: 'localhost', ip: '192.0.2.1' },
    ],
  ])('reads the original request of %s', async (_proxy, headers, expected) => {
    expect(read(await factsOf({ headers: { host: 'localhost', ...headers } }))).toEqual(expected)
  })

  it('reads Envoy’s request behind its path prefix', async () => {
    const facts = await factsOf({ method: 'DELETE', url: '/v1/auth/api/x?q=1' })
    expect(read(facts)).toMatchObject({ method: 'DELETE', path: '/api/x', query: 'q=1' })
  })

  it('believes nothing of an untrusted peer', async () => {
    const facts = await factsOf({
      remoteAddress: '192.0.2.66',
      method: 'GET',
      headers: {
        host: 'own.test',
        'x-forwarded-method': 'POST',
        'x-forwarded-uri': '/api',
        'x-original-url': 'https://other.test/x',
        'x-forwarded-host': 'other.test',
        'x-forwarded-for': '1.1.1.1',
        'x-real-ip': '1.1.1.1',
      },
    })
    expect(read(facts)).toEqual({
      method: 'GET',
      path: '/',
      query: '',
      host: 'own.test',
      ip: '192.0.2.66',
    })
    expect(facts.peerTrusted).toBe(false)
  })

  it('believes a trusted proxy, and walks over trusted hops', async () => {
    const facts = await factsOf({
      remoteAddress: '10.0.0.1',
      headers: { 'x-forwarded-for': '8.8.8.8, 192.0.2.9, 10.4.4.4' },
    })
    expect(facts.ip).toBe('192.0.2.9')
    expect(facts.peerTrusted).toBe(true)
  })

  it('a loopback proxy’s request lines are believed, its clients’ cost headers are not', async () => {
    expect((await factsOf({ headers: { 'x-forwarded-for': '192.0.2.9' } })).peerTrusted).toBe(false)
  })

  it('allows with 200, an empty body and the same headers as the proxy', async () => {
    const { app, core } = setup()
    core.next = decision({ keyHash: '00112233445566ff' })
    const response = await app.inject({ url: '/v1/auth' })
    expect(response.statusCode).toBe(200)
    expect(response.body).toBe('')
    expect(response.headers).toMatchObject({
      'ratelimit-policy': '"api";q=100;w=1',
      ratelimit: '"api";r=42;t=1',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '42',
      'x-ratelimit-reset': '1',
      'x-ratelimit-decision': 'allow',
      'x-ratelimit-rule': 'api',
      'x-ratelimit-key-hash': '00112233445566ff',
    })
    expect(core.decided[0]?.via).toBe('auth')
  })

  it('denies with 429, Retry-After, the headers and a problem', async () => {
    const { app, core } = setup()
    core.next = denied()
    const response = await app.inject({ url: '/v1/auth' })
    expect(response.statusCode).toBe(429)
    expect(response.headers).toMatchObject({
      'retry-after': '2',
      ratelimit: '"api";r=0;t=2',
      'cache-control': 'no-store',
      'content-type': 'application/problem+json; charset=utf-8',
      'x-ratelimit-denied': '1',
      'x-ratelimit-decision': 'deny',
    })
    expect(response.json()).toMatchObject({ status: 429, retryAfter: 2 })
  })

  it('takes another status for nginx, and only one that refuses', async () => {
    const { app, core } = setup()
    core.next = denied()
    const response = await app.inject({ url: '/v1/auth?denyStatus=403' })
    expect(response.statusCode).toBe(403)
    expect(response.json()).toMatchObject({ status: 403 })
    expect(response.headers['x-ratelimit-denied']).toBe('1')
    for (const status of ['200', '302', '4', 'abc', '']) {
      expect((await app.inject({ url: `/v1/auth?denyStatus=${status}` })).statusCode).toBe(400)
    }
    core.next = decision()
    expect((await app.inject({ url: '/v1/auth?denyStatus=403' })).statusCode).toBe(200)
  })

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const)(
    'answers %s',
    async method => {
      const { app, core } = setup()
      const headers = { 'x-forwarded-method': 'GET' }
      const allowed = await app.inject({ method, url: '/v1/auth', headers })
      core.next = denied()
      const refused = await app.inject({ method, url: '/v1/auth', headers })
      expect([allowed.statusCode, refused.statusCode]).toEqual([200, 429])
      expect(refused.headers['retry-after']).toBe('2')
      if (method === 'HEAD') expect(refused.body).toBe('')
    },
  )

  it('a copied content type without a body, or a body of any kind, is no matter', async () => {
    const { app } = setup()
    const headers = { 'content-type': 'application/json' }
    const bare = await app.inject({ method: 'POST', url: '/v1/auth', headers })
    const broken = await app.inject({ method: 'POST', url: '/v1/auth', headers, payload: '{"a":' })
    expect([bare.statusCode, broken.statusCode]).toEqual([200, 200])
  })

  it('marks shadow denials and degraded decisions on what it allows', async () => {
    const { app, core } = setup()
    core.next = decision({ shadowViolated: ['next'] as RuleName[] })
    expect((await app.inject({ url: '/v1/auth' })).headers['x-ratelimit-decision']).toBe('shadow')
    core.next = decision({ reason: 'degraded', rule: null })
    const degraded = await app.inject({ url: '/v1/auth' })
    expect(degraded.statusCode).toBe(200)
    expect(degraded.headers['x-ratelimit-degraded']).toBe('1')
  })

  it('uses the status, headers and body of the rule', async () => {
    const { app, core } = setup()
    const onExceeded = { status: 420, headers: { 'X-A': 'b' }, body: 'wait', staleForMs: 0 }
    core.ruleSet = ruleSet(ruleSpec('api', { onExceeded }))
    core.next = denied()
    const response = await app.inject({ url: '/v1/auth' })
    expect([response.statusCode, response.body, response.headers['x-a']]).toEqual([
      420,
      'wait',
      'b',
    ])
  })

  it('holds a request back as long as its leaky bucket says', async () => {
    const { app, core } = setup()
    core.next = decision({ delayMs: 30 })
    const began = performance.now()
    await app.inject({ url: '/v1/auth' })
    expect(performance.now() - began).toBeGreaterThanOrEqual(28)
  })

  it('refuses an ambiguous original path where rules look at paths', async () => {
    const { app, core } = setup()
    core.ruleSet = ruleSet(ruleSpec('api', { match: { path: '/a', method: null, header: null } }))
    const headers = { 'x-forwarded-uri': '/a%2fb' }
    expect((await app.inject({ url: '/v1/auth', headers })).statusCode).toBe(400)
    expect(core.decided).toEqual([])
  })

  it('settles at once', async () => {
    const { app, core } = setup()
    core.next = decision({ settlement: { open: true } })
    await app.inject({ url: '/v1/auth' })
    expect(core.settled).toHaveLength(1)
  })
})
