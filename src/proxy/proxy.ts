/**
 * The reverse proxy: a listener, its connections, the pool to the upstream, and one timer that looks
 * at all deadlines. Requests are decided by the engine that it is given; see docs/decisions/0004 for
 * why it stands on plain sockets and llhttp.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Address } from '../vocabulary.js'
import { ClientConnection } from './client-connection.js'
import type { ProxyContext } from './context.js'
import { defaultLimits, defaultTimeouts, type ProxyOptions, type ProxyPorts } from './options.js'
import { ProxyCounters, type ProxyStats } from './proxy-stats.js'
import { UpstreamPool } from './upstream-pool.js'

export class ReverseProxy {
  readonly #context: ProxyContext
  readonly #server: Server
  readonly #clients = new Set<ClientConnection>()
  #sweep: NodeJS.Timeout | null = null
  #onIdle: (() => void) | null = null

  constructor(options: ProxyOptions, ports: ProxyPorts) {
    const timeouts = { ...defaultTimeouts, ...options.timeouts }
    const limits = { ...defaultLimits, ...options.limits }
    const { upstream } = options
    this.#context = {
      options,
      ports,
      timeouts,
      limits,
      pool: new UpstreamPool({
        target: upstream,
        limits,
        timeouts,
        monotonicMs: ports.monotonicMs,
      }),
      counters: new ProxyCounters(),
      upstreamHost: upstream.kind === 'unix' ? 'localhost' : hostOf(upstream.host, upstream.port),
      draining: false,
      closing: false,
    }
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, socket =>
      this.#accept(socket),
    )
    this.#server.maxConnections = limits.clientsMax
    this.#server.on('drop', () => {
      this.#context.counters.clientsOverflow++
    })
  }

  /** Starts to listen. Rejects with the system's error when the address cannot be had. */
  listen(): Promise<Address> {
    const { host, port } = this.#context.options.listen
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.removeListener('error', reject)
        // A connection that cannot be accepted (no descriptors left) is no reason to fall over.
        this.#server.on('error', () => {
          this.#context.counters.clientsOverflow++
        })
        this.#sweep = setInterval(() => this.#sweepNow(), this.#context.timeouts.sweepMs)
        const bound = this.#server.address()
        if (bound === null || typeof bound === 'string') resolve({ host, port })
        else resolve({ host: bound.address, port: bound.port })
      })
    })
  }

  /** From now on each response asks its client to close the connection; everything is still served. */
  drain(): void {
    this.#context.draining = true
  }

  /**
   * Stops listening, lets running requests finish for up to `graceMs` milliseconds, then cuts what
   * is left. New requests on open connections get 503. Resolves when no connection is left.
   */
  async close(graceMs: number): Promise<void> {
    this.#context.draining = true
    this.#context.closing = true
    this.#server.close()
    for (const client of this.#clients) if (client.idle) client.endAndLinger()
    await this.#noClients(graceMs)
    for (const client of this.#clients) client.destroy()
    await this.#noClients(Number.POSITIVE_INFINITY)
    this.#context.pool.close()
    if (this.#sweep) clearInterval(this.#sweep)
  }

  get stats(): ProxyStats {
    const { counters, pool } = this.#context
    const { inflight, tunnels, requests, upstreamErrors, refused, retries, clientsOverflow } =
      counters
    return {
      inflight,
      clients: this.#clients.size,
      upstreams: pool.size,
      tunnels,
      requests: { ...requests },
      upstreamErrors: { ...upstreamErrors },
      refused: { ...refused },
      retries,
      clientsOverflow,
    }
  }

  #accept(socket: Socket): void {
    const client = new ClientConnection(socket, this.#context, gone => {
      this.#clients.delete(gone)
      if (this.#clients.size === 0) this.#onIdle?.()
    })
    this.#clients.add(client)
  }

  /** Resolves once no client is connected, or after `graceMs`. */
  #noClients(graceMs: number): Promise<void> {
    if (this.#clients.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = Number.isFinite(graceMs) ? setTimeout(resolve, graceMs) : undefined
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #sweepNow(): void {
    const nowMs = this.#context.ports.monotonicMs()
    for (const client of this.#clients) if (client.deadlineMs <= nowMs) client.timedOut()
    this.#context.pool.sweep(nowMs)
  }
}

function hostOf(host: string, port: number): string {
  const name = host.includes(':') ? `[${host}]` : host
  return port === 80 ? name : `${name}:${port}`
}
