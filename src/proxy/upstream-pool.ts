/**
 * Connections to the upstream: kept alive, handed out last in first out, bounded, with a bounded
 * queue for requests that find all of them busy. Knows no HTTP beyond the parser it keeps per
 * connection; what comes in is for the user of the connection to read.
 */
import { connect, type Socket } from 'node:net'
import { MessageParser } from './llhttp.js'
import type { ProxyLimits, ProxyTimeouts, UpstreamTarget } from './options.js'
import { Outbox } from './outbox.js'
import type { UpstreamError } from './proxy-stats.js'

/** Whoever has a connection for the time of one exchange. */
export interface UpstreamUser {
  /** The connection was asked for, none was free, and now there is one. */
  upstreamReady(connection: UpstreamConnection): void
  upstreamData(chunk: Buffer): void
  /** The upstream has closed its side in order. */
  upstreamEnd(): void
  /** The connection is gone. The user has to let go of it without releasing it. */
  upstreamLost(reason: UpstreamError): void
  upstreamDrained(): void
}

export class UpstreamConnection {
  readonly socket: Socket
  /** The way to write to the socket. */
  readonly outbox: Outbox
  readonly parser: MessageParser
  readonly #pool: UpstreamPool
  user: UpstreamUser | null = null
  /** It has carried an exchange before. */
  reused = false
  connected = false
  /** Connecting or idle until then, monotonic milliseconds; Infinity while in use. */
  deadlineMs: number
  #error: UpstreamError | null = null
  #gone = false

  constructor(pool: UpstreamPool, target: UpstreamTarget, limits: ProxyLimits, deadlineMs: number) {
    this.#pool = pool
    this.deadlineMs = deadlineMs
    this.parser = new MessageParser('response', limits)
    this.socket = connect(
      target.kind === 'unix'
        ? { path: target.path, allowHalfOpen: true }
        : { host: target.host, port: target.port, noDelay: true, allowHalfOpen: true },
    )
    this.outbox = new Outbox(this.socket)
    this.socket.on('connect', () => {
      this.connected = true
      if (this.user) this.deadlineMs = Number.POSITIVE_INFINITY
    })
    this.socket.on('data', chunk => this.#data(chunk as Buffer))
    this.socket.on('end', () => this.#end())
    this.socket.on('drain', () => this.user?.upstreamDrained())
    this.socket.on('error', error => {
      this.#error ??= this.connected ? 'reset' : reasonOf(error)
    })
    this.socket.on('close', () => this.#lost())
  }

  /** Closes at once; the user is not told. */
  destroy(): void {
    this.user = null
    this.outbox.drop()
    this.socket.destroy()
    this.#lost()
  }

  /** Closes at once and tells the user why. */
  fail(reason: UpstreamError): void {
    this.#error = reason
    this.outbox.drop()
    this.socket.destroy()
    this.#lost()
  }

  #data(chunk: Buffer): void {
    // Nobody asked: whatever this is, the next request must not take it for its answer.
    if (this.user === null) this.destroy()
    else this.user.upstreamData(chunk)
  }

  #end(): void {
    if (this.user === null) this.destroy()
    else this.user.upstreamEnd()
  }

  #lost(): void {
    if (this.#gone) return
    this.#gone = true
    this.parser.free()
    this.#pool.forget(this)
    const { user } = this
    this.user = null
    user?.upstreamLost(this.#error ?? 'reset')
  }

  get gone(): boolean {
    return this.#gone
  }
}

function reasonOf(error: Error): UpstreamError {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return 'refused'
  return code === 'ETIMEDOUT' ? 'connect-timeout' : 'connect-failed'
}

export interface UpstreamPoolOptions {
  readonly target: UpstreamTarget
  readonly limits: ProxyLimits
  readonly timeouts: ProxyTimeouts
  readonly monotonicMs: () => number
}

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions
  readonly #all = new Set<UpstreamConnection>()
  readonly #idle: UpstreamConnection[] = []
  readonly #waiting = new Set<UpstreamUser>()
  #closed = false

  constructor(options: UpstreamPoolOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  /**
   * A connection, or `queued` (the user's `upstreamReady` is called later, once), or `full`.
   * `fresh` asks for one that carried nothing yet.
   */
  acquire(user: UpstreamUser, fresh: boolean): UpstreamConnection | 'queued' | 'full' {
    const idle = fresh ? undefined : this.#idle.pop()
    if (idle) {
      idle.deadlineMs = Number.POSITIVE_INFINITY
      idle.user = user
      return idle
    }
    const { limits } = this.#options
    if (this.#all.size >= limits.upstreamsMax && this.#idle.length > 0) this.#idle[0]?.destroy()
    if (this.#all.size < limits.upstreamsMax) return this.#connect(user)
    if (this.#waiting.size >= limits.queueMax) return 'full'
    this.#waiting.add(user)
    return 'queued'
  }

  /** Takes a queued user out again. */
  cancel(user: UpstreamUser): void {
    this.#waiting.delete(user)
  }

  /** Gives a connection back whose exchange is over on both sides; it stays idle for `idleMs`. */
  release(connection: UpstreamConnection, idleMs: number): void {
    connection.user = null
    if (connection.gone) return
    connection.reused = true
    connection.parser.reset()
    if (this.#closed || idleMs <= 0 || connection.socket.readableEnded) {
      connection.destroy()
      return
    }
    const next = this.#nextWaiting()
    if (next) {
      connection.user = next
      next.upstreamReady(connection)
      return
    }
    connection.deadlineMs = this.#options.monotonicMs() + idleMs
    this.#idle.push(connection)
  }

  /** Closes what idled or tried to connect for too long. */
  sweep(nowMs: number): void {
    for (const connection of this.#all) {
      if (connection.deadlineMs > nowMs) continue
      if (connection.connected) connection.destroy()
      else connection.fail('connect-timeout')
    }
  }

  /** Closes idle connections now and all others as they are released. */
  close(): void {
    this.#closed = true
    for (const connection of [...this.#idle]) connection.destroy()
  }

  /** For connections: this one is gone. */
  forget(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    const next = this.#nextWaiting()
    if (next) next.upstreamReady(this.#connect(next))
  }

  #nextWaiting(): UpstreamUser | undefined {
    const next = this.#waiting.values().next().value
    if (next) this.#waiting.delete(next)
    return next
  }

  #connect(user: UpstreamUser): UpstreamConnection {
    const { target, limits, timeouts } = this.#options
    const deadlineMs = this.#options.monotonicMs() + timeouts.connectMs
    const connection = new UpstreamConnection(this, target, limits, deadlineMs)
    connection.user = user
    this.#all.add(connection)
    return connection
  }
}
