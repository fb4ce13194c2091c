import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { type AdminOptions, addAdmin, type ReloadOutcome } from '../../../src/http/admin.js'
import { trustedNetworks } from '../../../src/http/client-address.js'
import { Readiness } from '../../../src/http/readiness.js'
import { createServer } from '../../../src/http/server.js'
import type { MemberName, RuleName } from '../../../src/vocabulary.js'
import {
  type FakeCore,
  fakeEngine,
  keyView,
  memberView,
  ruleSet,
  ruleSpec,
} from '../../helpers/fake-core.js'

interface Setup {
  readonly app: FastifyInstance
  readonly core: FakeCore
  readonly calls: string[]
  reloadOutcome: ReloadOutcome
}

function setup(parts: Partial<AdminOptions> = {}): Setup {
  const { core, engine, clock } = fakeEngine()
  const app = createServer(pino({ level: 'silent' }))
  const calls: string[] = []
  const state = { reloadOutcome: { ok: true, hash: 7 } as ReloadOutcome }
  addAdmin(app, {
    engine,
    readiness: new Readiness({ clock, synced: () => true }),
    node: 'pod-a',
    version: '0.1.0',
    revealKeys: false,
    trustedProxies: trustedNetworks([]),
    jwt: null,
    config: () => ({ node: { name: 'pod-a' } }),
    reload: async () => {
      calls.push('reload')
      return state.reloadOutcome
    },
    rulesAccepted: () => true,
    drain: () => calls.push('drain'),
    setLogLevel: level => {
      calls.push(`level ${level}`)
      return level === 'debug'
    },
    ...parts,
  })
  return Object.assign(state, { app, core, calls })
}

const get = (app: FastifyInstance, url: string, headers = {}) => app.inject({ url, headers })
const post = (app: FastifyInstance, url: string, options: InjectOptions = {}) =>
  app.inject({
    method: 'POST',
    url,
    ...options,
    headers: { host: 'localhost', ...options.headers },
  })

describe('GET /members', () => {
  it('lists members with the contract’s names', async () => {
    const { app, core } = setup()
    const foreign = memberView({
      name: 'go-peer',
      wireName: 'go-peer' as MemberName,
      address: { host: '2001:db8::2', port: 7946 },
      state: 'suspect',
      self: false,
      meta: null,
    })
    core.memberViews = [memberView(), foreign]
    expect((await get(app, '/members')).json()).toEqual({
      members: [
        { ...memberView(), address: '10.0.0.1:7946' },
        { ...foreign, address: '[2001:db8::2]:7946' },
      ],
    })
  })
})

describe('GET /limits/top', () => {
  it('passes rule, order and number on, and hides raw keys', async () => {
    const { app, core } = setup()
    core.keyViews = [keyView({ denied: 1, hash: '01' }), keyView({ denied: 2, hash: '02' })]
    const response = await get(app, '/limits/top?rule=api&by=denied&n=1')
    expect(response.json()).toMatchObject({ by: 'denied', keys: [{ hash: '02', denied: 2 }] })
    expect(response.body).not.toContain('secret-client')
  })

  it('shows raw keys with revealKeys', async () => {
    const { app } = setup({ revealKeys: true })
    expect((await get(app, '/limits/top')).json().keys[0].key).toEqual(['secret-client'])
  })

  it.each([
    ['/limits/top?by=cost', 400],
    ['/limits/top?n=0', 400],
    ['/limits/top?n=1001', 400],
    ['/limits/top?n=1.5', 400],
    ['/limits/top?rule=nope', 404],
    ['/limits/top?rule=api&rule=b', 400],
  ])('%s is %d', async (url, status) => {
    expect((await get(setup().app, url)).statusCode).toBe(status)
  })
})

describe('GET /limits/RULE/keys/KEY', () => {
  it('finds a key by its hash, with the own and each peer’s part', async () => {
    const { app } = setup()
    const response = await get(app, '/limits/api/keys/00112233445566ff')
    expect(response.json()).toMatchObject({
      rule: 'api',
      hash: '00112233445566ff',
      own: { node: 'pod-a', consumed: 40, ageMs: 0 },
      peers: [{ node: 'pod-b', consumed: 20, ageMs: 12 }],
    })
    expect(response.json()).not.toHaveProperty('key')
  })

  it.each([
    ['a plain key', 'secret-client', ['secret-client']],
    ['an escaped key', 'a%2Fb%20c', ['a/b c']],
    ['a compound key in segments', 'tenant/GET', ['tenant', 'GET']],
    ['a trailing slash', 'tenant/', ['tenant']],
    ['16 hex digits that are a key', 'ffffffffffffffff', ['ffffffffffffffff']],
  ])('finds %s', async (_what, path, key) => {
    const { app, core } = setup()
    core.keyViews = [keyView({ key })]
    expect((await get(app, `/limits/api/keys/${path}`)).statusCode).toBe(200)
  })

  it('a global rule has one key, whatever it is called', async () => {
    const { app, core } = setup()
    core.ruleSet = ruleSet(ruleSpec('all', { key: [[{ kind: 'global' }]] }))
    core.keyViews = [keyView({ rule: 'all' as RuleName, key: [''] })]
    expect((await get(app, '/limits/all/keys/global')).statusCode).toBe(200)
  })

  it.each([
    ['/limits/api/keys/unknown', 404],
    ['/limits/nope/keys/a', 404],
    ['/limits/api/keys/%E0%A4%A', 400],
  ])('%s is %d', async (url, status) => {
    expect((await get(setup().app, url)).statusCode).toBe(status)
  })
})

describe('POST /limits/RULE/keys/KEY/reset', () => {
  it('resets by key and by hash', async () => {
    const { app, core } = setup()
    const byKey = await post(app, '/limits/api/keys/secret-client/reset')
    expect(byKey.json()).toEqual({ reset: true, rule: 'api' })
    await post(app, '/limits/api/keys/00112233445566FF/reset')
    expect(core.resets).toEqual([
      { rule: 'api', key: ['secret-client'] },
      { rule: 'api', key: '00112233445566ff' },
    ])
  })

  it('says so when there is no such key, or nothing of that name to do', async () => {
    const { app } = setup()
    expect((await post(app, '/limits/api/keys/unknown/reset')).statusCode).toBe(404)
    expect((await post(app, '/limits/api/keys/secret-client')).statusCode).toBe(404)
    expect((await post(app, '/limits/api/keys/secret-client/double')).statusCode).toBe(404)
  })
})

describe('POST /explain', () => {
  it.each([
    ['as it is', { method: 'GET', path: '/x', ip: '192.0.2.1' }],
    ['wrapped', { request: { method: 'GET', path: '/x', ip: '192.0.2.1' } }],
  ])('takes a request %s and consumes nothing', async (_how, payload) => {
    const { app, core } = setup()
    const response = await post(app, '/explain', { payload })
    expect(response.json()).toMatchObject({
      allowed: true,
      rules: [{ rule: 'api', because: 'GET /x matches', key: { hash: '00112233445566ff' } }],
    })
    expect(response.body).not.toContain('secret-client')
    expect(core.decided).toEqual([])
  })

  it('refuses what is no request', async () => {
    const { app } = setup()
    expect((await post(app, '/explain', { payload: { uri: '/' } })).statusCode).toBe(400)
    const malformed = await post(app, '/explain', { payload: '{' })
    expect(malformed.json()).toMatchObject({ status: 400, detail: 'The body is not valid JSON.' })
    expect((await post(app, '/explain')).statusCode).toBe(400)
  })
})

describe('operations', () => {
  it('reloads, and hands on why it could not', async () => {
    const state = setup()
    expect((await post(state.app, '/-/reload')).json()).toEqual({ reloaded: true, hash: 7 })
    state.reloadOutcome = { ok: false, errors: ['rules.yaml:3:5: unknown key "limt"'] }
    const refused = await post(state.app, '/-/reload')
    expect(refused.statusCode).toBe(400)
    expect(refused.json()).toMatchObject({ errors: ['rules.yaml:3:5: unknown key "limt"'] })
    expect(state.calls).toEqual(['reload', 'reload'])
  })

  it('drains, with or without a body', async () => {
    const { app, calls } = setup()
    expect((await post(app, '/drain')).json()).toEqual({ draining: true })
    const headers = { 'content-type': 'application/json' }
    expect((await post(app, '/drain', { headers, payload: '' })).statusCode).toBe(200)
    expect((await post(app, '/drain', { headers, payload: '{}' })).statusCode).toBe(200)
    expect(calls).toEqual(['drain', 'drain', 'drain'])
  })

  it('changes the log level', async () => {
    const { app, calls } = setup()
    expect((await post(app, '/logging?level=debug')).statusCode).toBe(200)
    expect((await post(app, '/logging?level=loud')).statusCode).toBe(400)
    expect((await post(app, '/logging')).statusCode).toBe(400)
    expect(calls).toEqual(['level debug', 'level loud'])
  })

  it('is not to be had by GET', async () => {
    const { app, calls } = setup()
    for (const url of ['/-/reload', '/drain', '/explain', '/logging?level=debug']) {
      expect((await get(app, url)).statusCode).toBe(404)
    }
    expect(calls).toEqual([])
  })

  it.each([
    ['an Origin of another site', { origin: 'https://evil.test' }, 403],
    ['an opaque Origin', { origin: 'null' }, 403],
    ['a rebound Host', { host: 'evil.test' }, 403],
    ['another machine’s address as Host', { host: '10.9.9.9' }, 403],
    ['another port as Origin', { host: 'localhost:7991', origin: 'http://localhost:3000' }, 403],
    ['its own Origin', { host: 'localhost:7991', origin: 'http://localhost:7991' }, 200],
    ['a forwarded port', { host: '127.0.0.1:9000' }, 200],
    ['IPv6 loopback', { host: '[::1]:7991' }, 200],
  ])('%s: %d', async (_what, headers, status) => {
    const { app, calls } = setup()
    expect((await post(app, '/drain', { headers })).statusCode).toBe(status)
    expect(calls).toHaveLength(status === 200 ? 1 : 0)
  })
})

describe('representation', () => {
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

  it('is JSON unless the client prefers HTML', async () => {
    const { app } = setup()
    expect((await get(app, '/members')).headers['content-type']).toContain('application/json')
    expect((await get(app, '/config')).json()).toMatchObject({
      version: '0.1.0',
      config: { node: { name: 'pod-a' } },
      rules: { rules: [{ name: 'api' }] },
    })
    const page = await get(app, '/members', browser)
    expect(page.headers['content-type']).toContain('text/html')
    expect(page.body).toContain('pod-a')
  })

  it('escapes what it shows', async () => {
    const { app, core } = setup()
    core.memberViews = [memberView({ name: '<script>alert(1)</script>' })]
    expect((await get(app, '/members', browser)).body).not.toContain('<script>alert')
  })

  it('the status page is one self-contained document whose own script alone may run', async () => {
    const { app } = setup()
    const page = await get(app, '/', browser)
    expect(page.headers['content-type']).toContain('text/html')
    expect(page.body).toMatch(/^<!doctype html>/)
    expect(page.body).not.toMatch(/(src|href)=/)
    expect(page.headers['content-security-policy']).toMatch(/script-src 'sha256-[^']+'/)
    expect(page.headers['content-security-policy']).not.toContain("script-src 'unsafe-inline'")
  })

  it('the overview says that the rules were refused when they were last read', async () => {
    const { app } = setup({ rulesAccepted: () => false })
    const overview = (await get(app, '/', { accept: 'application/json' })).json()
    expect(overview.lastReloadSuccessful).toBe(false)
  })

  it('the overview says whether all pods have the same rules', async () => {
    const { app, core } = setup()
    const json = { accept: 'application/json' }
    expect((await get(app, '/', json)).json()).toMatchObject({
      node: 'pod-a',
      lastReloadSuccessful: true,
      configAgreed: true,
      rules: [{ name: 'api', limit: '100 per 1 s', keys: 9 }],
    })
    const other = { ...memberView().meta!, configHash: 1 }
    core.memberViews = [memberView(), memberView({ name: 'pod-b', self: false, meta: other })]
    expect((await get(app, '/', json)).json().configAgreed).toBe(false)
    core.memberViews = [memberView(), memberView({ state: 'dead', self: false, meta: other })]
    expect((await get(app, '/', json)).json().configAgreed).toBe(true)
  })

  it('is never cached, framed or sniffed', async () => {
    expect((await get(setup().app, '/members')).headers).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
    })
  })
})
