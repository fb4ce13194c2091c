/** Rules, core and proxy as one, through real sockets; time stands still unless a test moves it. */
import { type ClientHttp2Stream, createServer as createH2, connect as h2Connect } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { CounterTable } from '../../src/counters/counter-table.js'
import { trustedNetworks } from '../../src/http/client-address.js'
import type { HeaderOptions } from '../../src/http/rate-limit-headers.js'
import type { ProxyOptions, UpstreamTarget } from '../../src/proxy/options.js'
import { CoreWorld } from '../helpers/core-world.js'
import {
  closeWorld,
  eventually,
  httpUpstream,
  onClose,
  RawClient,
  startProxy,
} from '../helpers/proxy-world.js'

afterEach(async () => {
  vi.restoreAllMocks()
  await closeWorld()
})

interface PolicyWorld {
  readonly world: CoreWorld
  readonly url: string
  readonly port: number
  /** Requests that the upstream saw. */
  readonly reached: string[]
}

async function open(
  rules: string,
  options: Partial<ProxyOptions> = {},
  keysMax = 1000,
): Promise<PolicyWorld> {
  const reached: string[] = []
  const { target } = await httpUpstream((request, response) => {
    reached.push(`${request.method} ${request.url}`)
    request.resume()
    response.end('served')
  })
  return { ...(await openTo(target, rules, options, keysMax)), reached }
}

async function openTo(
  target: UpstreamTarget,
  rules: string,
  options: Partial<ProxyOptions> = {},
  keysMax = 1000,
): Promise<Omit<PolicyWorld, 'reached'>> {
  const world = new CoreWorld(rules, keysMax)
  const { url, port } = await startProxy(target, options, { engine: world.engine })
  return { world, url, port }
}

async function statuses(count: number, send: (n: number) => Promise<Response>): Promise<number[]> {
  const seen: number[] = []
  for (let n = 0; n < count; n++) {
    const response = await send(n)
    await response.arrayBuffer()
    seen.push(response.status)
  }
  return seen
}

const passed = (seen: readonly number[]): number => seen.filter(status => status === 200).length

describe('who is asking', () => {
  const rules = 'rules: [{ name: api, key: [ip], limit: 10/1h }]'

  it('200 requests with rotated X-Forwarded-For from an untrusted peer count as one client', async () => {
    const { url, world } = await open(rules)
    const seen = await statuses(200, n =>
      fetch(url, {
        headers: {
          'x-forwarded-for': `203.0.113.${n}`,
          'x-real-ip': `203.0.113.${n}`,
          forwarded: `for=203.0.113.${n}`,
        },
      }),
    )
    expect(passed(seen)).toBe(10)
    expect(world.engine.stats().rules[0]?.keys).toBe(1)
  })

  it('and what they claim before a trusted proxy’s own word counts for nothing', async () => {
    const networks = trustedNetworks(['127.0.0.0/8'])
    const { url } = await open(rules, { trusts: address => networks.contains(address) })
    const seen = await statuses(200, n =>
      fetch(url, { headers: { 'x-forwarded-for': `203.0.113.${n}, 198.51.100.7` } }),
    )
    expect(passed(seen)).toBe(10)
  })

  it('200 addresses of one /64 count as one client, another /64 as another', async () => {
    const networks = trustedNetworks(['127.0.0.0/8'])
    const { url, world } = await open(rules, { trusts: address => networks.contains(address) })
    const from = (address: string) => fetch(url, { headers: { 'x-forwarded-for': address } })
    const seen = await statuses(200, n => from(`2001:db8:1:2:${n.toString(16)}::${n + 1}`))
    expect(passed(seen)).toBe(10)
    expect(world.engine.stats().rules[0]?.keys).toBe(1)
    expect((await from('2001:db8:1:3::1')).status).toBe(200)
  })

  it('an IPv4 address counts the same mapped into IPv6', async () => {
    const networks = trustedNetworks(['127.0.0.0/8'])
    const { url } = await open(rules, { trusts: address => networks.contains(address) })
    const spellings = ['192.0.2.7', '::ffff:192.0.2.7', '::ffff:c000:207', '192.0.2.7:4711']
    const seen = await statuses(20, n =>
      fetch(url, { headers: { 'x-forwarded-for': spellings[n % 4] ?? '' } }),
    )
    expect(passed(seen)).toBe(10)
  })

  it('a header cannot spell somebody’s address', async () => {
    const { url } = await open('rules: [{ name: api, key: ["header:x-id | ip"], limit: 2/1h }]')
    const named = () => fetch(url, { headers: { 'x-id': '127.0.0.1' } })
    expect(await statuses(3, named)).toEqual([200, 200, 429])
    expect(await statuses(3, () => fetch(url))).toEqual([200, 200, 429])
  })
})

describe('what the client reads', () => {
  const rules = 'rules: [{ name: api, key: [ip], limit: 3/1m }]'
  const families: readonly HeaderOptions[] = [
    { ietf: 'draft-11', legacy: 'github', reset: 'delta' },
    { ietf: 'off', legacy: 'x-ratelimit', reset: 'epoch' },
    { ietf: 'off', legacy: 'off', reset: 'off' },
  ]

  const limitHeaders = (response: Response) =>
    Object.fromEntries([...response.headers].filter(([name]) => name.includes('ratelimit')))

  it('GitHub’s family with Used and Resource, reset as a delta', async () => {
    const { url } = await open(rules, { headers: families[0] as HeaderOptions })
    expect(limitHeaders(await fetch(url))).toEqual({
      ratelimit: '"api";r=2;t=20',
      'ratelimit-policy': '"api";q=3;w=60',
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '2',
      'x-ratelimit-reset': '20',
      'x-ratelimit-resource': 'api',
      'x-ratelimit-used': '1',
    })
    await statuses(2, () => fetch(url))
    const denied = await fetch(url)
    expect(limitHeaders(denied)).toMatchObject({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-used': '3',
      'x-ratelimit-reset': '60',
    })
    expect(denied.headers.get('retry-after')).toBe('20')
  })

  it('reset as an epoch, and not a word of the family that is off', async () => {
    const { url, world } = await open(rules, { headers: families[1] as HeaderOptions })
    const fullAt = Math.ceil((world.clock.wallMs() + 20_000) / 1000)
    expect(limitHeaders(await fetch(url))).toEqual({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '2',
      'x-ratelimit-reset': String(fullAt),
    })
  })

  it('with everything off a denial still has Retry-After and its body', async () => {
    const { url } = await open(rules, { headers: families[2] as HeaderOptions })
    await statuses(3, () => fetch(url))
    const denied = await fetch(url)
    expect(limitHeaders(denied)).toEqual({})
    expect(denied.headers.get('retry-after')).toBe('20')
    expect(await denied.json()).toMatchObject({ retryAfter: 20, limit: 3 })
  })

  it('lists merge with the upstream’s own; of two families the tighter one stands', async () => {
    let theirs = 1
    const { target } = await httpUpstream((_request, response) => {
      response.setHeader('RateLimit', '"app";r=7;t=9')
      response.setHeader('RateLimit-Policy', '"app";q=50;w=60')
      response.setHeader('X-RateLimit-Limit', '50')
      response.setHeader('X-RateLimit-Remaining', String(theirs))
      response.setHeader('X-RateLimit-Reset', '9')
      response.end()
    })
    const { url } = await openTo(target, rules)
    const tighter = limitHeaders(await fetch(url))
    expect(tighter).toMatchObject({
      ratelimit: '"app";r=7;t=9, "api";r=2;t=20',
      'ratelimit-policy': '"app";q=50;w=60, "api";q=3;w=60',
      'x-ratelimit-limit': '50',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '9',
    })
    theirs = 40
    expect(limitHeaders(await fetch(url))).toMatchObject({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '1',
    })
  })

  it('a client that waits for Retry-After passes, one that comes a second early does not', async () => {
    const { url, world } = await open(rules)
    expect(await statuses(4, () => fetch(url))).toEqual([200, 200, 200, 429])
    const seconds = Number((await fetch(url)).headers.get('retry-after'))
    world.clock.pass((seconds - 1) * 1000)
    expect((await fetch(url)).status).toBe(429)
    world.clock.pass(1000)
    expect((await fetch(url)).status).toBe(200)
  })

  it('HEAD is denied with the head of the denial, and the connection is usable', async () => {
    const { port } = await open(rules)
    const client = new RawClient(port)
    const head = 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n'
    client.send(head.repeat(4))
    const received = await client.until(text => /429.*\r\n\r\n/s.test(text))
    const denial = received.slice(received.indexOf('HTTP/1.1 429'))
    expect(denial).toMatch(/\r\nRetry-After: 20\r\n/)
    expect(denial).toMatch(/\r\nContent-Length: [1-9]/)
    expect(denial.endsWith('\r\n\r\n')).toBe(true)
    client.send(head)
    await client.until(text => text.split('HTTP/1.1 429').length === 3)
  })

  it('a WebSocket handshake counts once; the next is denied with a plain 429', async () => {
    const { target, server } = await httpUpstream((_request, response) => response.end())
    server.on('upgrade', (_request, socket) => {
      onClose(() => void socket.destroy())
      socket.write('HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.on('data', chunk => socket.write(chunk))
    })
    const { port } = await openTo(target, 'rules: [{ name: ws, key: [ip], limit: 1/1m }]')
    const handshake =
      'GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'
    const first = new RawClient(port).send(handshake)
    await first.text('101 Switching')
    for (let n = 0; n < 20; n++) first.send(`frame ${n};`)
    await first.text('frame 19;')
    const second = new RawClient(port).send(handshake)
    expect(await second.text('violated-policies')).toMatch(/^HTTP\/1\.1 429 /)
    expect(second.received).not.toMatch(/upgrade:/i)
  })

  it('a gRPC call is denied with RESOURCE_EXHAUSTED in a response of trailers only', async () => {
    const server = createH2()
    server.on('stream', stream => stream.respond({ ':status': 200 }, { endStream: true }))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onClose(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { url } = await openTo(
      { kind: 'h2c', host: '127.0.0.1', port },
      'rules: [{ name: rpc, key: [path], limit: 1/1m }]',
    )
    const session = h2Connect(url)
    onClose(() => session.destroy())
    const call = () => session.request({ ':method': 'POST', ':path': '/a.B/C', ...grpc }).end()
    expect(await headersOf(call())).toMatchObject({ ':status': 200, ratelimit: '"rpc";r=0;t=60' })
    expect(await headersOf(call())).toMatchObject({
      ':status': 200,
      'grpc-status': '8',
      'retry-after': '60',
    })
  })
})

const grpc = { 'content-type': 'application/grpc', te: 'trailers' }

function headersOf(stream: ClientHttp2Stream): Promise<object> {
  return new Promise((resolve, reject) => {
    stream.on('error', reject)
    stream.on('response', headers => {
      stream.resume()
      resolve(headers)
    })
  })
}

describe('login protection', () => {
  const rules = `rules:
  - { name: login, match: { path: /login, method: POST }, key: [ip], limit: 5/15m, algorithm: sliding-log, count: failure }`

  /** An upstream that knows one password and answers all at once when told. */
  async function loginService(): Promise<{
    target: UpstreamTarget
    tried: string[]
    answerAll: () => void
    hold: boolean
  }> {
    const waiting: (() => void)[] = []
    const service = {
      tried: [] as string[],
      hold: false,
      answerAll: () => {
        for (const answer of waiting.splice(0)) answer()
      },
    }
    const { target } = await httpUpstream((request, response) => {
      let password = ''
      request.setEncoding('utf8').on('data', chunk => (password += chunk))
      request.on('end', () => {
        service.tried.push(password)
        const answer = () => response.writeHead(password === 'right' ? 200 : 401).end()
        if (service.hold) waiting.push(answer)
        else answer()
      })
    })
    return Object.assign(service, { target })
  }

  const login = (url: string, password: string) =>
    fetch(`${url}/login`, { method: 'POST', body: password })

  it('of 50 parallel wrong passwords at most 5 reach the upstream', async () => {
    const service = await loginService()
    service.hold = true
    const { url } = await openTo(service.target, rules)
    const guesses = Array.from({ length: 50 }, (_, n) => login(url, `guess ${n}`))
    await eventually(() => service.tried.length === 5, 'five guesses reached the upstream')
    const refused = Promise.race(guesses.map(async guess => (await guess).status))
    expect(await refused).toBe(429)
    service.answerAll()
    const seen = (await Promise.all(guesses)).map(({ status }) => status)
    expect(seen.filter(status => status === 401)).toHaveLength(5)
    expect(seen.filter(status => status === 429)).toHaveLength(45)
    expect(service.tried).toHaveLength(5)
    expect((await login(url, 'right')).status).toBe(429)
  })

  it('right passwords cost nothing, in a row or at once', async () => {
    const service = await loginService()
    const { url } = await openTo(service.target, rules)
    expect(passed(await statuses(20, () => login(url, 'right')))).toBe(20)
    const at5 = await Promise.all(Array.from({ length: 5 }, () => login(url, 'right')))
    expect(at5.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses(6, () => login(url, 'wrong'))).toEqual([401, 401, 401, 401, 401, 429])
  })

  it('a client that hangs up before the answer has failed', async () => {
    const service = await loginService()
    service.hold = true
    const { url, world } = await openTo(service.target, rules)
    for (let n = 0; n < 5; n++) {
      const abort = new AbortController()
      const guess = fetch(`${url}/login`, {
        method: 'POST',
        body: `guess ${n}`,
        signal: abort.signal,
      })
      await eventually(() => service.tried.length === n + 1, `guess ${n} reached the upstream`)
      abort.abort()
      await expect(guess).rejects.toThrow()
    }
    await eventually(() => used(world) === 5, 'all five were counted')
    service.hold = false
    expect((await login(url, 'right')).status).toBe(429)
    expect(service.tried).toHaveLength(5)
  })

  it('an upstream that cuts its answer counts as a failure', async () => {
    const { target } = await httpUpstream((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-length': '10' })
      response.write('half')
      setImmediate(() => response.destroy())
    })
    const { url, world } = await openTo(target, rules)
    await expect(login(url, 'x').then(response => response.text())).rejects.toThrow()
    await eventually(() => used(world) === 1, 'the cut answer was counted')
  })

  it('one refused by another rule holds no place', async () => {
    const service = await loginService()
    const both = `${rules}
  - { name: all, key: [global], limit: 3/1h }`
    const { url, world } = await openTo(service.target, both)
    expect(await statuses(10, () => login(url, 'wrong'))).toEqual([
      ...[401, 401, 401],
      ...Array.from({ length: 7 }, () => 429),
    ])
    expect(used(world)).toBe(3)
  })

  function used(world: CoreWorld): number {
    const [part] =
      world.core.key('login', ['127.0.0.1'], world.clock.nowMs, world.clock.epochMs)?.parts ?? []
    return part === undefined ? 0 : part.consumed - part.returned
  }
})

describe('the limiter fails', () => {
  const rules = `rules:
  - { name: open, match: { path: "/open/**" }, key: [ip], limit: 5/1h }
  - { name: shut, match: { path: "/shut/**" }, key: [ip], limit: 5/1h, failureMode: closed }`

  it('throwing: open passes and closed stops, both marked, counted and told', async () => {
    const { url, world, reached } = await open(rules)
    vi.spyOn(CounterTable.prototype, 'open').mockImplementation(() => {
      throw new Error('a bug')
    })
    const through = await fetch(`${url}/open/a`)
    expect([through.status, through.headers.get('x-ratelimit-degraded')]).toEqual([200, '1'])
    const stopped = await fetch(`${url}/shut/a`)
    expect([stopped.status, stopped.headers.get('x-ratelimit-degraded')]).toEqual([503, '1'])
    expect(stopped.headers.get('retry-after')).toBe('1')
    expect(await stopped.json()).toMatchObject({ title: 'Rate limiter unavailable' })
    expect(reached).toEqual(['GET /open/a'])
    expect(world.engine.reasons.proxy.degraded).toBe(2)
    expect(world.engine.failures).toBe(2)
    expect(world.failures).toHaveLength(1)
  })

  it('throwing while responses end: they end all the same', async () => {
    const { url, world } = await open('rules: [{ name: slots, key: [ip], concurrency: 5 }]')
    vi.spyOn(CounterTable.prototype, 'giveBack').mockImplementation(() => {
      throw new Error('a bug')
    })
    const response = await fetch(url)
    expect([response.status, await response.text()]).toEqual([200, 'served'])
    expect(world.engine.failures).toBe(1)
  })

  it('table full: open passes up to the limit and closed stops, both marked', async () => {
    const networks = trustedNetworks(['127.0.0.0/8'])
    const trusts = (address: string) => networks.contains(address)
    const { url, world } = await open(rules, { trusts }, 16)
    const from = (path: string, address: string) =>
      fetch(`${url}${path}`, { headers: { 'x-forwarded-for': address } })
    for (let n = 0; n < 16; n++) await from('/open/a', `192.0.2.${n}`)
    const marked = await from('/open/a', '198.51.100.1')
    expect([marked.status, marked.headers.get('x-ratelimit-degraded')]).toEqual([200, '1'])
    expect(marked.headers.get('ratelimit')).toMatch(/^"open";r=4;/)
    expect(passed(await statuses(10, () => from('/open/a', '198.51.100.1')))).toBe(4)
    const stopped = await from('/shut/a', '198.51.100.1')
    expect([stopped.status, stopped.headers.get('x-ratelimit-degraded')]).toEqual([503, '1'])
    const known = await from('/open/a', '192.0.2.3')
    expect([known.status, known.headers.get('x-ratelimit-degraded')]).toEqual([200, null])
    expect(world.engine.stats().degradedDecisions).toBe(12)
  })

  it.each([
    ['the wall clock an hour ahead', 3_600_000, 0],
    ['the wall clock an hour back', -3_600_000, 0],
    ['the monotonic clock an hour ahead', 0, 3_600_000],
    ['the monotonic clock an hour back', 0, -3_600_000],
  ])('%s: traffic goes on, within the limit', async (_name, wallMs, monotonicMs) => {
    const { url, world } = await open(`rules:
  - { name: log, match: { path: /log }, key: [ip], limit: 5/1m, algorithm: sliding-log }
  - { name: bucket, match: { path: /bucket }, key: [ip], limit: 5/1m }`)
    for (const path of ['/log', '/bucket']) {
      expect(passed(await statuses(7, () => fetch(url + path)))).toBe(5)
    }
    world.clock.epochMs += wallMs
    world.clock.nowMs += monotonicMs
    for (const path of ['/log', '/bucket']) {
      expect(passed(await statuses(7, () => fetch(url + path)))).toBeLessThanOrEqual(5)
    }
    world.clock.pass(121_000)
    for (const path of ['/log', '/bucket']) {
      expect(passed(await statuses(7, () => fetch(url + path))), path).toBe(5)
    }
    expect(world.engine.failures).toBe(0)
  })
})
