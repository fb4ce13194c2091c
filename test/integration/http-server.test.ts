import { mkdtemp, stat, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import type { ListenAddress } from '../../src/config/sidecar-config.js'
import { addCheckApi } from '../../src/http/check-api.js'
import { trustedNetworks } from '../../src/http/client-address.js'
import { addForwardAuth } from '../../src/http/forward-auth.js'
import { createServer, ListenError, listen } from '../../src/http/server.js'
import { denied, fakeEngine } from '../helpers/fake-core.js'

const open: FastifyInstance[] = []
const anyPort: ListenAddress = { kind: 'tcp', host: '127.0.0.1', port: 0 }

afterEach(async () => {
  await Promise.all(open.splice(0).map(app => app.close()))
})

async function api(address: ListenAddress = anyPort) {
  const { core, engine } = fakeEngine()
  const app = createServer(pino({ level: 'silent' }))
  open.push(app)
  addCheckApi(app, { engine, trustedProxies: trustedNetworks([]), jwt: null })
  addForwardAuth(app, {
    engine,
    trustedProxies: trustedNetworks([]),
    jwt: null,
    headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'delta' },
    random: () => 0,
  })
  const bound = await listen(app, address, 'api')
  const port = bound.kind === 'tcp' ? bound.port : 0
  return { app, core, port, url: `http://127.0.0.1:${port}` }
}

/** Writes raw bytes and reads until the server closes. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.setEncoding('latin1')
    socket.on('data', chunk => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', error => (answer === '' ? reject(error) : resolve(answer)))
  })
}

const settled = (url: string): Promise<number> =>
  fetch(`${url}/v1/auth`).then(({ status }) => status)

describe('a listener', () => {
  it('refuses a header of a megabyte with 431, and serves on', async () => {
    const { port, url } = await api()
    const head = `GET /v1/auth HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(1 << 20)}\r\n\r\n`
    expect(await raw(port, head)).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/)
    expect(await settled(url)).toBe(200)
  })

  it.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    [
      'a malformed escape in the path',
      'GET /limits/%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    ],
    ['no Host', 'GET /v1/auth HTTP/1.1\r\n\r\n'],
    [
      'a body of two lengths',
      'POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ])('refuses %s with 400, and serves on', async (_what, text) => {
    const { port, url } = await api()
    expect(await raw(port, text)).toMatch(/^HTTP\/1\.1 400 /)
    expect(await settled(url)).toBe(200)
  })

  it('refuses a body of more than a megabyte with 413', async () => {
    const { url } = await api()
    const response = await fetch(`${url}/v1/check`, { method: 'POST', body: 'x'.repeat(2 << 20) })
    expect(response.status).toBe(413)
    expect(response.headers.get('content-type')).toContain('application/problem+json')
  })

  it('hides the reason of its own failures', async () => {
    const { core, url } = await api()
    core.next = () => decisionThatThrows
    const response = await fetch(`${url}/v1/auth`)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('a secret reason')
  })

  it('says in one line that its port is taken', async () => {
    const { port } = await api()
    const error = await api({ kind: 'tcp', host: '127.0.0.1', port }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(ListenError)
    expect((error as Error).message).toBe(`api: 127.0.0.1:${port} is already in use`)
  })
})

const decisionThatThrows = new Proxy(denied(), {
  get: (target, name) => {
    if (name === 'violated') throw new Error('a secret reason')
    return Reflect.get(target, name)
  },
})

describe('a unix socket', () => {
  const post = (socketPath: string, body: unknown): Promise<number> =>
    new Promise((resolve, reject) => {
      const request = httpRequest(
        { socketPath, method: 'POST', path: '/v1/check', headers: { host: 'localhost' } },
        response => {
          response.resume()
          resolve(response.statusCode ?? 0)
        },
      )
      request.on('error', reject)
      request.end(JSON.stringify(body))
    })

  const path = async (): Promise<string> =>
    join(await mkdtemp(join(tmpdir(), 'grapevine-')), 'api.sock')

  it('may give back: its peers are on this machine', async () => {
    const socket = await path()
    await api({ kind: 'unix', path: socket })
    expect(await post(socket, { rule: 'api', key: 'a', cost: -1 })).toBe(200)
  })

  it('that a dead process left behind is taken over', async () => {
    const socket = await path()
    const script = `require('net').createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, 'SIGKILL'))`
    const { spawnSync } = await import('node:child_process')
    spawnSync(process.execPath, ['-e', script])
    expect((await stat(socket)).isSocket()).toBe(true)
    await api({ kind: 'unix', path: socket })
    expect(await post(socket, { rule: 'api', key: 'a' })).toBe(200)
  })

  it('in use is left alone', async () => {
    const socket = await path()
    const other = createTcpServer(connection => connection.destroy()).listen(socket)
    await new Promise(resolve => other.once('listening', resolve))
    await expect(api({ kind: 'unix', path: socket })).rejects.toThrow(
      `api: unix:${socket} is already in use`,
    )
    await new Promise(resolve => other.close(resolve))
  })

  it('never replaces a file that is no socket', async () => {
    const file = await path()
    await writeFile(file, 'precious')
    await expect(api({ kind: 'unix', path: file })).rejects.toThrow(ListenError)
    expect((await stat(file)).size).toBe(8)
  })
})
