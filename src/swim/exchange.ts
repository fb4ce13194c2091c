/**
 * Streams: one request and at most one answer, then both sides close (memberlist net.go handleConn,
 * sendAndReceiveState, sendPingAndWaitForAck, sendUserMsg).
 *
 *     dialler                         listener
 *        | push/pull, own state ---------> |
 *        | <--------- push/pull, own state |  (sent before it merges)
 *        | ping -------------------------> |
 *        | <------------------------- ack  |
 *        | user message -----------------> |  (no answer; the listener closes)
 */
import type { Address } from '../vocabulary.js'
import { encodeStream, type StreamDirection } from './codec/stream.js'
import { StreamDecoder, type StreamResult } from './codec/stream-decoder.js'
import type { SwimContext, Timed } from './context.js'
import type { StreamId } from './effects.js'
import { mergeExchange, ownState } from './exchange-state.js'
import type { Ping, PushPull, StreamMessage } from './messages.js'
import type { Transitions } from './transitions.js'

/** All open streams together may have read this many times what one may. */
const exchangesBuffered = 4

type Purpose =
  | { readonly kind: 'answer' }
  | { readonly kind: 'pushPull'; readonly join: boolean; readonly reported: boolean }
  | { readonly kind: 'ping'; readonly sequence: number }
  | { readonly kind: 'user' }

interface Stream {
  readonly id: StreamId
  readonly peer: Address
  readonly purpose: Purpose
  readonly decoder: StreamDecoder
  readonly deadlineMs: number
  bytesIn: number
}

export interface ExchangeParts {
  readonly transitions: Transitions
  /** The answer to a TCP ping came. */
  readonly pingAnswered: (stream: StreamId, sequence: number) => void
}

export class Exchanges implements Timed {
  readonly #context: SwimContext
  readonly #parts: ExchangeParts
  readonly #streams = new Map<StreamId, Stream>()
  #lastId: StreamId = 0
  #accepted = 0
  #bufferedBytes = 0

  constructor(context: SwimContext, parts: ExchangeParts) {
    this.#context = context
    this.#parts = parts
  }

  /** Open streams, both directions. */
  get size(): number {
    return this.#streams.size
  }

  nextDeadlineMs(): number {
    let deadlineMs = Infinity
    for (const stream of this.#streams.values()) {
      deadlineMs = Math.min(deadlineMs, stream.deadlineMs)
    }
    return deadlineMs
  }

  advance(nowMs: number): void {
    for (const stream of [...this.#streams.values()]) {
      if (nowMs >= stream.deadlineMs) this.#fail(stream, 'timed out')
    }
  }

  // --- dialling

  /** `reported`: the caller wants an `exchangeSettled`. */
  openPushPull(
    to: Address,
    how: { readonly join: boolean; readonly reported: boolean },
    nowMs: number,
  ): void {
    const { stats } = this.#context.effects
    stats.pushPullsOpened += 1
    const purpose = { kind: 'pushPull', ...how } as const
    if (this.#isFull()) {
      this.#settlePushPull(to, purpose, 'too many streams')
      return
    }
    const sent = this.#dial(to, purpose, ownState(this.#context, how.join, nowMs), nowMs)
    stats.pushPullBytesOut += sent.bytes
  }

  /** Null if there are too many streams. */
  openPing(to: Address, ping: Ping, timeoutMs: number, nowMs: number): StreamId | null {
    if (this.#isFull()) return null
    this.#context.effects.stats.streamPingsOut += 1
    const purpose = { kind: 'ping', sequence: ping.sequence } as const
    return this.#dial(to, purpose, ping, nowMs, timeoutMs).id
  }

  /** False if there are too many streams. */
  openUser(to: Address, payload: Uint8Array, nowMs: number): boolean {
    if (this.#isFull()) return false
    this.#context.effects.stats.streamUserMessagesOut += 1
    this.#dial(to, { kind: 'user' }, { kind: 'user', payload }, nowMs)
    return true
  }

  // --- listening

  accept(from: Address, nowMs: number): StreamId | null {
    const { options, effects } = this.#context
    const welcome = options.allowed?.(from.host) !== false
    if (!welcome || this.#accepted >= options.streamsMax) {
      effects.stats.streamsRefused += 1
      return null
    }
    effects.stats.streamsAccepted += 1
    this.#accepted += 1
    return this.#add(from, { kind: 'answer' }, nowMs + options.tcpTimeoutMs).id
  }

  // --- what sockets report

  handleData(id: StreamId, bytes: Uint8Array, nowMs: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    const { effects, options } = this.#context
    effects.stats.streamBytesIn += bytes.length
    stream.bytesIn += bytes.length
    this.#bufferedBytes += bytes.length
    const bufferedMax = options.exchangeBytesMax * exchangesBuffered
    if (stream.bytesIn > options.exchangeBytesMax || this.#bufferedBytes > bufferedMax) {
      effects.drop('tooLarge', stream.peer, nowMs)
      this.#fail(stream, 'exchange too large')
      return
    }
    const result = stream.decoder.push(bytes)
    if (result !== null) this.#handleResult(stream, result, nowMs)
  }

  handleEnd(id: StreamId, error: string | null, nowMs: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    if (stream.purpose.kind === 'user' && error === null) {
      this.#close(stream)
      return
    }
    if (error !== null) {
      this.#fail(stream, error)
      return
    }
    this.#handleResult(stream, stream.decoder.end(), nowMs)
  }

  // --- inside

  #handleResult(stream: Stream, result: StreamResult, nowMs: number): void {
    if (stream.purpose.kind === 'answer') {
      this.#answer(stream, result, nowMs)
      return
    }
    if (!result.ok) {
      this.#context.effects.drop(result.error, stream.peer, nowMs)
      this.#fail(stream, failureText(result.error))
      return
    }
    if (result.message.kind === 'error') {
      this.#context.effects.stats.streamErrorMessagesIn += 1
      this.#fail(stream, `remote error: ${result.message.text}`)
      return
    }
    const { purpose } = stream
    if (purpose.kind === 'pushPull' && result.message.kind === 'pushPull') {
      this.#context.effects.stats.pushPullBytesIn += stream.bytesIn
      this.#close(stream)
      const error = this.#merge(result.message, purpose.join, nowMs)
      this.#settlePushPull(stream.peer, purpose, error)
      return
    }
    if (purpose.kind === 'ping' && result.message.kind === 'ack') {
      const { sequence } = result.message
      if (sequence !== purpose.sequence) {
        this.#fail(stream, 'ack of another ping')
        return
      }
      this.#close(stream)
      this.#parts.pingAnswered(stream.id, sequence)
      return
    }
    this.#fail(stream, `unexpected answer: ${result.message.kind}`)
  }

  #answer(stream: Stream, result: StreamResult, nowMs: number): void {
    const { effects, options, delegate } = this.#context
    if (!result.ok) {
      this.#refuse(stream, result, nowMs)
      return
    }
    const { message } = result
    switch (message.kind) {
      case 'pushPull':
        this.#answerPushPull(stream, message, nowMs)
        return
      case 'ping':
        effects.stats.streamPingsIn += 1
        if (message.node !== '' && message.node !== options.name) {
          effects.drop('wrongName', stream.peer, nowMs)
        } else {
          this.#write(stream.id, { kind: 'ack', sequence: message.sequence, payload: null })
        }
        break
      case 'user':
        effects.stats.streamUserMessagesIn += 1
        effects.stats.userMessageBytesIn += message.payload.length
        if (message.payload.length > 0) delegate.notifyMessage(message.payload, nowMs)
        break
      case 'ack':
      case 'error':
        // The decoder of a listener refuses these.
        break
    }
    this.#close(stream)
  }

  #answerPushPull(stream: Stream, message: PushPull, nowMs: number): void {
    const { effects } = this.#context
    effects.stats.pushPullsAccepted += 1
    effects.stats.pushPullBytesIn += stream.bytesIn
    const reply = ownState(this.#context, message.join, nowMs)
    effects.stats.pushPullBytesOut += this.#write(stream.id, reply)
    this.#close(stream)
    const error = this.#merge(message, message.join, nowMs)
    if (error !== null) {
      effects.notice('warn', 'a push/pull was not merged', { peer: textOf(stream.peer), error })
    }
  }

  #merge(message: PushPull, join: boolean, nowMs: number): string | null {
    const { effects } = this.#context
    effects.stats.pushPullNodesIn += message.nodes.length
    const error = mergeExchange(this.#context, this.#parts.transitions, message, join, nowMs)
    if (error !== null) effects.stats.mergesRefused += 1
    return error
  }

  #refuse(stream: Stream, result: StreamResult & { readonly ok: false }, nowMs: number): void {
    const { effects } = this.#context
    if (result.error !== 'closedUnused') {
      effects.stats.streamErrors += 1
      effects.drop(result.error, stream.peer, nowMs)
    }
    if (result.reply !== null) {
      effects.stats.streamErrorMessagesOut += 1
      this.#write(stream.id, { kind: 'error', text: result.reply })
    }
    this.#close(stream)
  }

  #fail(stream: Stream, error: string): void {
    this.#context.effects.stats.streamErrors += 1
    this.#close(stream)
    const { purpose } = stream
    if (purpose.kind === 'pushPull') {
      this.#settlePushPull(stream.peer, purpose, error)
      return
    }
    this.#context.effects.notice('debug', 'a stream failed', {
      peer: textOf(stream.peer),
      purpose: purpose.kind,
      error,
    })
  }

  #settlePushPull(
    to: Address,
    purpose: Purpose & { readonly kind: 'pushPull' },
    error: string | null,
  ): void {
    const { effects } = this.#context
    if (error !== null) {
      effects.stats.pushPullsFailed += 1
      // Who asked for it decides what to log: retries of a silent address would flood it.
      if (!purpose.reported) {
        effects.notice('warn', 'push/pull failed', { peer: textOf(to), error })
      }
    }
    if (purpose.reported) effects.add({ kind: 'exchangeSettled', to, error })
  }

  #isFull(): boolean {
    return this.#streams.size - this.#accepted >= this.#context.options.streamsMax
  }

  #dial(
    to: Address,
    purpose: Purpose,
    message: StreamMessage,
    nowMs: number,
    timeoutMs = this.#context.options.tcpTimeoutMs,
  ): { readonly id: StreamId; readonly bytes: number } {
    const stream = this.#add(to, purpose, nowMs + timeoutMs)
    const bytes = this.#encode(message, 'request')
    this.#context.effects.stats.streamsOpened += 1
    this.#context.effects.add({ kind: 'openStream', stream: stream.id, to, bytes, timeoutMs })
    return { id: stream.id, bytes: bytes.length }
  }

  #write(stream: StreamId, message: StreamMessage): number {
    const bytes = this.#encode(message, 'reply')
    this.#context.effects.add({ kind: 'writeStream', stream, bytes })
    return bytes.length
  }

  #encode(message: StreamMessage, direction: StreamDirection): Uint8Array {
    const bytes = encodeStream(message, this.#context.wire, direction)
    this.#context.effects.stats.streamBytesOut += bytes.length
    return bytes
  }

  #add(peer: Address, purpose: Purpose, deadlineMs: number): Stream {
    this.#lastId += 1
    const role = purpose.kind === 'answer' ? 'listener' : 'dialler'
    const decoder = new StreamDecoder(this.#context.wire, role)
    const stream: Stream = { id: this.#lastId, peer, purpose, decoder, deadlineMs, bytesIn: 0 }
    this.#streams.set(stream.id, stream)
    return stream
  }

  #close(stream: Stream): void {
    if (!this.#streams.delete(stream.id)) return
    this.#bufferedBytes -= stream.bytesIn
    if (stream.purpose.kind === 'answer') this.#accepted -= 1
    this.#context.effects.add({ kind: 'closeStream', stream: stream.id })
  }
}

function failureText(error: string): string {
  if (error === 'notEncrypted') return 'encryption is configured but remote state is not encrypted'
  if (error === 'noKey') return 'remote state is encrypted and encryption is not configured'
  return error === 'closedUnused' ? 'closed without an answer' : `malformed answer: ${error}`
}

function textOf(address: Address): string {
  return `${address.host}:${address.port}`
}
