/**
 * Requests that two servers could read differently, or that are made to exhaust one. Each must be
 * refused cleanly, and the upstream must never see more requests than the client sent.
 */
import { afterEach, describe, expect, it } from 'vitest'
import {
  closeWorld,
  eventually,
  RawClient,
  startProxy,
  tcpUpstream,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

/** A well-formed request that stands after the hostile one; it must not get through. */
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nHost: a\r\n'
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`
const get = 'GET / HTTP/1.1\r\nHost: a\r\n'

interface Hostile {
  readonly name: string
  readonly bytes: string
  readonly status: number
  /** The head is sound and its body is not: the upstream may have seen the head, never a second one. */
  readonly body?: true
}

const table: readonly Hostile[] = [
  // Framing
  {
    name: 'Content-Length before Transfer-Encoding',
    bytes: `${post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding before Content-Length',
    bytes: `${post}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'two equal Content-Lengths',
    bytes: `${post}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc${smuggled}`,
    status: 400,
  },
  {
    name: 'two different Content-Lengths',
    bytes: `${post}Content-Length: 3\r\nContent-Length: 40\r\n\r\nabc${smuggled}`,
    status: 400,
  },
  {
    name: 'a list as Content-Length',
    bytes: `${post}Content-Length: 3, 3\r\n\r\nabc`,
    status: 400,
  },
  { name: 'a signed Content-Length', bytes: `${post}Content-Length: +3\r\n\r\nabc`, status: 400 },
  { name: 'a negative Content-Length', bytes: `${post}Content-Length: -3\r\n\r\nabc`, status: 400 },
  {
    name: 'a hexadecimal Content-Length',
    bytes: `${post}Content-Length: 0x3\r\n\r\nabc`,
    status: 400,
  },
  { name: 'an empty Content-Length', bytes: `${post}Content-Length:\r\n\r\nabc`, status: 400 },
  {
    name: 'a Content-Length beyond 64 bits',
    bytes: `${post}Content-Length: 99999999999999999999999\r\n\r\nabc`,
    status: 400,
  },
  {
    name: 'a Content-Length beyond exact numbers',
    bytes: `${post}Content-Length: 9007199254740993\r\n\r\nabc`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: gzip',
    bytes: `${post}Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: gzip, chunked',
    bytes: `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: chunked, gzip',
    bytes: `${post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: chunked, chunked',
    bytes: `${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding twice',
    bytes: `${post}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: xchunked',
    bytes: `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: "chunked"',
    bytes: `${post}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: ,chunked',
    bytes: `${post}Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding: identity',
    bytes: `${post}Transfer-Encoding: identity\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'an empty Transfer-Encoding',
    bytes: `${post}Transfer-Encoding:\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'a vertical tab after chunked',
    bytes: `${post}Transfer-Encoding: chunked\x0b\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'Transfer-Encoding in HTTP/1.0',
    bytes: `POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'a blank before the colon of Transfer-Encoding',
    bytes: `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    status: 400,
  },
  {
    name: 'an upgrade with a body',
    bytes: `${post}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc${smuggled}`,
    status: 400,
  },
  // Host and target
  { name: 'no Host', bytes: `GET / HTTP/1.1\r\n\r\n`, status: 400 },
  { name: 'two Hosts', bytes: `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`, status: 400 },
  {
    name: 'the same Host twice',
    bytes: `GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n`,
    status: 400,
  },
  { name: 'a list as Host', bytes: `GET / HTTP/1.1\r\nHost: a, b\r\n\r\n`, status: 400 },
  { name: 'a Host with a path', bytes: `GET / HTTP/1.1\r\nHost: a/b\r\n\r\n`, status: 400 },
  { name: 'a Host with credentials', bytes: `GET / HTTP/1.1\r\nHost: u@a\r\n\r\n`, status: 400 },
  {
    name: 'an absolute target of another host',
    bytes: `GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 400,
  },
  {
    name: 'an absolute target of another scheme',
    bytes: `GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 400,
  },
  { name: 'a target without a slash', bytes: `GET a HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'an asterisk with GET', bytes: `GET * HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'a fragment', bytes: `GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  {
    name: 'a control byte in the target',
    bytes: `GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 400,
  },
  {
    name: 'a byte above ASCII in the target',
    bytes: `GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 400,
  },
  { name: 'a blank in the target', bytes: `GET /a b HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'CONNECT', bytes: `CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n${smuggled}`, status: 405 },
  // Lines and bytes
  { name: 'obs-fold', bytes: `${get}X: a\r\n b\r\n\r\n`, status: 400 },
  {
    name: 'obs-fold with a tab',
    bytes: `${get}X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n`,
    status: 400,
  },
  {
    name: 'a blank before the first field',
    bytes: `GET / HTTP/1.1\r\n Host: a\r\n\r\n`,
    status: 400,
  },
  {
    name: 'a bare LF after a field',
    bytes: `GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n`,
    status: 400,
  },
  {
    name: 'a bare LF after the request line',
    bytes: `GET / HTTP/1.1\nHost: a\r\n\r\n`,
    status: 400,
  },
  { name: 'a bare CR in a value', bytes: `${get}X: a\rb\r\n\r\n`, status: 400 },
  { name: 'a NUL in a value', bytes: `${get}X: a\x00b\r\n\r\n`, status: 400 },
  { name: 'a control byte in a value', bytes: `${get}X: a\x01b\r\n\r\n`, status: 400 },
  { name: 'a NUL in a name', bytes: `${get}X\x00Y: a\r\n\r\n`, status: 400 },
  { name: 'a parenthesis in a name', bytes: `${get}X(Y: a\r\n\r\n`, status: 400 },
  { name: 'an empty name', bytes: `${get}: a\r\n\r\n`, status: 400 },
  { name: 'a field without a colon', bytes: `${get}Content-Length\r\n\r\n`, status: 400 },
  { name: 'an unknown method', bytes: `BREW / HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'a method in lower case', bytes: `get / HTTP/1.1\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'HTTP/0.9', bytes: `GET /\r\n\r\n`, status: 400 },
  { name: 'HTTP/1.2', bytes: `GET / HTTP/1.2\r\nHost: a\r\n\r\n`, status: 400 },
  { name: 'HTTP/2.0 in words', bytes: `GET / HTTP/2.0\r\nHost: a\r\n\r\n`, status: 505 },
  { name: 'the HTTP/2 preface', bytes: `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, status: 505 },
  { name: 'TLS', bytes: `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03`, status: 400 },
  {
    name: 'an unknown expectation',
    bytes: `${post}Expect: tea\r\nContent-Length: 3\r\n\r\nabc`,
    status: 417,
  },
  // Sizes
  { name: 'a header of 1 MB', bytes: `${get}X: ${'x'.repeat(1_000_000)}\r\n\r\n`, status: 431 },
  { name: '10,000 headers', bytes: `${get}${'X: y\r\n'.repeat(10_000)}\r\n`, status: 431 },
  { name: 'a name of 100 kB', bytes: `${get}${'x'.repeat(100_000)}: y\r\n\r\n`, status: 431 },
  {
    name: 'a target of 20 kB',
    bytes: `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 414,
  },
  {
    name: 'a target of 1 MB',
    bytes: `GET /${'x'.repeat(1_000_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 431,
  },
  { name: 'endless empty lines', bytes: '\r\n'.repeat(100_000), status: 431 },
  // Chunks
  {
    name: 'a chunk size with a sign',
    bytes: `${chunked}+3\r\nabc\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  {
    name: 'a chunk size with 0x',
    bytes: `${chunked}0x3\r\nabc\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  {
    name: 'a chunk size with a blank',
    bytes: `${chunked}3 \r\nabc\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  { name: 'an empty chunk size', bytes: `${chunked}\r\nabc\r\n0\r\n\r\n`, status: 400, body: true },
  {
    name: 'a chunk size that is no number',
    bytes: `${chunked}zz\r\nabc\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  {
    name: 'a chunk size beyond 64 bits',
    bytes: `${chunked}FFFFFFFFFFFFFFFFF\r\nabc`,
    status: 400,
    body: true,
  },
  {
    name: 'a chunk longer than its size',
    bytes: `${chunked}3\r\nabcd\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  {
    name: 'chunks with bare LF',
    bytes: `${chunked}3\nabc\n0\n\n${smuggled}`,
    status: 400,
    body: true,
  },
  {
    name: 'a bare LF in a chunk extension',
    bytes: `${chunked}3;a\nb\r\nabc\r\n0\r\n\r\n${smuggled}`,
    status: 400,
    body: true,
  },
  {
    name: 'a NUL in a chunk extension',
    bytes: `${chunked}3;\x00\r\nabc\r\n0\r\n\r\n`,
    status: 400,
    body: true,
  },
  {
    name: 'Content-Length as a trailer',
    bytes: `${chunked}0\r\nContent-Length: 3\r\n\r\n${smuggled}`,
    status: 400,
    body: true,
  },
  {
    name: 'a trailer that is folded',
    bytes: `${chunked}0\r\nX: a\r\n b\r\n\r\n${smuggled}`,
    status: 400,
    body: true,
  },
  {
    name: '10,000 trailers',
    bytes: `${chunked}0\r\n${'X: y\r\n'.repeat(10_000)}\r\n`,
    status: 431,
    body: true,
  },
]

/** An upstream that never answers `/smuggled` and keeps the request lines it saw. */
async function watched() {
  const lines: string[] = []
  const upstream = await tcpUpstream(socket => {
    socket.on('data', chunk => {
      const text = chunk.toString('latin1')
      for (const line of text.match(/[A-Z]+ \S+ HTTP\/1\.1/g) ?? []) lines.push(line)
      if (text.startsWith('GET /neighbour')) {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nneighbour')
      }
    })
  })
  return { ...upstream, lines }
}

describe('hostile requests', () => {
  it.each(table)('$name: $status', async ({ bytes, status, body }) => {
    const upstream = await watched()
    const { port, proxy } = await startProxy(upstream.target)
    const neighbour = new RawClient(port)
    neighbour.send('GET /neighbour/1 HTTP/1.1\r\nHost: a\r\n\r\n')
    await neighbour.text('neighbour')

    const client = new RawClient(port).send(bytes)
    await client.whenClosed()
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`])
    expect(client.received).toContain('Connection: close\r\n')

    neighbour.send('GET /neighbour/2 HTTP/1.1\r\nHost: a\r\n\r\n')
    await neighbour.until(text => text.split('HTTP/1.1 200').length === 3)
    const others = upstream.lines.filter(line => !line.includes('/neighbour'))
    expect(others).toEqual(
      body ? others.slice(0, 1).filter(line => line === 'POST / HTTP/1.1') : [],
    )
    expect(proxy.stats.inflight).toBe(0)
  })

  it.each(table)('$name, in two writes: refused as well', async ({ bytes, status }) => {
    const upstream = await watched()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.socket.setNoDelay(true)
    const half = Math.floor(Math.min(bytes.length, 200) / 2)
    client.send(bytes.slice(0, half))
    await new Promise(resolve => setTimeout(resolve, 5))
    client.send(bytes.slice(half))
    await client.whenClosed()
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`])
    expect(upstream.lines.join()).not.toContain('smuggled')
  })

  it('a body that looks like a request stays a body', async () => {
    const upstream = await tcpUpstream(socket => {
      let text = ''
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
        if (!text.endsWith(smuggled)) return
        seen.push(text)
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
    })
    const seen: string[] = []
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.send(`${post}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`)
    await client.text('200 OK')
    expect(seen[0]).toContain(`Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`)
  })

  it('a head that never ends is answered 408', async () => {
    const upstream = await watched()
    const { port, proxy } = await startProxy(upstream.target, { timeouts: { requestHeadMs: 150 } })
    const client = new RawClient(port)
    client.send('GET / HTTP/1.1\r\nHost: a\r\n')
    const drip = setInterval(() => client.send('X: y\r\n'), 20)
    await client.whenClosed()
    clearInterval(drip)
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
    expect(proxy.stats.refused['head-timeout']).toBe(1)
    expect(upstream.lines).toEqual([])
  })

  it('a body that stops is answered 408, and the upstream is let go', async () => {
    const upstream = await watched()
    const { port, proxy } = await startProxy(upstream.target, { timeouts: { bodyIdleMs: 150 } })
    const client = new RawClient(port).send(`${post}Content-Length: 10\r\n\r\nabc`)
    await client.whenClosed()
    expect(client.received).toMatch(/^HTTP\/1\.1 408 /)
    await eventually(() => proxy.stats.upstreams === 0, 'the upstream is let go')
    expect(proxy.stats.inflight).toBe(0)
  })

  it('clients beyond the bound are turned away and counted', async () => {
    const upstream = await watched()
    const { port, proxy } = await startProxy(upstream.target, { limits: { clientsMax: 2 } })
    const first = new RawClient(port)
    new RawClient(port)
    await eventually(() => proxy.stats.clients === 2, 'two are connected')
    const third = new RawClient(port)
    await third.whenClosed()
    expect(third.received).toBe('')
    expect(proxy.stats.clientsOverflow).toBe(1)
    first.send('GET /neighbour HTTP/1.1\r\nHost: a\r\n\r\n')
    await first.text('neighbour')
  })

  it('a client that pipelines and never reads is not buffered for without end', async () => {
    const upstream = await watched()
    const { port, engine } = await startProxy(upstream.target)
    engine.looksAt.path = true
    const client = new RawClient(port)
    client.socket.pause()
    // Each of these is answered with a 400 of our own; unread, the answers must stop the reading.
    const many = 'GET /%2F HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000)
    let accepted = 0
    const end = Date.now() + 3_000
    while (Date.now() < end && client.socket.write(many)) accepted++
    for (let round = 0; round < 200 && accepted < 200; round++) {
      if (client.socket.writableLength > 4_000_000) break
      client.socket.write(many)
      await new Promise(resolve => setTimeout(resolve, 5))
      accepted++
    }
    expect(client.socket.writableLength).toBeGreaterThan(1_000_000)
  })
})
