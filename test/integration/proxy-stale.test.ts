import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { KeyPart, RuleSpec } from '../../src/limiter/rule.js'
import type { ProxyOptions } from '../../src/proxy/options.js'
import { allowed, api, limited } from '../helpers/fake-engine.js'
import { plainRule } from '../helpers/plain-rule.js'
import { closeWorld, httpUpstream, startProxy } from '../helpers/proxy-world.js'

afterEach(closeWorld)

const byUser: readonly KeyPart[] = [[{ kind: 'header', name: 'x-user' }]]

function staleRule(key: readonly KeyPart[], staleForMs: number): RuleSpec {
  return {
    ...plainRule,
    name: api,
    match: { path: '/a/**', method: null, header: null },
    key,
    limit: { count: 1, windowMs: 1000, calendar: null },
    onExceeded: { status: 429, headers: {}, body: null, staleForMs },
  }
}

interface World {
  readonly key?: readonly KeyPart[]
  readonly staleForMs?: number
  readonly options?: Partial<ProxyOptions>
}

/** An upstream that answers, and a switch to deny everything from then on. */
async function world(
  answer: (req: IncomingMessage, res: ServerResponse) => void,
  { key = byUser, staleForMs = 60_000, options = {} }: World = {},
) {
  const upstream = await httpUpstream(answer)
  const { url, engine, proxy } = await startProxy(upstream.target, options)
  const spec = staleRule(key, staleForMs)
  engine.spec = spec
  engine.ruleSet = { allow: [], deny: [], rules: [spec], hash: 1 }
  engine.verdict = () => allowed
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${url}${path}`, { method, headers: { 'x-user': 'me', ...headers } })
  return { get, proxy, deny: () => (engine.verdict = () => limited) }
}

describe('staleFor', () => {
  it('serves the last 200 instead of a 429, marked and aged', async () => {
    let count = 0
    const { get, deny, proxy } = await world((_req, res) => {
      res.setHeader('X-Theirs', 'kept')
      res.end(`answer ${++count} ü`)
    })
    await (await get('/a/1?b=c')).text()
    await (await get('/a/1?b=c')).text()
    deny()
    const response = await get('/a/1?b=c')
    expect(response.status).toBe(200)
    expect(response.headers.get('x-ratelimit-degraded')).toBe('stale')
    expect(response.headers.get('age')).toMatch(/^\d+$/)
    expect(response.headers.get('x-theirs')).toBe('kept')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(await response.text()).toBe('answer 2 ü')
    expect(proxy.stats.stale).toBe(1)
  })

  it('denies where another key, host, target, method or path is asked for', async () => {
    const { get, deny } = await world((_req, res) => res.end('ok'))
    await (await get('/a/1')).text()
    await (await get('/other')).text()
    deny()
    expect((await get('/a/1', { 'x-user': 'you' })).status).toBe(429)
    expect((await get('/a/1?x')).status).toBe(429)
    expect((await get('/a/1', {}, 'POST')).status).toBe(429)
    expect((await get('/other')).status).toBe(429)
    expect((await get('/a/1')).status).toBe(200)
  })

  it('keeps apart what the response varies by', async () => {
    const { get, deny } = await world((req, res) => {
      res.setHeader('Vary', 'Accept-Language')
      res.end(`in ${req.headers['accept-language']}`)
    })
    await (await get('/a/1', { 'accept-language': 'de' })).text()
    deny()
    expect((await get('/a/1', { 'accept-language': 'en' })).status).toBe(429)
    expect(await (await get('/a/1', { 'accept-language': 'de' })).text()).toBe('in de')
  })

  it.each([
    ['a cookie', { 'Set-Cookie': 'a=b' }, 200],
    ['private', { 'Cache-Control': 'max-age=5, private' }, 200],
    ['no-store', { 'Cache-Control': 'no-store' }, 200],
    ['Vary: *', { Vary: '*' }, 200],
    ['another status', {}, 404],
  ])('keeps no response with %s', async (_name, headers, status) => {
    const { get, deny } = await world((_req, res) => {
      res.writeHead(status, headers)
      res.end('secret')
    })
    await (await get('/a/1')).text()
    deny()
    expect((await get('/a/1')).status).toBe(429)
  })

  it('keeps nothing for a request with Authorization unless the key has it', async () => {
    const mine = { authorization: 'Bearer me' }
    const plain = await world((_req, res) => res.end('mine'))
    await (await plain.get('/a/1', mine)).text()
    plain.deny()
    expect((await plain.get('/a/1', mine)).status).toBe(429)
    expect((await plain.get('/a/1')).status).toBe(429)

    const keyed = await world((_req, res) => res.end('mine'), {
      key: [[{ kind: 'header', name: 'authorization' }]],
    })
    await (await keyed.get('/a/1', mine)).text()
    keyed.deny()
    expect(await (await keyed.get('/a/1', mine)).text()).toBe('mine')
    expect((await keyed.get('/a/1', { authorization: 'Bearer you' })).status).toBe(429)
  })

  it('serves nothing older than staleFor', async () => {
    const { get, deny } = await world((_req, res) => res.end('ok'), { staleForMs: 50 })
    await (await get('/a/1')).text()
    deny()
    await new Promise(resolve => setTimeout(resolve, 80))
    expect((await get('/a/1')).status).toBe(429)
  })

  it('stays within its memory: the oldest go, the too long never come', async () => {
    const { get, deny } = await world(
      (req, res) => res.end('x'.repeat(req.url === '/a/long' ? 3_000 : 1_000)),
      { options: { stale: { bytesMax: 3_000, entryBytesMax: 2_000 } } },
    )
    for (const path of ['/a/1', '/a/2', '/a/3', '/a/long']) await (await get(path)).text()
    deny()
    expect((await get('/a/1')).status).toBe(429)
    expect((await get('/a/long')).status).toBe(429)
    expect(await (await get('/a/3')).text()).toHaveLength(1_000)
  })

  it('keeps no response that was cut', async () => {
    let cut = false
    const { get, deny } = await world((_req, res) => {
      res.writeHead(200, { 'content-length': 10 })
      res.write('half')
      setTimeout(() => res.destroy(), 20)
      cut = true
    })
    await expect(get('/a/1').then(response => response.text())).rejects.toThrow()
    expect(cut).toBe(true)
    deny()
    expect((await get('/a/1')).status).toBe(429)
  })
})
