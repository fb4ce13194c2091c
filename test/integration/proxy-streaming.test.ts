import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { allowed } from '../helpers/fake-engine.js'
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

const megabyte = 1_048_576
const block = randomBytes(megabyte)

/** The hash of `count` blocks. */
function hashOf(count: number): string {
  const hash = createHash('sha256')
  for (let index = 0; index < count; index++) hash.update(block)
  return hash.digest('hex')
}

/** Highest resident size in bytes while `work` runs, above the size before it. */
async function growth(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().rss
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 10)
  await work()
  clearInterval(timer)
  return most - before
}

/** Bodies go through in pieces: what is in memory must not grow with their size. */
const flatBytes = 64 * megabyte

describe('proxy streaming', () => {
  it('downloads 100 MB with flat memory, byte for byte', async () => {
    const upstream = await httpUpstream(async (_req, res) => {
      for (let index = 0; index < 100; index++) {
        if (!res.write(block)) await new Promise(resolve => res.once('drain', resolve))
      }
      res.end()
    })
    const { port } = await startProxy(upstream.target)
    const download = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const hash = createHash('sha256')
        request({ port, host: '127.0.0.1' }, response => {
          response.on('data', chunk => hash.update(chunk))
          response.on('end', () => resolve(hash.digest('hex')))
        })
          .on('error', reject)
          .end()
      })
    // The first run brings the heap to its working size.
    await download()
    let hash = ''
    const grown = await growth(async () => {
      hash = await download()
    })
    expect(hash).toBe(hashOf(100))
    expect(grown).toBeLessThan(flatBytes)
  })

  it.each(['chunked', 'length'])(
    'uploads 100 MB (%s) with flat memory, byte for byte',
    async how => {
      const upstream = await httpUpstream((req, res) => {
        const hash = createHash('sha256')
        req.on('data', chunk => hash.update(chunk))
        req.on('end', () => res.end(hash.digest('hex')))
      })
      const { port } = await startProxy(upstream.target)
      const client = new RawClient(port)
      const framing =
        how === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${100 * megabyte}`
      const grown = await growth(async () => {
        client.send(`PUT / HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`)
        for (let index = 0; index < 100; index++) {
          if (how === 'chunked') client.send(`${megabyte.toString(16)}\r\n`)
          const room = client.socket.write(block)
          if (how === 'chunked') client.send('\r\n')
          if (!room) await new Promise(resolve => client.socket.once('drain', resolve))
        }
        if (how === 'chunked') client.send('0\r\n\r\n')
        await client.text(hashOf(100))
      })
      expect(grown).toBeLessThan(flatBytes)
    },
  )

  it('stops reading from the upstream when the client does not read', async () => {
    let written = 0
    const upstream = await tcpUpstream(socket => {
      const pump = (): void => {
        while (written < 200 * megabyte) {
          written += 65_536
          if (!socket.write(block.subarray(0, 65_536))) {
            socket.once('drain', pump)
            return
          }
        }
      }
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${200 * megabyte}\r\n\r\n`)
        pump()
      })
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.socket.pause()
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    let before = -1
    while (before !== written) {
      before = written
      await pause(200)
    }
    // What fits into the socket buffers of the system on both ways, and no more.
    expect(written).toBeGreaterThan(65_536)
    expect(written).toBeLessThan(40 * megabyte)
    client.socket.resume()
    await eventually(() => written > before, 'it flows again')
  })

  it('stops reading from the client when the upstream does not read', async () => {
    const upstream = await tcpUpstream(socket => socket.pause())
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.send(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${200 * megabyte}\r\n\r\n`)
    let sent = 0
    client.socket.on('drain', () => pump())
    const pump = (): void => {
      while (sent < 200 * megabyte) {
        sent += 65_536
        if (!client.socket.write(block.subarray(0, 65_536))) return
      }
    }
    pump()
    let before = -1
    while (before !== sent) {
      before = sent
      await pause(200)
    }
    expect(sent).toBeLessThan(40 * megabyte)
    upstream.sockets[0]?.resume()
    await eventually(() => sent > before, 'it flows again')
  })

  it('passes the first server-sent event at once', async () => {
    const upstream = await httpUpstream((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.flushHeaders()
      setTimeout(() => res.write('data: first\n\n'), 50)
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.text('text/event-stream')
    expect(client.received).not.toContain('data:')
    await client.text('data: first')
  })

  it('passes a response that comes before the request body is whole', async () => {
    const upstream = await tcpUpstream(socket => {
      socket.once('data', () => socket.write('HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno'))
    })
    const { port, proxy } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc')
    await client.text('413 No')
    client.send('x'.repeat(99_997))
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz')
    await client.until(text => text.split('413 No').length === 3)
    // The first upstream connection still waits for its body: nothing else may go there.
    expect(upstream.sockets).toHaveLength(2)
    await eventually(() => proxy.stats.inflight === 0, 'both are over')
  })

  it('keeps 1,000 idle clients and serves another one', async () => {
    const upstream = await httpUpstream((_req, res) => res.end('ok'))
    const { port, proxy, url } = await startProxy(upstream.target)
    const sockets = Array.from({ length: 1000 }, () => connect({ port, host: '127.0.0.1' }))
    onClose(() => {
      for (const socket of sockets) socket.destroy()
    })
    await eventually(() => proxy.stats.clients === 1000, 'all are connected')
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually(() => proxy.stats.requests['2xx'] === 1000, 'all are answered')
    const startMs = performance.now()
    expect((await fetch(url)).status).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(5_000)
    expect(proxy.stats.clients).toBeGreaterThanOrEqual(1000)
  })

  it('closes a client that idles for too long', async () => {
    const upstream = await httpUpstream((_req, res) => res.end('ok'))
    const { port } = await startProxy(upstream.target, { timeouts: { clientIdleMs: 500 } })
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.text('ok')
    await client.whenClosed()
    expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })
})

describe('proxy tunnels', () => {
  /** An upstream that upgrades to an echo of bytes. */
  async function echo() {
    const heads: string[] = []
    const upstream = await tcpUpstream(socket => {
      socket.once('data', head => {
        heads.push(head.toString('latin1'))
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
            'Sec-WebSocket-Accept: x\r\n\r\nwelcome',
        )
        socket.on('data', chunk => socket.write(chunk))
        socket.on('end', () => socket.end())
      })
    })
    return { ...upstream, heads }
  }

  const handshake =
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Key: y\r\nSec-WebSocket-Version: 13\r\n\r\n'

  it('echoes through an upgraded connection, early bytes included', async () => {
    const upstream = await echo()
    const { port, proxy, engine } = await startProxy(upstream.target)
    engine.owes = true
    engine.verdict = () => allowed
    const client = new RawClient(port).send(`${handshake}early`)
    await client.text('welcomeearly')
    expect(client.received).toMatch(/^HTTP\/1\.1 101 .*Sec-WebSocket-Accept: x\r\n.*RateLimit: /s)
    expect(upstream.heads[0]).toContain('Connection: Upgrade\r\nUpgrade: websocket\r\n')
    expect(upstream.heads[0]).toContain('Sec-WebSocket-Key: y\r\n')
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    client.send(bytes)
    await client.text(bytes.toString('latin1'))
    expect(proxy.stats).toMatchObject({ tunnels: 1, inflight: 1 })
    expect(engine.settled).toEqual([])
    client.socket.end()
    await client.whenClosed()
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 101, aborted: false })
    expect(proxy.stats).toMatchObject({ tunnels: 0, inflight: 0, requests: { upgraded: 1 } })
  })

  it('carries 20 MB both ways through a tunnel with a slow reader', async () => {
    const upstream = await echo()
    const { port } = await startProxy(upstream.target)
    const socket = connect({ port, host: '127.0.0.1' })
    onClose(() => {
      socket.destroy()
    })
    let bytes = 0
    socket.on('data', chunk => {
      bytes += chunk.length
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
    socket.write(handshake)
    await eventually(() => bytes > 0, 'it is upgraded')
    const start = bytes
    for (let index = 0; index < 20; index++) {
      if (!socket.write(block)) await new Promise(resolve => socket.once('drain', resolve))
    }
    await new Promise<void>(resolve => {
      const timer = setInterval(() => {
        if (bytes - start < 20 * megabyte) return
        clearInterval(timer)
        resolve()
      }, 10)
    })
    expect(bytes - start).toBeLessThanOrEqual(20 * megabyte + 'welcome'.length)
  })

  it('passes on an answer that refuses the upgrade, and keeps the connection', async () => {
    const upstream = await httpUpstream((_req, res) => {
      res.statusCode = 426
      res.end('no')
    })
    upstream.server.on('upgrade', (_req, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(handshake)
    await client.text('403 Forbidden')
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.text('426')
  })

  it('ends the client when the upstream of a tunnel is gone', async () => {
    const upstream = await echo()
    const { port, proxy } = await startProxy(upstream.target)
    const client = new RawClient(port).send(handshake)
    await client.text('welcome')
    upstream.sockets[0]?.destroy()
    await client.whenClosed()
    await eventually(() => proxy.stats.tunnels === 0, 'it is over')
  })

  it('leaves an offer of h2c alone and answers in HTTP/1.1', async () => {
    const upstream = await httpUpstream((req, res) => {
      res.end(`${req.headers.upgrade} ${req.headers.connection} ${req.headers['http2-settings']}`)
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n',
    )
    await client.text('undefined')
    expect(client.received).toMatch(/undefined \S+ undefined/)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.until(text => text.split('HTTP/1.1 200').length === 3)
  })
})
