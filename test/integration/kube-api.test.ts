/** The client of the Kubernetes API against a server that misbehaves, over real sockets. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ClusterApi, KubeError, type LineStream } from '../../src/discovery/kube-api.js'
import { until } from '../helpers/until.js'

let directory: string
let servers: Server[]
const kubeconfig = process.env.KUBECONFIG

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'grapevine-kube-'))
  servers = []
})

afterEach(async () => {
  if (kubeconfig === undefined) delete process.env.KUBECONFIG
  else process.env.KUBECONFIG = kubeconfig
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  rmSync(directory, { recursive: true, force: true })
})

async function listen(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const serve = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  listen(createServer({ keepAlive: false }, answer))

/** A kubeconfig for `server`, its token in a file as a pod has it. */
function api(server: string, options: { readonly answerTimeoutMs?: number } = {}): ClusterApi {
  const path = join(directory, 'config')
  const tokenFile = join(directory, 'token')
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      // Plain HTTP is refused by the client unless it is told not to care.
      clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace: 'shop' } }],
      users: [
        { name: 'test', user: { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } } },
      ],
    }),
  )
  process.env.KUBECONFIG = path
  return new ClusterApi(options)
}

function writeToken(text: string): void {
  writeFileSync(join(directory, 'token'), text)
}

function stream(more: Partial<LineStream> = {}): LineStream {
  return {
    path: '/watch',
    query: { watch: 'true' },
    durationMsMax: 10_000,
    onOpen: () => {},
    onLine: () => {},
    signal: new AbortController().signal,
    ...more,
  }
}

async function failureOf(asked: Promise<unknown>): Promise<KubeError> {
  const error = await asked.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof KubeError)) throw new Error(`no KubeError: ${error}`)
  return error
}

test('a token that expired is read again at once, and a newline at its end does no harm', async () => {
  const asked: (string | undefined)[] = []
  const server = await serve((request, response) => {
    asked.push(request.headers.authorization)
    const good = request.headers.authorization === 'Bearer second'
    response.writeHead(good ? 200 : 401).end(JSON.stringify({ message: 'Unauthorized' }))
  })
  writeToken('first\n')
  const client = api(server)
  expect((await failureOf(client.get('/x', {}))).failure).toBe('unauthorized')
  writeToken('second\n')
  expect(await client.get('/x', {})).toEqual({ message: 'Unauthorized' })
  expect(asked).toEqual(['Bearer first', 'Bearer second'])
})

test.each([
  [403, 'forbidden'],
  [404, 'missing'],
  [409, 'conflict'],
  [410, 'expired'],
  [429, 'throttled'],
  [500, 'server'],
  [302, 'server'],
] as const)('status %i is told as %s, with what the API says of it', async (status, failure) => {
  const server = await serve((_, response) => {
    response.writeHead(status, { 'retry-after': '3' }).end('{"message":"so it is"}')
  })
  writeToken('t')
  const error = await failureOf(api(server).get('/x', { a: 'b c' }))
  expect([error.failure, error.message, error.retryAfterMs]).toEqual([
    failure,
    `${status} so it is`,
    3_000,
  ])
})

test('what is asked names path, query and namespace as they are', async () => {
  const urls: (string | undefined)[] = []
  const server = await serve((request, response) => {
    urls.push(`${request.method} ${request.url}`)
    response.end('{}')
  })
  writeToken('t')
  const client = api(`${server}/prefix/`)
  expect(await client.namespace()).toBe('shop')
  await client.get('/api', { labelSelector: 'a=b c' })
  await client.post('/events', { some: 'thing' })
  expect(urls).toEqual(['GET /prefix/api?labelSelector=a%3Db+c', 'POST /prefix/events'])
})

test('an API that accepts and stays silent is given up, its connection closed', async () => {
  let open = 0
  const server = await listen(
    createTcpServer(socket => {
      open += 1
      socket.resume().on('close', () => {
        open -= 1
      })
      socket.on('error', () => {})
    }),
  )
  writeToken('t')
  const client = api(server, { answerTimeoutMs: 300 })
  expect((await failureOf(client.get('/x', {}))).failure).toBe('timeout')
  expect((await failureOf(client.lines(stream()))).failure).toBe('timeout')
  await until('no connection is left', () => open === 0)
})

test('a stream that stays open past its time is cut', async () => {
  const server = await serve((_, response) => {
    response.writeHead(200)
    response.write('{"type":"ADDED"}\n')
  })
  writeToken('t')
  const lines: string[] = []
  const watched = api(server).lines(
    stream({ durationMsMax: 2_000, onLine: line => lines.push(line) }),
  )
  expect((await failureOf(watched)).failure).toBe('timeout')
  expect(lines).toEqual(['{"type":"ADDED"}'])
})

test('a stream that the API ends is over, one that breaks is an error', async () => {
  let breaks = false
  const server = await serve((_, response) => {
    response.writeHead(200)
    response.write('one\ntw')
    if (breaks) setTimeout(() => response.socket?.resetAndDestroy(), 50)
    else response.end('o\n')
  })
  writeToken('t')
  const lines: string[] = []
  const client = api(server)
  await client.lines(stream({ onLine: line => lines.push(line) }))
  expect(lines).toEqual(['one', 'two'])
  breaks = true
  expect((await failureOf(client.lines(stream()))).failure).toBe('connect')
})

test('a stream is left when its signal says so', async () => {
  let closed = false
  const server = await serve((request, response) => {
    response.writeHead(200).write('one\n')
    request.on('close', () => {
      closed = true
    })
  })
  writeToken('t')
  const ended = new AbortController()
  const watched = api(server).lines(stream({ signal: ended.signal, onLine: () => ended.abort() }))
  expect((await failureOf(watched)).failure).toBe('connect')
  await until('the server saw it go', () => closed)
})

test('an answer that is no JSON, and an event without end, are malformed', async () => {
  const server = await serve((request, response) => {
    if (request.url === '/json') response.end('<html>')
    else for (let part = 0; part < 80; part += 1) response.write('x'.repeat(64 << 10))
  })
  writeToken('t')
  const client = api(server)
  expect((await failureOf(client.get('/json', {}))).failure).toBe('malformed')
  expect((await failureOf(client.lines(stream()))).failure).toBe('malformed')
})

test('a missing token file and a missing kubeconfig are troubles of configuration', async () => {
  const server = await serve((_, response) => response.end('{}'))
  const client = api(server)
  expect((await failureOf(client.get('/x', {}))).failure).toBe('config')
  writeToken('t')
  expect(await client.get('/x', {})).toEqual({})
  process.env.KUBECONFIG = join(directory, 'nowhere')
  expect((await failureOf(new ClusterApi().namespace())).failure).toBe('config')
})
