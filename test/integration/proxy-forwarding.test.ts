import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { allowed } from '../helpers/fake-engine.js'
import {
  closeWorld,
  eventually,
  httpUpstream,
  onClose,
  RawClient,
  startProxy,
  tcpUpstream,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

/** An upstream that answers each head with 200 and keeps what it was sent. */
async function recorder(answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok') {
  const seen: string[] = []
  const upstream = await tcpUpstream(socket => {
    let text = ''
    seen.push('')
    const index = seen.length - 1
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      seen[index] = text
      if (text.endsWith('\r\n\r\n')) socket.write(answer)
    })
  })
  return { ...upstream, seen }
}

describe('proxy forwarding', () => {
  it('passes a request and its response through', async () => {
    const seen: string[] = []
    const upstream = await httpUpstream((req, res) => {
      seen.push(`${req.method} ${req.url} ${req.headers.host} ${req.headers['x-mine']}`)
      res.setHeader('X-Theirs', 'b')
      res.end('hello')
    })
    const { url, port } = await startProxy(upstream.target)
    const response = await fetch(`${url}/a/b?c=d%20e`, { headers: { 'x-mine': 'a' } })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-theirs')).toBe('b')
    expect(await response.text()).toBe('hello')
    expect(seen).toEqual([`GET /a/b?c=d%20e 127.0.0.1:${port} a`])
  })

  it('adds the rate-limit headers of the decision to the response', async () => {
    const upstream = await httpUpstream((_req, res) => res.end('ok'))
    const { url, engine } = await startProxy(upstream.target)
    engine.verdict = () => allowed
    const response = await fetch(url)
    expect(response.headers.get('ratelimit-policy')).toBe('"api";q=100;w=1')
    expect(response.headers.get('ratelimit')).toBe('"api";r=42;t=1')
    expect(response.headers.get('x-ratelimit-limit')).toBe('100')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('42')
  })

  it('keeps the stricter X-RateLimit family and joins the lists when the upstream limits too', async () => {
    const upstream = await httpUpstream((_req, res) => {
      res.setHeader('RateLimit', '"theirs";r=1;t=9')
      res.setHeader('X-RateLimit-Limit', '7')
      res.setHeader('X-RateLimit-Remaining', '1')
      res.end('ok')
    })
    const { url, engine } = await startProxy(upstream.target)
    engine.verdict = () => allowed
    const response = await fetch(url)
    expect(response.headers.get('ratelimit')).toBe('"theirs";r=1;t=9, "api";r=42;t=1')
    expect(response.headers.get('x-ratelimit-limit')).toBe('7')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('1')
  })

  it('sends exactly the fields that are for the upstream', async () => {
    const upstream = await recorder()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(
      'GET /x HTTP/1.1\r\nHost: shop\r\nConnection: keep-alive, X-Secret, TE\r\nKeep-Alive: timeout=5\r\n' +
        'X-Secret: 1\r\nProxy-Authorization: a\r\nProxy-Connection: b\r\nTE: gzip, trailers\r\n' +
        'X-Forwarded-For: 192.0.2.66\r\nX_Forwarded_For: 192.0.2.67\r\nX-Forwarded-Proto: https\r\n' +
        'X-Forwarded-Host: evil\r\nForwarded: for=192.0.2.68\r\nX-Real-IP: 192.0.2.69\r\nAccept: */*\r\n\r\n',
    )
    await client.text('ok')
    expect(upstream.seen).toEqual([
      'GET /x HTTP/1.1\r\nHost: shop\r\nAccept: */*\r\nX-Forwarded-For: 127.0.0.1\r\n' +
        'X-Forwarded-Proto: http\r\nX-Forwarded-Host: shop\r\nTE: trailers\r\nConnection: TE\r\n\r\n',
    ])
  })

  it('appends to what a trusted proxy says of earlier hops', async () => {
    const upstream = await recorder()
    const { port, engine } = await startProxy(upstream.target, {
      trusts: address => address === '127.0.0.1',
    })
    const client = new RawClient(port).send(
      'GET / HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 192.0.2.7\r\n' +
        'X-Forwarded-Proto: https\r\nX-Forwarded-Host: public\r\n\r\n',
    )
    await client.text('ok')
    expect(upstream.seen[0]).toContain('X-Forwarded-For: 198.51.100.1, 192.0.2.7, 127.0.0.1\r\n')
    expect(upstream.seen[0]).toContain('X-Forwarded-Proto: https\r\nX-Forwarded-Host: public\r\n')
    expect(engine.decided[0]).toMatchObject({ ip: '192.0.2.7', peerTrusted: true })
  })

  it('counts an untrusted client as itself whatever X-Forwarded-For it sends', async () => {
    const upstream = await httpUpstream((_req, res) => res.end())
    const { url, engine } = await startProxy(upstream.target)
    for (let index = 0; index < 200; index++) {
      await fetch(url, { headers: { 'x-forwarded-for': `192.0.2.${index}` } })
    }
    expect(new Set(engine.decided.map(facts => facts.ip))).toEqual(new Set(['127.0.0.1']))
  })

  it('uses one connection on each side for requests in a row', async () => {
    const upstream = await recorder()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    for (let count = 1; count <= 10; count++) {
      client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await client.until(received => received.split('HTTP/1.1 200').length - 1 === count)
    }
    expect(upstream.sockets).toHaveLength(1)
    expect(client.closed).toBe(false)
  })

  it('answers pipelined requests in order, one upstream request at a time', async () => {
    let running = 0
    let most = 0
    const upstream = await httpUpstream((req, res) => {
      most = Math.max(most, ++running)
      setTimeout(
        () => {
          running--
          res.end(`<${req.url}>`)
        },
        req.url === '/1' ? 50 : 0,
      )
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.send([1, 2, 3, 4].map(n => `GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
    const received = await client.text('</4>')
    expect(received.match(/<\/\d>/g)).toEqual(['</1>', '</2>', '</3>', '</4>'])
    expect(most).toBe(1)
  })

  it('reads a request that comes byte by byte', async () => {
    const upstream = await httpUpstream((req, res) => {
      let body = ''
      req.on('data', chunk => {
        body += chunk
      })
      req.on('end', () => res.end(`${req.url} ${req.headers['x-long-name']} ${body}`))
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.socket.setNoDelay(true)
    const text =
      'POST /slow HTTP/1.1\r\nHost: a\r\nX-Long-Name: some value \r\nTransfer-Encoding: chunked\r\n\r\n' +
      '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    for (const letter of text) {
      client.send(letter)
      await new Promise(resolve => setImmediate(resolve))
    }
    await client.text('/slow some value abcde')
  })

  it('frames chunked bodies anew and passes trailers both ways', async () => {
    const upstream = await tcpUpstream(socket => {
      let text = ''
      socket.on('data', chunk => {
        text += chunk.toString('latin1')
        if (!text.includes('0\r\n')) return
        seen.push(text)
        socket.write(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n' +
            '3;ext=1\r\nabc\r\n0\r\nX-Sum: 6\r\nSet-Cookie: no\r\n\r\n',
        )
      })
    })
    const seen: string[] = []
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Check\r\n\r\n' +
        '2;a="b"\r\nhi\r\n0\r\nX-Check: 1\r\nAuthorization: c\r\nHost: b\r\n\r\n',
    )
    const received = await client.text('X-Sum: 6\r\n\r\n')
    expect(received).toContain(
      'Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n',
    )
    expect(received).not.toContain('Set-Cookie')
    expect(seen[0]).toContain(
      'Trailer: X-Check\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Check: 1\r\n\r\n',
    )
  })

  it('sends a body of known length with its length', async () => {
    const upstream = await httpUpstream((req, res) => {
      let body = ''
      req.on('data', chunk => {
        body += chunk
      })
      req.on('end', () => res.end(`${req.headers['content-length']}:${body}`))
    })
    const { url } = await startProxy(upstream.target)
    const response = await fetch(url, { method: 'POST', body: 'hello' })
    expect(await response.text()).toBe('5:hello')
    expect(await (await fetch(url, { method: 'POST' })).text()).toBe('0:')
  })

  it('answers HEAD with the length and without a body', async () => {
    const upstream = await recorder('HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n')
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port)
    client.send('HEAD / HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n')
    const received = await client.until(text => text.split('\r\n\r\n').length === 3)
    expect(received.match(/Content-Length: 4096/g)).toHaveLength(2)
    expect(upstream.sockets).toHaveLength(1)
  })

  it('passes early hints on before the response, and no 100 that nobody asked for', async () => {
    const upstream = await recorder(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' +
        'HTTP/1.1 204 No Content\r\n\r\n',
    )
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await client.text('204 No Content\r\n\r\n')).toBe(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
    )
  })

  it('says 100 Continue once the request is admitted, and does not pass Expect on', async () => {
    const heads: unknown[] = []
    const upstream = await httpUpstream((req, res) => {
      heads.push(req.headers.expect)
      req.on('data', () => {})
      req.on('end', () => res.end('got it'))
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n',
    )
    await client.text('HTTP/1.1 100 Continue\r\n\r\n')
    client.send('abc')
    await client.text('got it')
    expect(heads).toEqual([undefined])
  })

  it('gives an HTTP/1.0 client a body that the end of the connection ends', async () => {
    const upstream = await recorder(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    )
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET / HTTP/1.0\r\n\r\n')
    await client.whenClosed()
    expect(client.received).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc')
    expect(upstream.seen[0]).toMatch(/^GET \/ HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
  })

  it('keeps an HTTP/1.0 connection that asks for it', async () => {
    const upstream = await recorder()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    await client.text('ok')
    expect(client.received).toContain('Connection: keep-alive\r\n')
    client.send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
    await client.until(text => text.split('HTTP/1.1 200').length === 3)
  })

  it('chunks a response that the end of the upstream connection ends', async () => {
    const upstream = await tcpUpstream(socket => {
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\nabc'))
    })
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const received = await client.text('0\r\n\r\n')
    expect(received).toBe(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    )
  })

  it('takes an absolute target of its own host, and sends the origin form', async () => {
    const upstream = await recorder()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send('GET http://Shop/a?b HTTP/1.1\r\nHost: shop\r\n\r\n')
    await client.text('ok')
    expect(upstream.seen[0]).toMatch(/^GET \/a\?b HTTP\/1\.1\r\nHost: shop\r\n/)
  })

  it('closes after a response to a client that asks for it', async () => {
    const upstream = await recorder()
    const { port } = await startProxy(upstream.target)
    const client = new RawClient(port).send(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    )
    await client.whenClosed()
    expect(client.received).toContain('Connection: close\r\n')
    expect(client.received).toMatch(/ok$/)
  })

  it('reaches an upstream on a unix socket', async () => {
    const path = join(tmpdir(), `grapevine-${process.pid}.sock`)
    rmSync(path, { force: true })
    const server = createServer((_req, res) => res.end('unix'))
    await new Promise<void>(resolve => server.listen(path, resolve))
    onClose(() => {
      server.closeAllConnections()
      server.close()
    })
    const { url } = await startProxy({ kind: 'unix', path })
    expect(await (await fetch(url)).text()).toBe('unix')
  })

  it('settles with the status and the response header that bears the cost', async () => {
    const upstream = await httpUpstream((req, res) => {
      res.statusCode = req.url === '/bad' ? 404 : 200
      res.setHeader('X-Request-Cost', '7')
      res.end()
    })
    const { url, engine } = await startProxy(upstream.target)
    engine.owes = true
    await fetch(url)
    await fetch(`${url}/bad`)
    await eventually(() => engine.settled.length === 2, 'both are settled')
    expect(engine.settled).toEqual([
      { status: 200, aborted: false, cost: '7' },
      { status: 404, aborted: false, cost: '7' },
    ])
  })

  it('gives back an idle upstream connection before the upstream closes it', async () => {
    const upstream = await recorder(
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok',
    )
    const { url, proxy } = await startProxy(upstream.target)
    await (await fetch(url)).text()
    expect(proxy.stats.upstreams).toBe(1)
    await eventually(() => proxy.stats.upstreams === 0, 'the idle connection is closed')
  })
})
