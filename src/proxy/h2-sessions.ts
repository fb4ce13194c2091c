/**
 * HTTP/2 sessions to the upstream. One carries many streams; another is opened when those that are
 * open are full, up to a bound, beyond which node:http2 queues streams by itself.
 */
import { type ClientHttp2Session, connect as connectH2 } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import type { ProxyTimeouts, UpstreamTarget } from './options.js'
import type { UpstreamError } from './proxy-stats.js'

/** Streams on one session before another is opened; servers commonly allow 100. */
const streamsPerSession = 100

export interface H2Slot {
  readonly session: ClientHttp2Session
  streams: number
  /** Why its streams fail; set before they are told. */
  error: UpstreamError
}

export interface H2SessionsOptions {
  readonly target: UpstreamTarget
  readonly timeouts: ProxyTimeouts
  readonly sessionsMax: number
  readonly streamsMax: number
  /** Greatest header list in bytes that the upstream may send. */
  readonly headBytesMax: number
}

export class H2Sessions {
  readonly #options: H2SessionsOptions
  readonly #slots = new Set<H2Slot>()
  #streams = 0

  constructor(options: H2SessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#slots.size
  }

  /** A place for one stream, to be given back with `release`; null when all are taken. */
  take(): H2Slot | null {
    if (this.#streams >= this.#options.streamsMax) return null
    let best: H2Slot | null = null
    for (const slot of this.#slots) if (!best || slot.streams < best.streams) best = slot
    const full = best === null || best.streams >= streamsPerSession
    const slot = full && this.#slots.size < this.#options.sessionsMax ? this.#open() : best
    if (slot === null) return null
    slot.streams++
    this.#streams++
    return slot
  }

  release(slot: H2Slot): void {
    slot.streams--
    this.#streams--
    if (slot.streams === 0 && !this.#slots.has(slot)) slot.session.close()
  }

  close(): void {
    for (const slot of this.#slots) slot.session.destroy()
    this.#slots.clear()
  }

  #open(): H2Slot {
    const { target, timeouts, headBytesMax } = this.#options
    const socket =
      target.kind === 'unix'
        ? connectTcp({ path: target.path })
        : connectTcp({ host: target.host, port: target.port, noDelay: true })
    const session = connectH2('http://upstream', {
      createConnection: () => socket,
      settings: { enablePush: false, maxHeaderListSize: headBytesMax },
      maxSessionMemory: 64,
    })
    const slot: H2Slot = { session, streams: 0, error: 'reset' }
    const timer = setTimeout(() => {
      slot.error = 'connect-timeout'
      session.destroy()
    }, timeouts.connectMs)
    session.once('connect', () => clearTimeout(timer))
    // Streams are told before the session's own 'error': the socket's comes first.
    socket.prependListener('error', error => {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ECONNREFUSED' || code === 'ENOENT') slot.error = 'refused'
    })
    session.on('error', () => {})
    // No new streams on a session whose server is leaving; those that run may end.
    session.on('goaway', () => this.#slots.delete(slot))
    session.on('close', () => {
      clearTimeout(timer)
      this.#slots.delete(slot)
    })
    session.setTimeout(timeouts.clientIdleMs, () => {
      if (slot.streams === 0) session.close()
    })
    this.#slots.add(slot)
    return slot
  }
}
