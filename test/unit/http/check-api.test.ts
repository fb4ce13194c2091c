import type { FastifyInstance } from 'fastify'
import { SignJWT } from 'jose'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { addCheckApi } from '../../../src/http/check-api.js'
import { trustedNetworks } from '../../../src/http/client-address.js'
import { JwtVerifier } from '../../../src/http/jwt-verifier.js'
import { createServer } from '../../../src/http/server.js'
import type { RuleName } from '../../../src/vocabulary.js'
import {
  decision,
  denied,
  type FakeCore,
  fakeEngine,
  ruleSet,
  ruleSpec,
} from '../../helpers/fake-core.js'

const secret = 'a shared secret of more than thirty-two bytes'

function setup(): { app: FastifyInstance; core: FakeCore } {
  const { core, engine, clock } = fakeEngine()
  const app = createServer(pino({ level: 'silent' }))
  const jwt = new JwtVerifier(
    { jwks: null, secret, issuer: null, audience: null },
    { clock, warn: () => {} },
  )
  addCheckApi(app, { engine, trustedProxies: trustedNetworks(['10.0.0.0/8']), jwt })
  return { app, core }
}

async function check(
  app: FastifyInstance,
  body: unknown,
  options: { remoteAddress?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: Record<string, unknown>; type: string | undefined }> {
  const response = await app.inject({
    method: 'POST',
    url: '/v1/check',
    headers: { 'content-type': 'application/json', ...options.headers },
    payload: typeof body === 'string' ? body : JSON.stringify(body),
    remoteAddress: options.remoteAddress ?? '127.0.0.1',
  })
  return {
    status: response.statusCode,
    body: response.json() as Record<string, unknown>,
    type: response.headers['content-type']?.toString(),
  }
}

describe('POST /v1/check', () => {
  it('answers an allowed check with exactly the members of the contract', async () => {
    const { app, core } = setup()
    const response = await check(app, { rule: 'api', key: 'client-7', cost: 1 })
    expect(response.status).toBe(200)
    expect(response.body).toEqual({
      allowed: true,
      rule: 'api',
      limit: 100,
      remaining: 42,
      resetAfterMs: 580,
      retryAfterMs: 0,
      reason: 'allowed',
    })
    expect(core.checked).toEqual([{ rule: 'api', key: ['client-7'], cost: 1 }])
  })

  it('a denial is still status 200', async () => {
    const { app, core } = setup()
    core.next = denied()
    const response = await check(app, { rule: 'api', key: 'client-7' })
    expect(response.status).toBe(200)
    expect(response.body).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 1200 })
  })

  it('a leaky bucket says how long to wait', async () => {
    const { app, core } = setup()
    core.ruleSet = ruleSet(ruleSpec('api', { algorithm: 'leaky-bucket' }))
    core.next = decision({ delayMs: 99.5 })
    expect((await check(app, { rule: 'api', key: 'a' })).body).toMatchObject({ delayMs: 100 })
  })

  it('an array is answered by an array, in order', async () => {
    const { app, core } = setup()
    let count = 0
    core.next = () => decision({ remaining: 10 - count++ })
    const response = await check(app, [
      { rule: 'api', key: 'a' },
      { request: { method: 'GET', path: '/x', headers: {}, ip: '192.0.2.7' } },
      { rule: 'api', key: 'b', cost: 0 },
    ])
    expect(response.status).toBe(200)
    expect(response.body).toMatchObject([{ remaining: 10 }, { remaining: 9 }, { remaining: 8 }])
    expect((await check(app, [])).body).toEqual([])
  })

  it('a described request becomes facts', async () => {
    const { app, core } = setup()
    await check(app, {
      request: {
        method: 'post',
        path: '/api/../x?q=1',
        headers: { 'X-Api-Key': 'k', Host: 'shop:80' },
        ip: '::ffff:10.0.0.7',
      },
    })
    const facts = core.decided[0]?.facts
    expect(core.decided[0]?.via).toBe('check')
    expect({
      method: facts?.method,
      path: facts?.path,
      query: facts?.query,
      host: facts?.host,
      ip: facts?.ip,
      peerTrusted: facts?.peerTrusted,
      key: facts?.header('x-api-key'),
    }).toEqual({
      method: 'POST',
      path: '/x',
      query: 'q=1',
      host: 'shop',
      ip: '10.0.0.7',
      peerTrusted: true,
      key: 'k',
    })
  })

  it('without an address, the caller itself is the client', async () => {
    const { app, core } = setup()
    await check(app, { request: {} }, { remoteAddress: '::ffff:192.0.2.3' })
    const facts = core.decided[0]?.facts
    expect([facts?.method, facts?.path, facts?.ip]).toEqual(['GET', '/', '192.0.2.3'])
  })

  it('no rule matched: numbers are null, not zero', async () => {
    const { app, core } = setup()
    core.next = decision({ rule: null, reason: 'no-rule', limit: 0, remaining: 0 })
    expect((await check(app, { request: { path: '/' } })).body).toMatchObject({
      allowed: true,
      rule: null,
      limit: null,
      remaining: null,
      reason: 'no-rule',
    })
  })

  it.each([
    ['malformed JSON', '{"rule":', 400],
    ['an empty body', '', 400],
    ['no object', '7', 400],
    ['null', 'null', 400],
    ['neither form', {}, 400],
    ['both forms', { rule: 'api', key: 'a', request: {} }, 400],
    ['an unknown member', { rule: 'api', key: 'a', burst: 5 }, 400],
    ['an unknown member of a request', { request: { uri: '/' } }, 400],
    ['a rule that is no string', { rule: 5, key: 'a' }, 400],
    ['a cost that is a string', { rule: 'api', key: 'a', cost: '1' }, 400],
    ['a cost beyond 1e9', { rule: 'api', key: 'a', cost: 1e9 + 1 }, 400],
    ['a cost beyond -1e9', { rule: 'api', key: 'a', cost: -1e9 - 1 }, 400],
    ['a cost that overflows', '{"rule":"api","key":"a","cost":1e400}', 400],
    ['no key where one is needed', { rule: 'api' }, 400],
    ['more parts than the key has', { rule: 'api', key: ['a', 'b'] }, 400],
    ['a prototype in the body', '{"rule":"api","key":"a","__proto__":{"x":1}}', 400],
    ['a header that is a number', { request: { headers: { a: 1 } } }, 400],
    ['an address that is none', { request: { ip: 'somewhere' } }, 400],
    ['no number', '{"rule":"api","key":"a","cost":NaN}', 400],
    ['an unknown rule', { rule: 'nope', key: 'a' }, 404],
    ['too large a batch', Array.from({ length: 1001 }, () => ({ rule: 'api', key: 'a' })), 400],
  ])('%s is a problem and charges nothing', async (_what, body, status) => {
    const { app, core } = setup()
    const response = await check(app, body)
    expect(response.status).toBe(status)
    expect(response.type).toContain('application/problem+json')
    expect(response.body).toMatchObject({ status, detail: expect.any(String) })
    expect([...core.checked, ...core.decided]).toEqual([])
  })

  it('one bad check of a batch charges none of it, and is named', async () => {
    const { app, core } = setup()
    const response = await check(app, [
      { rule: 'api', key: 'a' },
      { rule: 'nope', key: 'a' },
    ])
    expect(response.status).toBe(404)
    expect(response.body.detail).toBe('check 1: there is no rule "nope"')
    expect(core.checked).toEqual([])
  })

  it('tells whoever does not post what to do', async () => {
    const { app } = setup()
    const response = await app.inject({ method: 'GET', url: '/v1/check' })
    expect(response.statusCode).toBe(405)
    expect(response.headers.allow).toBe('POST')
    expect(response.headers['content-type']).toContain('application/problem+json')
  })

  it.each([
    ['127.0.0.1', 200],
    ['::1', 200],
    ['10.0.0.1', 403],
    ['192.0.2.1', 403],
  ])('a negative cost from %s: %d', async (remoteAddress, status) => {
    const { app } = setup()
    const response = await check(app, { rule: 'api', key: 'a', cost: -1 }, { remoteAddress })
    expect(response.status).toBe(status)
  })

  it.each([
    ['a global key needs none', [[{ kind: 'global' }]], undefined, ['']],
    ['a global key ignores one', [[{ kind: 'global' }]], 'x', ['']],
    [
      'a compound key is an array',
      [[{ kind: 'ip' }], [{ kind: 'method' }]],
      ['1.2.3.4', 'GET'],
      ['1.2.3.4', 'GET'],
    ],
    ['a global part may be left out', [[{ kind: 'global' }], [{ kind: 'ip' }]], 'a', ['a']],
    ['or be given', [[{ kind: 'global' }], [{ kind: 'ip' }]], ['', 'a'], ['', 'a']],
  ] as const)('%s', async (_what, key, given, asked) => {
    const { app, core } = setup()
    core.ruleSet = ruleSet(ruleSpec('api', { key }))
    const response = await check(app, {
      rule: 'api',
      ...(given === undefined ? {} : { key: given }),
    })
    expect(response.status).toBe(200)
    expect(core.checked[0]?.key).toEqual(asked)
  })

  it('an ambiguous path is refused where rules look at paths, and only there', async () => {
    const { app, core } = setup()
    const body = { request: { path: '/a%2Fb' } }
    expect((await check(app, body)).status).toBe(200)
    core.ruleSet = ruleSet(
      ruleSpec('api', { match: { path: '/a/**', method: null, header: null } }),
    )
    expect((await check(app, body)).status).toBe(400)
  })

  it('a token is verified where rules look at claims, and its forgery is absent', async () => {
    const { app, core } = setup()
    core.ruleSet = ruleSet(ruleSpec('api', { key: [[{ kind: 'jwt', name: 'sub' }]] }))
    const token = await new SignJWT({ sub: 'alice' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode(secret))
    const described = (authorization: string): object => ({
      request: { path: '/', headers: { Authorization: authorization } },
    })
    expect(
      (await check(app, [described(`Bearer ${token}`), described('Bearer a.b.c')])).status,
    ).toBe(200)
    expect(core.decided.map(({ facts }) => facts.jwt?.sub)).toEqual(['alice', undefined])
  })

  it.each([
    ['all', 200],
    ['success', 200],
    ['failure', 500],
  ] as const)(
    'settles at once so that the charge stands: count %s as %d',
    async (count, status) => {
      const { app, core } = setup()
      core.ruleSet = ruleSet(ruleSpec('api', { count }))
      core.next = decision({ settlement: { open: true } })
      await check(app, { rule: 'api', key: 'a' })
      expect(core.settled.map(({ outcome }) => outcome.status)).toEqual([status])
    },
  )

  it('names several violated rules, and shadow rules that would have denied', async () => {
    const { app, core } = setup()
    core.next = denied({
      violated: ['api', 'all'] as RuleName[],
      shadowViolated: ['next'] as RuleName[],
    })
    expect((await check(app, { rule: 'api', key: 'a' })).body).toMatchObject({
      violated: ['api', 'all'],
      shadowViolated: ['next'],
    })
  })

  it('takes JSON without a content type, but not from a web page of another site', async () => {
    const { app } = setup()
    const body = { rule: 'api', key: 'a' }
    expect((await check(app, body, { headers: { 'content-type': 'text/plain' } })).status).toBe(200)
    const foreign = { origin: 'https://evil.test', 'content-type': 'text/plain' }
    expect((await check(app, body, { headers: foreign })).status).toBe(403)
    expect((await check(app, body, { headers: { host: 'evil.test' } })).status).toBe(403)
  })

  it('what is not there is a 404 problem', async () => {
    const { app } = setup()
    const response = await app.inject({ method: 'GET', url: '/v1/nothing?x=1' })
    expect(response.statusCode).toBe(404)
    expect(response.json()).toMatchObject({
      status: 404,
      detail: 'There is no GET /v1/nothing here.',
    })
  })
})
