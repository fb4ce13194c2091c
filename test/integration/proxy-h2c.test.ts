import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { UpstreamTarget } from '../../src/proxy/options.js'
import { allowed, limited } from '../helpers/fake-engine.js'
import {
  closeWorld,
  eventually,
  httpUpstream,
  onClose,
  RawClient,
  startProxy,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

async function h2Upstream(onStream: OnStream): Promise<UpstreamTarget> {
  const server = createServer()
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', session => sessions.add(session))
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onClose(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { kind: 'h2c', host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

function h2Client(url: string): ClientHttp2Session {
  const session = connect(url)
  session.on('error', () => {})
  onClose(() => session.destroy())
  return session
}

interface Reply {
  readonly headers: IncomingHttpHeaders
  readonly trailers: IncomingHttpHeaders
  readonly body: Buffer
  readonly rstCode: number
}

function reply(stream: ClientHttp2Stream): Promise<Reply> {
  return new Promise(resolve => {
    let headers: IncomingHttpHeaders = {}
    let trailers: IncomingHttpHeaders = {}
    const parts: Buffer[] = []
    stream.on('response', got => {
      headers = got
    })
    stream.on('trailers', got => {
      trailers = got
    })
    stream.on('data', part => parts.push(part as Buffer))
    stream.on('error', () => {})
    stream.on('close', () =>
      resolve({ headers, trailers, body: Buffer.concat(parts), rstCode: stream.rstCode ?? 0 }),
    )
  })
}

/** A gRPC message: no compression, length, bytes. */
function frame(text: string): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(text.length, 1)
  return Buffer.concat([head, Buffer.from(text)])
}

const call = {
  ':method': 'POST',
  ':path': '/shop.Cart/Add',
  'content-type': 'application/grpc',
  te: 'trailers',
}

/** A gRPC server that echoes each message and ends with status 0 in trailers. */
const echo: OnStream = (stream, headers) => {
  let sent = false
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'x-te': String(headers.te) },
    { waitForTrailers: true },
  )
  stream.on('wantTrailers', () =>
    stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }),
  )
  stream.on('data', chunk => {
    sent = true
    stream.write(chunk)
  })
  stream.on('end', () => {
    if (sent) stream.end()
    else stream.end(frame('nothing'))
  })
}

describe('proxy to an h2c upstream', () => {
  it('carries a unary gRPC call with its trailers', async () => {
    const { url, engine } = await startProxy(await h2Upstream(echo))
    engine.owes = true
    engine.verdict = () => allowed
    const stream = h2Client(url).request(call)
    stream.end(frame('hello'))
    const { headers, trailers, body } = await reply(stream)
    expect(headers[':status']).toBe(200)
    expect(headers['x-te']).toBe('trailers')
    expect(headers.ratelimit).toBe('"api";r=42;t=1')
    expect(body).toEqual(frame('hello'))
    expect(trailers).toMatchObject({ 'grpc-status': '0', 'grpc-message': 'fine' })
    expect(engine.decided[0]).toMatchObject({
      method: 'POST',
      path: '/shop.Cart/Add',
      ip: '127.0.0.1',
    })
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 200, aborted: false })
  })

  it('carries a bidirectional stream message by message', async () => {
    const { url } = await startProxy(await h2Upstream(echo))
    const stream = h2Client(url).request(call)
    let received = Buffer.alloc(0)
    stream.on('data', chunk => {
      received = Buffer.concat([received, chunk])
    })
    for (let round = 1; round <= 5; round++) {
      stream.write(frame(`message ${round}`))
      await eventually(() => received.includes(`message ${round}`), `message ${round} came back`)
    }
    const end = reply(stream)
    stream.end()
    expect((await end).trailers['grpc-status']).toBe('0')
  })

  it('denies a gRPC call with a response of trailers only, status 8', async () => {
    const reached: string[] = []
    const { url, engine } = await startProxy(
      await h2Upstream((stream, headers) => {
        reached.push(String(headers[':path']))
        echo(stream, headers)
      }),
    )
    engine.verdict = facts => (facts.path === '/shop.Cart/Add' ? limited : allowed)
    const session = h2Client(url)
    const stream = session.request(call)
    stream.write(frame('hello'))
    const { headers, body } = await reply(stream)
    expect(headers).toMatchObject({
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': '8',
      'grpc-message': 'Rate limit exceeded',
      'grpc-retry-pushback-ms': '1200',
      'retry-after': '2',
      ratelimit: '"api";r=0;t=2',
    })
    expect(body).toHaveLength(0)
    // The session goes on.
    const other = session.request({ ...call, ':path': '/shop.Cart/List' })
    other.end(frame('x'))
    expect((await reply(other)).trailers['grpc-status']).toBe('0')
    expect(reached).toEqual(['/shop.Cart/List'])
  })

  it('denies a request that is not gRPC with a 429 and a problem', async () => {
    const { url, engine } = await startProxy(await h2Upstream(echo))
    engine.verdict = () => limited
    const stream = h2Client(url).request({ ':path': '/plain' })
    const { headers, body } = await reply(stream)
    expect(headers[':status']).toBe(429)
    expect(headers['retry-after']).toBe('2')
    expect(JSON.parse(body.toString())).toMatchObject({ status: 429, error: 'Rate limit exceeded' })
  })

  it('settles a gRPC failure as the HTTP status that says the same', async () => {
    const { url, engine } = await startProxy(
      await h2Upstream(stream =>
        stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '16' },
          { endStream: true },
        ),
      ),
    )
    engine.owes = true
    const stream = h2Client(url).request(call)
    stream.end(frame('hello'))
    expect((await reply(stream)).headers['grpc-status']).toBe('16')
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 401, aborted: false })
  })

  it('tells the upstream who asks, and believes no untrusted claims', async () => {
    const seen: IncomingHttpHeaders[] = []
    const { url } = await startProxy(
      await h2Upstream((stream, headers) => {
        seen.push(headers)
        stream.respond({ ':status': 204 }, { endStream: true })
      }),
    )
    const stream = h2Client(url).request({
      ':path': '/a?b',
      'x-forwarded-for': '192.0.2.1',
      'x-real-ip': '192.0.2.2',
      'x-mine': '1',
    })
    await reply(stream)
    expect(seen[0]).toMatchObject({
      ':path': '/a?b',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-mine': '1',
    })
    expect(seen[0]).not.toHaveProperty('x-real-ip')
  })

  it('passes a client cancel on to the upstream and settles it as aborted', async () => {
    let rstCode: number | undefined
    const { url, engine, proxy } = await startProxy(
      await h2Upstream(stream => {
        stream.on('close', () => {
          rstCode = stream.rstCode
        })
      }),
    )
    engine.owes = true
    const stream = h2Client(url).request(call)
    stream.write(frame('hello'))
    await eventually(() => proxy.stats.inflight === 1, 'it runs')
    stream.close(constants.NGHTTP2_CANCEL)
    await eventually(() => rstCode !== undefined, 'the upstream noticed')
    expect(rstCode).toBe(constants.NGHTTP2_CANCEL)
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ aborted: true })
    expect(proxy.stats.inflight).toBe(0)
  })

  it('resets the client when the upstream resets half a response', async () => {
    const { url, engine } = await startProxy(
      await h2Upstream(stream => {
        stream.respond({ ':status': 200 })
        stream.write('half')
        setTimeout(() => stream.destroy(new Error('cut')), 20)
      }),
    )
    engine.owes = true
    const stream = h2Client(url).request({ ':path': '/' })
    const { rstCode, body } = await reply(stream)
    expect(body.toString()).toBe('half')
    expect(rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR)
    await eventually(() => engine.settled.length === 1, 'it is settled')
    expect(engine.settled[0]).toMatchObject({ status: 200, aborted: true })
  })

  it('never makes half an upload look whole to the upstream', async () => {
    let ended = false
    let rstCode: number | undefined
    const { url } = await startProxy(
      await h2Upstream(stream => {
        stream.resume()
        stream.on('end', () => {
          ended = !stream.aborted && !stream.rstCode
        })
        stream.on('close', () => {
          rstCode = stream.rstCode
        })
      }),
    )
    const session = h2Client(url)
    const stream = session.request(call)
    stream.on('error', () => {})
    stream.write(frame('half'))
    await new Promise(resolve => setTimeout(resolve, 50))
    session.destroy()
    await eventually(() => rstCode !== undefined, 'the upstream noticed')
    expect({ ended, rstCode }).toEqual({ ended: false, rstCode: constants.NGHTTP2_CANCEL })
  })

  it('answers UNAVAILABLE, or 502, when the upstream is down', async () => {
    const { port, server } = await httpUpstream(() => {})
    await new Promise(resolve => server.close(resolve))
    const { url, proxy } = await startProxy({ kind: 'h2c', host: '127.0.0.1', port })
    const session = h2Client(url)
    const stream = session.request(call)
    stream.end(frame('hello'))
    expect((await reply(stream)).headers).toMatchObject({ ':status': 200, 'grpc-status': '14' })
    expect((await reply(session.request({ ':path': '/' }))).headers[':status']).toBe(502)
    expect(proxy.stats).toMatchObject({ inflight: 0, upstreamErrors: { refused: 2 } })
  })

  it('carries many streams at once over few upstream connections', async () => {
    const { url, proxy } = await startProxy(await h2Upstream(echo))
    const session = h2Client(url)
    const replies = Array.from({ length: 200 }, (_, index) => {
      const stream = session.request(call)
      stream.end(frame(`n${index}`))
      return reply(stream)
    })
    const all = await Promise.all(replies)
    expect(all.map(one => one.body.toString('utf8', 5))).toEqual(all.map((_, index) => `n${index}`))
    expect(proxy.stats.upstreams).toBeLessThanOrEqual(3)
    await eventually(() => proxy.stats.inflight === 0, 'all are over')
  })

  it('moves 20 MB each way', async () => {
    const { url } = await startProxy(await h2Upstream(echo))
    const stream = h2Client(url).request(call)
    const end = reply(stream)
    const block = Buffer.alloc(1_048_576, 7)
    for (let index = 0; index < 20; index++) {
      if (!stream.write(block)) await new Promise(resolve => stream.once('drain', resolve))
    }
    stream.end()
    expect((await end).body).toHaveLength(20 * 1_048_576)
  })

  it('lets running streams finish when it closes', async () => {
    const { url, proxy } = await startProxy(
      await h2Upstream(stream => {
        setTimeout(() => {
          stream.respond({ ':status': 200 })
          stream.end('done')
        }, 100)
      }),
    )
    const stream = h2Client(url).request({ ':path': '/' })
    const end = reply(stream)
    await eventually(() => proxy.stats.inflight === 1, 'it runs')
    await proxy.close(5000)
    expect((await end).body.toString()).toBe('done')
    expect(proxy.stats).toMatchObject({ clients: 0, upstreams: 0 })
  })

  it('tells an HTTP/1.1 client that this is HTTP/2', async () => {
    const { port } = await startProxy(await h2Upstream(echo))
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.whenClosed()
    expect(client.received).toMatch(/^HTTP\/1\.1 505 /)
  })

  it('refuses a Host that differs from :authority', async () => {
    const { url, engine } = await startProxy(await h2Upstream(echo))
    const stream = h2Client(url).request({ ':path': '/', ':authority': 'a', host: 'b' })
    expect((await reply(stream)).headers[':status']).toBe(400)
    expect(engine.decided).toEqual([])
  })
})
