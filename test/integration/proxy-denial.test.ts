import { afterEach, describe, expect, it } from 'vitest'
import type { RuleSpec } from '../../src/limiter/rule.js'
import { allowed, limited } from '../helpers/fake-engine.js'
import {
  closeWorld,
  eventually,
  httpUpstream,
  RawClient,
  startProxy,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

async function world(options: Parameters<typeof startProxy>[1] = {}) {
  const reached: string[] = []
  const upstream = await httpUpstream((req, res) => {
    reached.push(req.url ?? '')
    req.resume()
    req.on('end', () => res.end('ok'))
  })
  return { ...(await startProxy(upstream.target, options)), reached }
}

describe('proxy denial', () => {
  it('answers 429 with everything that a client needs to come back', async () => {
    const { url, engine, reached } = await world()
    engine.verdict = () => limited
    const response = await fetch(`${url}/x`)
    expect(response.status).toBe(429)
    expect(response.headers.get('retry-after')).toBe('2')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('ratelimit')).toBe('"api";r=0;t=2')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(await response.json()).toMatchObject({
      type: expect.stringContaining('quota-exceeded'),
      status: 429,
      'violated-policies': ['api'],
      error: 'Rate limit exceeded',
      retryAfter: 2,
      limit: 100,
    })
    expect(reached).toEqual([])
  })

  it('leaves the connection usable after a denial, bodies included', async () => {
    const { port, engine, reached } = await world()
    engine.verdict = facts => (facts.method === 'POST' ? limited : allowed)
    const client = new RawClient(port)
    client.send(`POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`)
    client.send(`POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`)
    client.send('y'.repeat(100_000))
    client.send('GET /c HTTP/1.1\r\nHost: a\r\n\r\n')
    const received = await client.text('ok')
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 429',
      'HTTP/1.1 429',
      'HTTP/1.1 200',
    ])
    expect(reached).toEqual(['/c'])
  })

  it('closes after a denial whose body is too long to be read away', async () => {
    const { port, engine } = await world()
    engine.verdict = () => limited
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\nxxxxx')
    await client.whenClosed()
    expect(client.received).toMatch(/^HTTP\/1\.1 429 .*Connection: close\r\n/s)
  })

  it('closes after denying a chunked body, and takes nothing in it for a request', async () => {
    const { port, engine, reached } = await world()
    engine.verdict = facts => (facts.method === 'POST' ? limited : allowed)
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    await client.text('429')
    client.send('21\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n0\r\n\r\n')
    await client.whenClosed()
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 429'])
    expect(reached).toEqual([])
  })

  it('decides before the body when the client expects 100-continue', async () => {
    const { port, engine } = await world()
    engine.verdict = () => limited
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
    await client.whenClosed()
    expect(client.received).toMatch(/^HTTP\/1\.1 429/)
    expect(client.received).not.toContain('100 Continue')
  })

  it('answers HEAD with the head of the denial only', async () => {
    const { port, engine } = await world()
    engine.verdict = () => limited
    const client = new RawClient(port).send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n')
    const received = await client.text('\r\n\r\n')
    expect(received).toMatch(/^HTTP\/1\.1 429 .*Content-Length: [1-9]\d*\r\n\r\n$/s)
  })

  it('denies a WebSocket handshake with a plain 429', async () => {
    const { port, engine } = await world()
    engine.verdict = () => limited
    const client = new RawClient(port).send(
      'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    expect(await client.text('"limit":100')).toMatch(/^HTTP\/1\.1 429/)
    client.send('GET /ws HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until(text => text.split('HTTP/1.1 429').length === 3)
  })

  it('answers 403 to a client of the deny list', async () => {
    const { url, engine, reached } = await world()
    engine.verdict = () => ({ ...limited, reason: 'blocked', rule: null, violated: [] })
    const response = await fetch(url)
    expect(response.status).toBe(403)
    expect(response.headers.has('retry-after')).toBe(false)
    expect(reached).toEqual([])
  })

  it('answers with the status, headers and body of onExceeded', async () => {
    const { url, engine } = await world()
    engine.verdict = () => limited
    engine.spec = {
      onExceeded: {
        status: 503,
        headers: { 'X-Why': 'rule {{rule}}' },
        body: '{"again":{{retryAfter}}}',
        staleForMs: 0,
      },
    } as unknown as RuleSpec
    const response = await fetch(url)
    expect(response.status).toBe(503)
    expect(response.headers.get('x-why')).toBe('rule api')
    expect(await response.json()).toEqual({ again: 2 })
  })

  it('holds a request back for the delay of a leaky bucket', async () => {
    const { url, engine, reached } = await world()
    engine.verdict = () => ({ ...allowed, delayMs: 150 })
    const startMs = performance.now()
    const response = await fetch(url, { method: 'POST', body: 'held' })
    expect(response.status).toBe(200)
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(145)
    expect(reached).toEqual(['/'])
  })

  it('sends nothing upstream when the client leaves during the delay', async () => {
    const { port, engine, reached, proxy } = await world()
    engine.owes = true
    engine.verdict = () => ({ ...allowed, delayMs: 60_000 })
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually(() => engine.decided.length === 1, 'the request is decided')
    client.socket.destroy()
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled).toEqual([{ status: 0, aborted: true, cost: undefined }])
    expect(reached).toEqual([])
    expect(proxy.stats.inflight).toBe(0)
  })

  it('refuses an ambiguous path with 400 where a rule looks at paths, and passes it elsewhere', async () => {
    const { url, engine, reached } = await world()
    expect((await fetch(`${url}/a%2Fb`)).status).toBe(200)
    engine.looksAt.path = true
    expect((await fetch(`${url}/a%2Fb`)).status).toBe(400)
    expect((await fetch(`${url}/a/b`)).status).toBe(200)
    expect(reached).toEqual(['/a%2Fb', '/a/b'])
  })

  it('waits for a token to be verified, body and all', async () => {
    const upstream = await httpUpstream((req, res) => {
      req.pipe(res)
    })
    const verified: string[] = []
    const { url, engine } = await startProxy(
      upstream.target,
      {},
      {
        verifyToken: (authorization, ip) => {
          verified.push(`${authorization} ${ip}`)
          return new Promise(resolve => setTimeout(() => resolve({ sub: 'me' }), 30))
        },
      },
    )
    engine.looksAt.jwt = true
    const response = await fetch(url, {
      method: 'POST',
      body: 'hello',
      headers: { authorization: 'Bearer x' },
    })
    expect(await response.text()).toBe('hello')
    expect(verified).toEqual(['Bearer x 127.0.0.1'])
    expect(engine.decided[0]?.jwt).toEqual({ sub: 'me' })
  })
})
