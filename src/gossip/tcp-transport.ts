/**
 * Streams of the gossip port: a listener and outgoing connections under one numbering. Every stream
 * has a deadline, their number has a maximum, and one that sends much yields the loop between
 * chunks.
 *
 *   accepted | dialled --data*--> [ended(null) when the peer half-closes] --close--> flushed, gone
 *                      \-- ended(reason): refused, reset, or the deadline passed; gone
 *
 * It never calls its listener from inside one of its own methods.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { StreamId } from '../swim/effects.js'
import type { Address } from '../vocabulary.js'
import { fromSocket } from './socket-address.js'

/** Incoming streams at once; memberlist stops answering state exchanges at 128 as well. */
const inboundStreamsMax = 128
/** Outgoing streams at once: exchanges, and TCP pings of probes that found UDP silent. */
const outboundStreamsMax = 64
/** A whole incoming exchange (memberlist's TCPTimeout, LAN), and again for flushing the answer. */
const inboundTimeoutMs = 10_000
/**
 * How long a closed stream waits for the peer's end, so that a reset cannot overtake the answer.
 */
const lingerMs = 2_000
const backlogMax = 128

export interface TcpStats {
  accepted: number
  dialled: number
  bytesIn: number
  bytesOut: number
  /**
   * Incoming streams closed at once because `inboundStreamsMax` were open or the caller may not.
   */
  refused: number
  /** Dials given up because `outboundStreamsMax` were open. */
  dialsRefused: number
  /** Streams cut because their time was over. */
  timedOut: number
  /** Streams that ended in an error other than the deadline. */
  failed: number
}

export interface StreamListener {
  /** A stream came in; null refuses it. */
  streamAccepted(from: Address): StreamId | null
  streamData(stream: StreamId, bytes: Uint8Array): void
  /** `error` null: the peer finished sending. Otherwise the stream is gone. */
  streamEnded(stream: StreamId, error: string | null): void
}

interface OpenStream {
  readonly id: StreamId
  readonly socket: Socket
  readonly inbound: boolean
  deadline: NodeJS.Timeout
}

export class TcpTransport {
  readonly stats: TcpStats = {
    accepted: 0,
    dialled: 0,
    bytesIn: 0,
    bytesOut: 0,
    refused: 0,
    dialsRefused: 0,
    timedOut: 0,
    failed: 0,
  }
  readonly #server: Server
  readonly #streams = new Map<StreamId, OpenStream>()
  /** Every socket that is not yet closed, lingering ones included, with its direction. */
  readonly #sockets = new Map<Socket, 'in' | 'out'>()
  #inboundCount = 0
  #listener: StreamListener | null = null
  #closed = false

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', socket => this.#accept(socket))
    // An accept that fails (no descriptors left) concerns that connection only.
    server.on('error', () => {
      this.stats.failed += 1
    })
  }

  /** Listens; rejects with the system's error (EADDRINUSE, EACCES). */
  static listen(host: string, port: number): Promise<TcpTransport> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, backlog: backlogMax, exclusive: true }, () => {
        server.off('error', reject)
        resolve(new TcpTransport(server))
      })
    })
  }

  get port(): number {
    const address = this.#server.address()
    return address !== null && typeof address === 'object' ? address.port : 0
  }

  attach(listener: StreamListener): void {
    this.#listener = listener
  }

  /** Dials and writes `bytes` once connected; the whole stream may last `timeoutMs`. */
  dial(stream: StreamId, to: Address, bytes: Uint8Array, timeoutMs: number): void {
    if (this.#closed) return
    if (this.#sockets.size - this.#inboundCount >= outboundStreamsMax) {
      this.stats.dialsRefused += 1
      setImmediate(() => this.#listener?.streamEnded(stream, 'too many outgoing streams'))
      return
    }
    if (to.port < 1 || to.port > 65_535) {
      setImmediate(() => this.#listener?.streamEnded(stream, `port ${to.port} cannot be dialled`))
      return
    }
    this.stats.dialled += 1
    const socket = connect({ host: to.host, port: to.port, allowHalfOpen: true, noDelay: true })
    this.#track(stream, socket, false, timeoutMs)
    this.write(stream, bytes)
  }

  write(stream: StreamId, bytes: Uint8Array): void {
    const open = this.#streams.get(stream)
    if (open === undefined || bytes.length === 0) return
    this.stats.bytesOut += bytes.length
    open.socket.write(bytes)
  }

  /** Flushes and closes; nothing more is reported about this stream. */
  close(stream: StreamId): void {
    const open = this.#streams.get(stream)
    if (open === undefined) return
    this.#forget(open)
    const { socket } = open
    socket.resume()
    const flush = setTimeout(() => socket.destroy(), inboundTimeoutMs)
    let linger: NodeJS.Timeout | undefined
    socket.once('close', () => {
      clearTimeout(flush)
      clearTimeout(linger)
    })
    socket.end(() => {
      if (socket.readableEnded) socket.destroy()
      else linger = setTimeout(() => socket.destroy(), lingerMs)
    })
    socket.once('end', () => {
      if (socket.writableFinished) socket.destroy()
    })
  }

  /** Stops listening and cuts every stream. */
  shutdown(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    this.#closed = true
    this.#listener = null
    for (const open of [...this.#streams.values()]) this.#forget(open)
    for (const socket of this.#sockets.keys()) socket.destroy()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }

  #accept(socket: Socket): void {
    const from = fromSocket(socket.remoteAddress, socket.remotePort)
    const stream =
      this.#inboundCount >= inboundStreamsMax
        ? null
        : (this.#listener?.streamAccepted(from) ?? null)
    if (stream === null) {
      this.stats.refused += 1
      socket.on('error', () => {})
      socket.destroy()
      return
    }
    this.stats.accepted += 1
    this.#track(stream, socket, true, inboundTimeoutMs)
  }

  #track(id: StreamId, socket: Socket, inbound: boolean, timeoutMs: number): void {
    const deadline = setTimeout(() => {
      this.stats.timedOut += 1
      this.#fail(open, 'timed out')
    }, timeoutMs)
    const open: OpenStream = { id, socket, inbound, deadline }
    this.#streams.set(id, open)
    this.#sockets.set(socket, inbound ? 'in' : 'out')
    if (inbound) this.#inboundCount += 1
    socket.on('data', bytes => this.#read(open, bytes))
    socket.on('end', () => {
      if (this.#streams.has(id)) this.#listener?.streamEnded(id, null)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (!this.#streams.has(id)) return
      this.stats.failed += 1
      this.#fail(open, error.code ?? error.message)
    })
    socket.on('close', () => {
      this.#sockets.delete(socket)
      if (inbound) this.#inboundCount -= 1
      if (this.#streams.has(id)) this.#fail(open, 'closed')
    })
  }

  #read(open: OpenStream, bytes: Uint8Array): void {
    this.stats.bytesIn += bytes.length
    if (!this.#streams.has(open.id)) return
    // One chunk per turn of the loop: a state exchange of megabytes must not hold requests up.
    open.socket.pause()
    setImmediate(() => open.socket.resume())
    this.#listener?.streamData(open.id, bytes)
  }

  #fail(open: OpenStream, reason: string): void {
    this.#forget(open)
    open.socket.destroy()
    this.#listener?.streamEnded(open.id, reason)
  }

  #forget(open: OpenStream): void {
    clearTimeout(open.deadline)
    this.#streams.delete(open.id)
  }
}
