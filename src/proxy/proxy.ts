/**
 * The reverse proxy: a listener, its connections, the pool to the upstream, and one timer that
 * looks at all deadlines. Requests are decided by the engine that it is given; see
 * docs/decisions/0004 for why it stands on plain sockets and llhttp.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Address } from '../vocabulary.js'
import { ClientConnection } from './client-connection.js'
import type { ProxyContext } from './context.js'
import { DenialMemo } from './denial-memo.js'
import { H2Front } from './h2-front.js'
import { H2Sessions } from './h2-sessions.js'
import { defaultLimits, defaultTimeouts, type ProxyOptions, type ProxyPorts } from './options.js'
import { ProxyCounters, type ProxyStats } from './proxy-stats.js'
import { MemoBudget } from './request-memo.js'
import { defaultStaleLimits, StaleCache } from './stale-cache.js'
import { UpstreamPool } from './upstream-pool.js'

/** Connections to an h2c upstream at most; each carries a hundred streams and more. */
const h2SessionsMax = 16

export class ReverseProxy {
  readonly #context: ProxyContext
  readonly #server: Server
  readonly #clients = new Set<ClientConnection>()
  #sweep: NodeJS.Timeout | null = null
  #onIdle: (() => void) | null = null
  /** In place of `ClientConnection`s and the pool when the upstream speaks h2c. */
  readonly #h2: { readonly front: H2Front; readonly sessions: H2Sessions } | null

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
      denials: new DenialMemo(options, ports),
      memoBudget: new MemoBudget(),
      stale: new StaleCache({ ...defaultStaleLimits, ...options.stale }, ports.monotonicMs),
      upstreamHost: upstream.kind === 'unix' ? 'localhost' : hostOf(upstream.host, upstream.port),
      draining: false,
      closing: false,
    }
    this.#h2 = upstream.kind === 'h2c' ? this.#h2Parts() : null
    // With HTTP/1 an answer must get out although the client has closed its side; node:http2 waits
    // for the close of the whole connection.
    const allowHalfOpen = this.#h2 === null
    this.#server = createServer({ noDelay: true, allowHalfOpen }, socket => this.#accept(socket))
    this.#server.maxConnections = limits.clientsMax
    this.#server.on('drop', () => {
      this.#context.counters.clientsOverflow++
    })
  }

  #h2Parts(): { readonly front: H2Front; readonly sessions: H2Sessions } {
    const { options, ports, timeouts, limits, counters } = this.#context
    const sessions = new H2Sessions({
      target: options.upstream,
      timeouts,
      sessionsMax: h2SessionsMax,
      streamsMax: limits.upstreamsMax + limits.queueMax,
      headBytesMax: limits.headBytesMax,
    })
    const front = new H2Front({ options, ports, timeouts, limits, counters, sessions })
    return { front, sessions }
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

  /**
   * From now on each response asks its client to close the connection; everything is still served.
   */
  drain(): void {
    this.#context.draining = true
    this.#h2?.front.drain()
  }

  /**
   * Stops listening, lets running requests finish for up to `graceMs` milliseconds, then cuts what
   * is left. New requests on open connections get 503. Resolves when no connection is left.
   */
  async close(graceMs: number): Promise<void> {
    this.drain()
    this.#context.closing = true
    this.#server.close()
    for (const client of this.#clients) if (client.idle) client.endAndLinger()
    await this.#noClients(graceMs)
    for (const client of this.#clients) client.destroy()
    this.#h2?.front.destroy()
    await this.#noClients(Number.POSITIVE_INFINITY)
    this.#context.pool.close()
    this.#h2?.sessions.close()
    if (this.#sweep) clearInterval(this.#sweep)
  }

  get stats(): ProxyStats {
    const { counters, pool } = this.#context
    const { inflight, tunnels, requests, upstreamErrors, refused, retries, stale } = counters
    const { clientsOverflow } = counters
    return {
      inflight,
      clients: this.#clients.size + (this.#h2?.front.sessions ?? 0),
      upstreams: pool.size + (this.#h2?.sessions.size ?? 0),
      tunnels,
      requests: { ...requests },
      upstreamErrors: { ...upstreamErrors },
      refused: { ...refused },
      retries,
      stale,
      clientsOverflow,
    }
  }

  #accept(socket: Socket): void {
    if (this.#h2) {
      this.#h2.front.accept(socket)
      return
    }
    const client = new ClientConnection(socket, this.#context, gone => {
      this.#clients.delete(gone)
      if (this.#clients.size === 0) this.#onIdle?.()
    })
    this.#clients.add(client)
  }

  /** Resolves once no client is connected, or after `graceMs`. */
  async #noClients(graceMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const grace = new Promise<void>(resolve => {
      if (Number.isFinite(graceMs)) timer = setTimeout(resolve, graceMs)
    })
    const empty = new Promise<void>(resolve => {
      this.#onIdle = resolve
      if (this.#clients.size === 0) resolve()
    })
    await Promise.race([grace, Promise.all([empty, this.#h2?.front.empty()])])
    clearTimeout(timer)
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
