/** A proxy in front of an upstream, both on loopback, and raw clients to talk to it. */
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { ProxyOptions, ProxyPorts, UpstreamTarget } from '../../src/proxy/options.js'
import { ReverseProxy } from '../../src/proxy/proxy.js'
import { FakeEngine } from './fake-engine.js'

export interface ProxyWorld {
  readonly engine: FakeEngine
  readonly proxy: ReverseProxy
  readonly port: number
  readonly url: string
}

/** How long a test waits for what takes milliseconds on an idle machine. */
const patienceMs = 20_000

const closers: (() => Promise<void> | void)[] = []

/** To be called after each test: closes everything that was opened here, last first. */
export async function closeWorld(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close()
}

export function onClose(close: () => Promise<void> | void): void {
  closers.push(close)
}

export async function startProxy(
  upstream: UpstreamTarget,
  options: Partial<ProxyOptions> = {},
  ports: Partial<ProxyPorts> = {},
): Promise<ProxyWorld> {
  const engine = new FakeEngine()
  const proxy = new ReverseProxy(
    {
      listen: { host: '127.0.0.1', port: 0 },
      upstream,
      trusts: () => false,
      headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'epoch' },
      ...options,
      timeouts: { sweepMs: 20, ...options.timeouts },
    },
    { engine, random: () => 0, monotonicMs: () => performance.now(), ...ports },
  )
  const { port } = await proxy.listen()
  onClose(() => proxy.close(0))
  return { engine, proxy, port, url: `http://127.0.0.1:${port}` }
}

function listen(server: Server, port = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

/** An upstream of node:http. */
export async function httpUpstream(
  listener: RequestListener,
  port = 0,
): Promise<{ target: UpstreamTarget; port: number; server: HttpServer }> {
  const server = createServer(listener)
  const bound = await listen(server, port)
  onClose(() => {
    server.closeAllConnections()
    server.close()
  })
  return { target: { kind: 'http', host: '127.0.0.1', port: bound }, port: bound, server }
}

/** An upstream of plain TCP, which shows what the proxy really sent. */
export async function tcpUpstream(
  onSocket: (socket: Socket) => void,
): Promise<{ target: UpstreamTarget; port: number; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createTcpServer({ allowHalfOpen: true }, socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  const port = await listen(server)
  onClose(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { target: { kind: 'http', host: '127.0.0.1', port }, port, sockets }
}

/** A raw client: collects what it is sent and waits for texts in it. */
export class RawClient {
  readonly socket: Socket
  received = ''
  closed = false
  ended = false
  #waiters: (() => void)[] = []

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1' })
    this.socket.on('data', chunk => {
      this.received += (chunk as Buffer).toString('latin1')
      this.#wake()
    })
    this.socket.on('end', () => {
      this.ended = true
      this.#wake()
    })
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.closed = true
      this.#wake()
    })
    onClose(() => {
      this.socket.destroy()
    })
  }

  send(text: string | Buffer): this {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
    return this
  }

  /** Resolves once the condition holds; rejects after `withinMs` with what was received. */
  until(condition: (received: string) => boolean, withinMs = patienceMs): Promise<string> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        if (!condition(this.received)) return
        clearTimeout(timer)
        this.#waiters = this.#waiters.filter(waiter => waiter !== check)
        resolve(this.received)
      }
      const timer = setTimeout(
        () => reject(new Error(`gave up waiting, received: ${JSON.stringify(this.received)}`)),
        withinMs,
      )
      this.#waiters.push(check)
      check()
    })
  }

  text(part: string): Promise<string> {
    return this.until(received => received.includes(part))
  }

  whenClosed(): Promise<string> {
    return this.until(() => this.closed || this.ended)
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter()
  }
}

/** Polls until the condition holds. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const endMs = Date.now() + patienceMs
  while (!condition()) {
    if (Date.now() > endMs) throw new Error(`gave up waiting: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
