import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import {
  closeWorld,
  eventually,
  httpUpstream,
  onClose,
  pause,
  RawClient,
  startProxy,
  tcpUpstream,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

async function closedPort(): Promise<number> {
  const { port, server } = await httpUpstream(() => {})
  await new Promise(resolve => server.close(resolve))
  return port
}

describe('proxy and a failing upstream', () => {
  it('answers 502 when the upstream refuses connections, and keeps the client', async () => {
    const port = await closedPort()
    const world = await startProxy({ kind: 'http', host: '127.0.0.1', port })
    world.engine.owes = true
    const client = new RawClient(world.port).send(get)
    await client.text('refuses connections')
    expect(client.received).toMatch(/^HTTP\/1\.1 502 .*application\/problem\+json/s)
    client.send(get)
    await client.until(text => text.split('HTTP/1.1 502').length === 3)
    expect(world.proxy.stats).toMatchObject({ inflight: 0, upstreamErrors: { refused: 2 } })
    expect(world.engine.settled[0]).toMatchObject({ status: 502, aborted: false })
  })

  it('answers 504 when the upstream does not answer in time', async () => {
    const upstream = await tcpUpstream(() => {})
    const { url, proxy } = await startProxy(upstream.target, { timeouts: { responseHeadMs: 100 } })
    expect((await fetch(url)).status).toBe(504)
    await eventually(() => proxy.stats.upstreams === 0, 'the connection is not used again')
    expect(proxy.stats.upstreamErrors['response-timeout']).toBe(1)
  })

  it('answers 502 when the upstream closes before it answers', async () => {
    const upstream = await tcpUpstream(socket => {
      socket.on('data', () => socket.end('HTTP/1.1 200'))
    })
    const { url } = await startProxy(upstream.target)
    expect((await fetch(url)).status).toBe(502)
  })

  it.each([
    [
      'both framings',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
    ['a coding that is not chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'],
    [
      'a switch that nobody asked for',
      'HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    ],
    ['something else than HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['a head of 1 MB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1_000_000)}\r\n\r\n`],
    ['a bare line feed', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
  ])('answers 502 to a response with %s', async (_name, answer) => {
    const upstream = await tcpUpstream(socket => {
      socket.on('data', () => socket.write(answer))
    })
    const { url, proxy } = await startProxy(upstream.target)
    expect((await fetch(url)).status).toBe(502)
    expect(proxy.stats.upstreamErrors.malformed).toBe(1)
    await eventually(() => proxy.stats.upstreams === 0, 'the connection is not used again')
  })

  it('does not use a connection again on which more came than the response', async () => {
    const upstream = await tcpUpstream(socket => {
      socket.on('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
        ),
      )
    })
    const { url } = await startProxy(upstream.target)
    expect(await (await fetch(url)).text()).toBe('ok')
    expect(await (await fetch(url)).text()).toBe('ok')
    expect(upstream.sockets).toHaveLength(2)
  })

  it.each([
    ['of known length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ])('cuts the client when a body %s is cut', async (_name, answer) => {
    const upstream = await tcpUpstream(socket => {
      socket.on('data', () => socket.end(answer))
    })
    const world = await startProxy(upstream.target)
    world.engine.owes = true
    await expect(fetch(world.url).then(response => response.text())).rejects.toThrow()
    await eventually(() => world.engine.settled.length === 1, 'it is settled')
    expect(world.engine.settled[0]).toMatchObject({ status: 200, aborted: true })
  })

  it('repeats a GET once when a kept-alive connection had just closed', async () => {
    let requests = 0
    const upstream = await tcpUpstream(socket => {
      let mine = 0
      socket.on('data', () => {
        requests++
        if (++mine === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.destroy()
      })
    })
    const { url, proxy } = await startProxy(upstream.target)
    expect((await fetch(url)).status).toBe(200)
    expect((await fetch(url)).status).toBe(200)
    expect(proxy.stats.retries).toBe(1)
    expect(requests).toBe(3)
  })

  it('repeats no POST, whose effect may have happened', async () => {
    const upstream = await tcpUpstream(socket => {
      let mine = 0
      socket.on('data', () => {
        if (++mine === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.destroy()
      })
    })
    const { url, proxy } = await startProxy(upstream.target)
    expect((await fetch(url)).status).toBe(200)
    expect((await fetch(url, { method: 'POST' })).status).toBe(502)
    expect(proxy.stats.retries).toBe(0)
  })

  it('answers 503 when too many requests wait, and serves those that got a place', async () => {
    const release: (() => void)[] = []
    const upstream = await httpUpstream((_req, res) => {
      release.push(() => res.end('ok'))
    })
    const { url, proxy } = await startProxy(upstream.target, {
      limits: { upstreamsMax: 1, queueMax: 1 },
    })
    const first = fetch(url)
    await eventually(() => release.length === 1, 'the first is with the upstream')
    const second = fetch(url)
    await eventually(() => proxy.stats.inflight === 2, 'the second waits')
    const third = await fetch(url)
    expect(third.status).toBe(503)
    expect(third.headers.get('retry-after')).toBe('1')
    release[0]?.()
    expect((await first).status).toBe(200)
    await eventually(() => release.length === 2, 'the second is with the upstream')
    release[1]?.()
    expect((await second).status).toBe(200)
    expect(proxy.stats.upstreams).toBe(1)
  })

  it('answers 503 to a request that waited too long for a connection', async () => {
    const upstream = await httpUpstream(() => {})
    const { url, port, proxy } = await startProxy(upstream.target, {
      limits: { upstreamsMax: 1 },
      timeouts: { queueMs: 100 },
    })
    new RawClient(port).send(get)
    await eventually(() => proxy.stats.upstreams === 1, 'the only connection is taken')
    expect((await fetch(url)).status).toBe(503)
    expect(proxy.stats.upstreamErrors['queue-timeout']).toBe(1)
  })

  it('loses only what was in flight when the upstream restarts', async () => {
    let upstream = createServer((_req, res) => setTimeout(() => res.end('ok'), 2))
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    const { port } = upstream.address() as { port: number }
    onClose(() => {
      upstream.closeAllConnections()
      upstream.close()
    })
    const { url } = await startProxy({ kind: 'http', host: '127.0.0.1', port })
    const statuses: number[] = []
    let running = true
    const load = Array.from({ length: 8 }, async () => {
      while (running) statuses.push((await fetch(url)).status)
    })
    await pause(200)
    upstream.closeAllConnections()
    await new Promise(resolve => upstream.close(resolve))
    upstream = createServer((_req, res) => setTimeout(() => res.end('ok'), 2))
    await new Promise<void>(resolve => upstream.listen(port, '127.0.0.1', resolve))
    const restartedAt = statuses.length
    await eventually(() => statuses.length - restartedAt > 50, 'requests flow again')
    running = false
    await Promise.all(load)
    const lost = statuses.filter(status => status !== 200)
    expect(lost.every(status => status === 502)).toBe(true)
    // After the restart each of the eight may have had one request under way, not more.
    expect(statuses.slice(restartedAt).filter(status => status !== 200).length).toBeLessThanOrEqual(
      8,
    )
    expect(statuses.at(-1)).toBe(200)
  })
})

describe('proxy and a client that leaves', () => {
  it('closes the upstream request and settles it as aborted', async () => {
    const upstream = await tcpUpstream(socket => socket.resume())
    const { port, engine, proxy } = await startProxy(upstream.target)
    engine.owes = true
    const client = new RawClient(port).send(get)
    await eventually(() => upstream.sockets.length === 1, 'the upstream has it')
    client.socket.destroy()
    await eventually(
      () => upstream.sockets[0]?.readableEnded === true || upstream.sockets[0]?.destroyed === true,
      'the upstream is closed',
    )
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 0, aborted: true })
    expect(proxy.stats).toMatchObject({ inflight: 0, requests: { aborted: 1 } })
  })

  it('stops an event stream that nobody reads', async () => {
    const upstream = await httpUpstream((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: 1\n\n')
      res.on('close', () => {
        closed = true
      })
    })
    let closed = false
    const { port, engine } = await startProxy(upstream.target)
    engine.owes = true
    const client = new RawClient(port).send(get)
    await client.text('data: 1')
    client.socket.end()
    await eventually(() => closed, 'the upstream noticed')
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 200, aborted: true })
  })
})

describe('proxy drain and close', () => {
  it('asks clients to close while draining, and still serves them', async () => {
    const upstream = await httpUpstream((_req, res) => res.end('ok'))
    const { port, proxy } = await startProxy(upstream.target)
    const client = new RawClient(port).send(get)
    await client.text('ok')
    expect(client.received).not.toContain('Connection: close')
    proxy.drain()
    client.send(get)
    await client.whenClosed()
    expect(client.received).toMatch(/200 OK.*200 OK.*Connection: close.*ok$/s)
  })

  it('closes idle connections at once and lets running requests finish', async () => {
    const upstream = await httpUpstream((_req, res) => setTimeout(() => res.end('done'), 150))
    const { port, proxy } = await startProxy(upstream.target)
    const idle = new RawClient(port)
    const busy = new RawClient(port).send(get)
    await eventually(() => proxy.stats.inflight === 1, 'the request runs')
    const closing = proxy.close(5000)
    await idle.whenClosed()
    await busy.text('done')
    const startMs = performance.now()
    await closing
    expect(performance.now() - startMs).toBeLessThan(3000)
    expect(proxy.stats).toMatchObject({ clients: 0, upstreams: 0 })
  })

  it('cuts what still runs when the grace is over', async () => {
    const upstream = await tcpUpstream(socket => socket.resume())
    const { port, proxy } = await startProxy(upstream.target)
    const client = new RawClient(port).send(get)
    await eventually(() => proxy.stats.inflight === 1, 'the request runs')
    await proxy.close(100)
    await client.whenClosed()
    expect(proxy.stats).toMatchObject({ inflight: 0, clients: 0, upstreams: 0 })
  })

  it('answers 503 to a new request on a connection that is open still', async () => {
    const upstream = await httpUpstream((_req, res) => setTimeout(() => res.end('done'), 150))
    const { port, proxy, engine } = await startProxy(upstream.target)
    const half = new RawClient(port).send('GET /late HTTP/1.1\r\n')
    new RawClient(port).send(get)
    await eventually(() => proxy.stats.inflight === 1, 'a request runs')
    const closing = proxy.close(2000)
    half.send('Host: a\r\n\r\n')
    await half.whenClosed()
    expect(half.received).toMatch(/^HTTP\/1\.1 503 .*Connection: close/s)
    expect(engine.decided).toHaveLength(1)
    await closing
  })

  it('says why when its address is taken', async () => {
    const upstream = await httpUpstream(() => {})
    await expect(
      startProxy(upstream.target, { listen: { host: '127.0.0.1', port: upstream.port } }),
    ).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})
