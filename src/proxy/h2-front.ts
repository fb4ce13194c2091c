/**
 * The listening side for an h2c upstream: clients speak HTTP/2 with prior knowledge, as gRPC does
 * on plain TCP. Others are told so and closed.
 */
import { constants, createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { peerText } from '../http/client-address.js'
import { canonicalIp } from '../limiter/cidr.js'
import { type H2Context, H2Exchange, type H2Peer } from './h2-exchange.js'
import { answerText, problemAnswer } from './local-answer.js'

/** The client's connection preface begins with this; no method of HTTP/1 does. */
const preface = 'PRI * HTTP/2.0'

/** Streams that a client may have open at a time. */
const clientStreamsMax = 256

export class H2Front {
  readonly #context: H2Context
  readonly #server: Http2Server
  readonly #sessions = new Set<ServerHttp2Session>()
  #onEmpty: (() => void) | null = null

  constructor(context: H2Context) {
    this.#context = context
    const { limits } = context
    this.#server = createServer({
      settings: {
        maxConcurrentStreams: clientStreamsMax,
        maxHeaderListSize: limits.headBytesMax,
        enablePush: false,
      },
      maxHeaderListPairs: limits.headerCountMax,
      maxSessionMemory: 16,
      maxSessionInvalidFrames: 100,
      maxSessionRejectedStreams: 100,
    })
    this.#server.on('session', session => this.#session(session))
    this.#server.on('sessionError', () => {})
  }

  get sessions(): number {
    return this.#sessions.size
  }

  /** Takes a fresh connection; looks at its first bytes before HTTP/2 does. */
  accept(socket: Socket): void {
    let seen = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.setTimeout(this.#context.timeouts.requestHeadMs, () => socket.destroy())
    const look = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk])
      const start = seen.toString('latin1', 0, preface.length)
      if (!preface.startsWith(start)) {
        socket.removeListener('data', look)
        this.#refuse(socket)
      } else if (start.length === preface.length) {
        socket.removeListener('data', look)
        socket.pause()
        socket.setTimeout(0)
        socket.removeAllListeners('timeout')
        socket.unshift(seen)
        this.#server.emit('connection', socket)
      }
    }
    socket.on('data', look)
    socket.on('end', () => {
      if (seen.length < preface.length) socket.end()
    })
  }

  /** Tells clients to open no more streams on their connections (GOAWAY); those that run go on. */
  drain(): void {
    for (const session of this.#sessions) session.close()
  }

  /** Resolves when no session is left. */
  empty(): Promise<void> {
    if (this.#sessions.size === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.#onEmpty = resolve
    })
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy()
  }

  #refuse(socket: Socket): void {
    const { counters, ports } = this.#context
    counters.refused.malformed++
    const answer = problemAnswer(505, 'This listener speaks HTTP/2 with prior knowledge (h2c).')
    socket.end(answerText(answer, 'close', false, ports.engine.wallMs()), 'latin1')
    socket.setTimeout(this.#context.timeouts.lingerMs, () => socket.destroy())
    socket.resume()
  }

  #session(session: ServerHttp2Session): void {
    const { options, timeouts } = this.#context
    const text = peerText(session.socket.remoteAddress)
    const address = canonicalIp(text) ?? text
    const peer: H2Peer = { address, trusted: options.trusts(address) }
    let streams = 0
    this.#sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      this.#sessions.delete(session)
      if (this.#sessions.size === 0) this.#onEmpty?.()
    })
    session.on('stream', (stream, headers, flags) => {
      streams++
      stream.on('close', () => {
        streams--
      })
      const bodiless = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      new H2Exchange(this.#context, peer, stream, headers, bodiless).start()
    })
    session.setTimeout(timeouts.clientIdleMs, () => {
      if (streams === 0) session.close()
    })
  }
}
