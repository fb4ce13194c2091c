/**
 * One client connection of HTTP/1: requests in, one after the other, each handed to an `Exchange`.
 * Here is what belongs to the connection: parsing, pipelining, keeping it alive, closing it so that
 * the last response arrives, and its deadline.
 *
 *   http ──head──> exchange ──response done──> http (idle) ──> ...
 *     │ malformed, too large, too slow             │ Connection: close, draining
 *     └──────────────> linger (written, reading what still comes, then gone) <──┘
 *   exchange ──101──> tunnel
 */
import type { Socket } from 'node:net'
import { peerText } from '../http/client-address.js'
import { canonicalIp } from '../limiter/cidr.js'
import { pause } from './client-pause.js'
import type { ProxyContext } from './context.js'
import type { Denial } from './denial-memo.js'
import { Exchange } from './exchange.js'
import { type MessageHead, MessageParser } from './llhttp.js'
import { answerText, type LocalAnswer, problemAnswer } from './local-answer.js'
import { Outbox } from './outbox.js'
import { type CheckedRequest, checkRequest } from './request-check.js'
import { RequestMemo } from './request-memo.js'

const noTrailers: readonly string[] = []

type Mode = 'http' | 'tunnel' | 'linger' | 'closed'

export class ClientConnection {
  readonly socket: Socket
  /** The way to write to the socket. */
  readonly outbox: Outbox
  readonly context: ProxyContext
  /** The peer's address, canonical, or `unix`. */
  readonly peer: string
  /** The peer is a trusted proxy. */
  readonly trusted: boolean
  /** Looked at by the sweep, monotonic milliseconds. */
  deadlineMs: number
  readonly #parser: MessageParser
  readonly #memo: RequestMemo
  readonly #onClosed: (client: ClientConnection) => void
  #mode: Mode = 'http'
  #exchange: Exchange | null = null
  #request: CheckedRequest | null = null
  /** Bytes of the next request. */
  #rest: Buffer | null = null
  /** The body of an answered request is being dropped. */
  #discarding = false
  #discardedBytes = 0
  #pauses = 0

  constructor(socket: Socket, context: ProxyContext, onClosed: (client: ClientConnection) => void) {
    this.socket = socket
    this.outbox = new Outbox(socket)
    this.context = context
    this.#onClosed = onClosed
    const peer = peerText(socket.remoteAddress)
    this.peer = canonicalIp(peer) ?? peer
    this.trusted = context.options.trusts(this.peer)
    this.#parser = new MessageParser('request', context.limits)
    this.#memo = new RequestMemo(context.memoBudget)
    this.deadlineMs = context.ports.monotonicMs() + context.timeouts.clientIdleMs
    socket.on('data', chunk => this.#data(chunk as Buffer))
    socket.on('end', () => this.#end())
    socket.on('drain', () => this.#drained())
    socket.on('finish', () => {
      if (this.#mode === 'linger') this.setDeadline(context.timeouts.lingerMs)
    })
    socket.on('error', () => {})
    socket.on('close', () => this.#closed())
  }

  /** Nothing is under way: closing it loses nothing. */
  get idle(): boolean {
    return this.#mode === 'http' && !this.#exchange && !this.#parser.started && this.#rest === null
  }

  setDeadline(fromNowMs: number): void {
    this.deadlineMs = this.context.ports.monotonicMs() + fromNowMs
  }

  /** Pauses or resumes reading for one reason. */
  setPause(reason: number, on: boolean): void {
    const before = this.#pauses
    this.#pauses = on ? before | reason : before & ~reason
    if (before === 0 && this.#pauses !== 0) this.socket.pause()
    else if (before !== 0 && this.#pauses === 0) this.socket.resume()
  }

  isPaused(reason: number): boolean {
    return (this.#pauses & reason) !== 0
  }

  #data(chunk: Buffer): void {
    if (this.#mode === 'http') {
      const rest = this.#rest
      if (rest === null && this.#repeats(chunk)) return
      this.#rest = null
      this.#read(rest === null ? chunk : Buffer.concat([rest, chunk]))
    } else if (this.#mode === 'tunnel') {
      this.#exchange?.tunnelData(chunk)
    } else {
      this.#discardedBytes += chunk.length
      if (this.#discardedBytes > this.context.limits.lingerBytesMax) this.destroy()
    }
  }

  /** The whole request is in `chunk`, and is the same as the one before. */
  #repeats(chunk: Buffer): boolean {
    const request = this.#memo.find(chunk)
    if (request === null) return false
    if (this.#exchange || this.#parser.started || this.socket.writableNeedDrain) return false
    const exchange = this.#open(request)
    exchange?.requestEnd(noTrailers)
    exchange?.flush()
    return true
  }

  #read(chunk: Buffer): void {
    const parser = this.#parser
    let at = 0
    while (at < chunk.length && this.#mode === 'http') {
      const fresh = !parser.started
      if (fresh) {
        if (this.#exchange || this.socket.writableNeedDrain) {
          this.#rest = chunk.subarray(at)
          this.setPause(pause.pipeline, true)
          break
        }
      }
      const from = at
      at = parser.feed(chunk, at)
      if (parser.error !== null) {
        this.#parseFailed()
        return
      }
      // The time for a head counts from its first byte, not from its latest.
      if (fresh && !parser.head) this.setDeadline(this.context.timeouts.requestHeadMs)
      if (parser.headFresh && parser.head) {
        const alone = fresh && parser.complete && from === 0 && at === chunk.length
        this.#begin(parser.head, alone ? chunk : null)
      }
      // Refused: what follows on this connection is not looked at any more.
      if (this.#mode !== 'http') return
      if (parser.body) this.#body(parser.body)
      if (parser.complete) this.#requestEnd()
    }
    this.#exchange?.flush()
  }

  /** `whole`: the bytes of the request, where one read brought them and nothing else. */
  #begin(head: MessageHead, whole: Buffer | null): void {
    const { context } = this
    this.#request = null
    const checked = checkRequest(head, context.limits.targetBytesMax)
    if (!checked.ok) {
      const { status, detail } = checked.refusal
      context.counters.refused[status === 414 ? 'too-large' : 'malformed']++
      this.answer(problemAnswer(status, detail))
      return
    }
    if (whole) this.#memo.keep(whole, checked.request)
    const exchange = this.#open(checked.request)
    if (!this.#parser.complete) exchange?.holdBody()
  }

  /** Begins the exchange; null: it is over already. */
  #open(request: CheckedRequest): Exchange | null {
    const { context } = this
    this.#request = request
    if (context.closing) {
      context.counters.refused.draining++
      this.answer(problemAnswer(503, 'This server is shutting down.', ['Retry-After', '1']), false)
      return null
    }
    this.#exchange = new Exchange(this, request)
    this.#exchange.start()
    return this.#exchange
  }

  #body(body: Buffer): void {
    if (this.#exchange) {
      this.#exchange.requestBody(body)
      return
    }
    this.#discardedBytes += body.length
    if (this.#discardedBytes > this.context.limits.lingerBytesMax) this.endAndLinger()
  }

  #requestEnd(): void {
    if (this.#mode !== 'http') return
    const { trailers } = this.#parser
    this.#parser.reset()
    if (this.#exchange) {
      this.#exchange.requestEnd(trailers)
      return
    }
    this.#discarding = false
    this.#becomeIdle()
  }

  #parseFailed(): void {
    const { error } = this.#parser
    const { refused } = this.context.counters
    const tooLarge = error === 'head-too-large'
    refused[tooLarge ? 'too-large' : 'malformed']++
    const answer = tooLarge
      ? problemAnswer(431, 'The header fields are too many or too large.')
      : error === 'http2-preface'
        ? problemAnswer(505, 'This listener speaks HTTP/1.1.')
        : problemAnswer(400, 'The request is not well-formed HTTP/1.1.')
    const exchange = this.#exchange
    if (exchange) {
      exchange.requestBroken(answer)
      return
    }
    if (this.#discarding) {
      this.endAndLinger()
      return
    }
    this.#request = null
    this.answer(answer)
  }

  /**
   * Answers the request under way without the upstream. Kept alive unless `mayKeep` is false, the
   * client wants otherwise, or more of its body would have to be read than is worth it.
   */
  answer(answer: LocalAnswer, mayKeep = true): void {
    const wallMs = this.context.ports.engine.wallMs()
    this.answerText(
      answer.status,
      { text: (connection, toHead) => answerText(answer, connection, toHead, wallMs) },
      mayKeep,
    )
  }

  /** As `answer`, with a text that may be there already. */
  answerText(status: number, answer: Pick<Denial, 'text'>, mayKeep = true): void {
    const request = this.#request
    this.#exchange = null
    if (this.#pauses !== 0) this.setPause(pause.upstream | pause.hold, false)
    const keep = mayKeep && request !== null && this.#canKeep(request)
    const connection = keep ? this.keepWord(request) : 'close'
    this.context.counters.countStatus(status)
    this.outbox.send(answer.text(connection, request?.method === 'HEAD'), null, '')
    if (keep) this.#afterResponse()
    else this.endAndLinger()
  }

  /** How an answer tells the client that the connection stays. */
  keepWord(request: CheckedRequest): 'keep' | 'silent' {
    return request.head.minor === 0 ? 'keep' : 'silent'
  }

  #canKeep(request: CheckedRequest): boolean {
    if (!request.head.keepAlive || this.context.draining) return false
    if (!this.#parser.started || this.#parser.complete) return true
    if (request.expectsContinue || request.bodyBytes < 0) return false
    return request.bodyBytes <= this.context.limits.lingerBytesMax
  }

  /** For the exchange: the response is written whole. `keep`: the connection may carry another. */
  exchangeDone(keep: boolean): void {
    this.#exchange = null
    if (!keep || this.context.closing) {
      this.endAndLinger()
      return
    }
    this.setPause(pause.upstream | pause.hold, false)
    this.#afterResponse()
    this.#readRest()
  }

  /** A request may still be under way although it is answered: the rest of its body is dropped. */
  #afterResponse(): void {
    this.#discardedBytes = 0
    this.#discarding = this.#parser.started && !this.#parser.complete
    if (this.#discarding) this.setDeadline(this.context.timeouts.lingerMs)
    else this.#becomeIdle()
  }

  #becomeIdle(): void {
    this.#request = null
    this.setDeadline(this.context.timeouts.clientIdleMs)
  }

  #readRest(): void {
    const rest = this.#rest
    if (rest === null || this.#exchange || this.#mode !== 'http') return
    this.#rest = null
    this.setPause(pause.pipeline, false)
    this.#read(rest)
  }

  /** For the exchange: from now on bytes go through as they are. Returns those that came early. */
  becomeTunnel(): Buffer | null {
    this.#mode = 'tunnel'
    const rest = this.#rest
    this.#rest = null
    this.setPause(pause.upstream | pause.hold | pause.pipeline, false)
    return rest
  }

  /**
   * Ends the connection so that what was written arrives: closing while the client still sends
   * would reset it, and the reset may overtake the response.
   */
  endAndLinger(): void {
    if (this.#mode === 'linger' || this.#mode === 'closed') return
    this.#mode = 'linger'
    this.#rest = null
    this.#discardedBytes = 0
    this.#exchange = null
    this.setDeadline(this.context.timeouts.bodyIdleMs)
    this.outbox.end()
    this.setPause(pause.upstream | pause.hold | pause.pipeline, false)
  }

  destroy(): void {
    this.outbox.drop()
    this.socket.destroy()
  }

  /**
   * Ends a response that cannot be finished. `reset`: an orderly close would make it look whole.
   */
  cut(reset: boolean): void {
    this.outbox.flush()
    if (reset) this.socket.resetAndDestroy()
    else this.socket.destroy()
  }

  /** For the sweep: the deadline has passed. */
  timedOut(): void {
    if (this.#exchange) this.#exchange.timedOut()
    else if (this.#mode !== 'http' || this.#discarding) this.destroy()
    else if (this.#parser.started) {
      this.context.counters.refused['head-timeout']++
      this.#request = null
      this.answer(problemAnswer(408, 'The request head took too long.'))
    } else this.endAndLinger()
  }

  #end(): void {
    if (this.#mode === 'tunnel') {
      this.#exchange?.tunnelEnd()
      return
    }
    if (this.#exchange) {
      // Nobody is there to read the answer: as nginx and Envoy do, half a close counts as a whole.
      this.destroy()
      return
    }
    this.endAndLinger()
  }

  #drained(): void {
    this.#exchange?.clientDrained()
    this.#readRest()
  }

  #closed(): void {
    if (this.#mode === 'closed') return
    this.#mode = 'closed'
    const exchange = this.#exchange
    this.#exchange = null
    exchange?.clientGone()
    this.#rest = null
    this.#parser.free()
    this.#memo.forget()
    this.#onClosed(this)
  }
}
