/**
 * One request and its response. Decides, waits if a leaky bucket says so, takes an upstream
 * connection, and moves bytes both ways with back-pressure until the response is whole. Whatever
 * happens, the decision is settled exactly once.
 *
 *   deciding -> delayed -> queued -> waiting -> responding -> over
 *                                       └─101─> tunnel ────────^
 */
import { rawHeaderLookup } from '../http/request-facts.js'
import type { Decision, Settlement } from '../limiter/decision.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { ClientConnection } from './client-connection.js'
import { pause } from './client-pause.js'
import { clientIp, factsOf } from './exchange-facts.js'
import {
  type CheckedResponse,
  checkResponse,
  clientFraming,
  clientResponseHead,
  interimHead,
  lastChunk,
  type ResponseFraming,
  switchingHead,
  upstreamRequestHead,
} from './heads.js'
import type { MessageHead } from './llhttp.js'
import { type LocalAnswer, limitLines, problemAnswer } from './local-answer.js'
import { chunkStart } from './outbox.js'
import type { UpstreamError } from './proxy-stats.js'
import type { CheckedRequest } from './request-check.js'
import type { StaleRecorder } from './stale-cache.js'
import { staleText } from './stale-text.js'
import { failureAnswer, hintedIdleMs, mayRepeat } from './upstream-failure.js'
import type { UpstreamConnection, UpstreamUser } from './upstream-pool.js'

type Phase = 'deciding' | 'delayed' | 'queued' | 'waiting' | 'responding' | 'tunnel' | 'over'

export class Exchange implements UpstreamUser {
  readonly #client: ClientConnection
  readonly #request: CheckedRequest
  #phase: Phase = 'deciding'
  #requestComplete = false
  #connection: UpstreamConnection | null = null
  #retried = false
  /** Head of the request, until it is written. */
  #unsentHead: string | null = null
  /** Body that came before there was a connection; at most what one read brought. */
  #held: Buffer[] = []
  #heldTrailers: readonly string[] = []
  #delay: NodeJS.Timeout | null = null
  #settlement: Settlement | null = null
  /** The rate-limit fields of an admitted request, as lines. */
  #limits = ''
  #admitted = false
  #response: CheckedResponse | null = null
  #framing: ResponseFraming = 'none'
  /** Head of the response, until it is written. */
  #responseHead = ''
  #keep = false
  /** Keeps the response for `staleFor`, where a rule wants that. */
  #recorder: StaleRecorder | null = null

  constructor(client: ClientConnection, request: CheckedRequest) {
    this.#client = client
    this.#request = request
  }

  /** Decides; afterwards the request is on its way, waits, or is answered. */
  start(): void {
    const { context } = this.#client
    const { engine, verifyToken } = context.ports
    const needs = engine.needs()
    if (needs.jwt && verifyToken) {
      const authorization = rawHeaderLookup(this.#request.head.headers)('authorization')
      if (authorization !== undefined) {
        const claims = verifyToken(authorization, clientIp(this.#client, this.#request))
        if (claims instanceof Promise) {
          this.#client.setDeadline(context.timeouts.bodyIdleMs)
          claims.then(
            found => this.#decideLater(found),
            () => this.#decideLater(null),
          )
          return
        }
        this.#decide(claims)
        return
      }
    }
    this.#decide(null)
  }

  #decideLater(claims: Readonly<Record<string, unknown>> | null): void {
    if (this.#phase !== 'deciding') return
    this.#decide(claims)
    this.flush()
  }

  #decide(jwt: Readonly<Record<string, unknown>> | null): void {
    const { options, ports } = this.#client.context
    const facts = factsOf(this.#client, this.#request, jwt)
    if (ports.engine.needs().path && facts.path === null) {
      this.#answer(problemAnswer(400, 'The path is ambiguous.'))
      return
    }
    const decision = ports.engine.decide(facts, 'proxy')
    this.#settlement = decision.settlement
    if (!decision.allowed) {
      this.#deny(decision, facts)
      return
    }
    if (decision.rule !== null || decision.reason === 'degraded') {
      this.#limits = limitLines(decision, options, ports.engine.decidedWallMs)
    }
    this.#admitted = true
    this.#client.context.counters.inflight++
    this.#recorder = this.#client.context.stale.record(ports.engine.rules(), facts, this.#request)
    if (decision.delayMs > 0) this.#wait(decision.delayMs)
    else this.#proceed(false)
  }

  /** A denial, or what a rule lets stand in for it. */
  #deny(decision: Decision, facts: RequestFacts): void {
    const { stale, denials, options, ports } = this.#client.context
    const kept = stale.find(ports.engine.rules(), decision, facts, this.#request)
    if (kept === null) {
      const denied = denials.get(decision)
      this.#over(denied.status, false)
      this.#client.answerText(denied.status, denied)
      return
    }
    const limits = limitLines(decision, options, ports.engine.decidedWallMs)
    this.#over(200, false)
    this.#client.context.counters.stale++
    this.#client.answerText(200, { text: connection => staleText(kept, connection, limits) })
  }

  #wait(delayMs: number): void {
    this.#phase = 'delayed'
    this.#client.deadlineMs = Number.POSITIVE_INFINITY
    this.#delay = setTimeout(() => {
      this.#delay = null
      this.#proceed(false)
      this.flush()
    }, delayMs)
  }

  /** Goes for a connection; `fresh`: for one that has carried nothing yet. */
  #proceed(fresh: boolean): void {
    const { context, outbox, peer, trusted } = this.#client
    if (this.#request.expectsContinue) outbox.send('HTTP/1.1 100 Continue\r\n\r\n', null, '')
    this.#unsentHead = upstreamRequestHead(this.#request, {
      peer,
      trusted,
      upstreamHost: context.upstreamHost,
    })
    this.#phase = 'queued'
    const connection = context.pool.acquire(this, fresh)
    if (connection === 'full') this.#failed('queue-full')
    else if (connection === 'queued') this.#client.setDeadline(context.timeouts.queueMs)
    else this.#attach(connection)
  }

  upstreamReady(connection: UpstreamConnection): void {
    this.#attach(connection)
    this.flush()
  }

  #attach(connection: UpstreamConnection): void {
    this.#connection = connection
    this.#phase = 'waiting'
    connection.parser.bodiless = this.#request.method === 'HEAD'
    // Otherwise the end of the request is near and sets the deadline.
    if (this.#requestComplete || this.#request.bodyBytes !== 0) this.#touch()
    this.#client.setPause(pause.hold, false)
  }

  /** The head of the request is in and its body is not: without a connection, do not read on. */
  holdBody(): void {
    if (this.#connection === null && this.#phase !== 'over') this.#client.setPause(pause.hold, true)
  }

  requestBody(body: Buffer): void {
    if (this.#phase === 'over') return
    if (this.#connection === null || this.#held.length > 0) this.#held.push(body)
    else this.#send(body)
  }

  requestEnd(trailers: readonly string[]): void {
    this.#requestComplete = true
    this.#heldTrailers = trailers
    if (this.#phase !== 'waiting' || this.#held.length > 0) return
    if (this.#request.bodyBytes < 0) this.#send(null)
    this.#touch()
  }

  /** Writes what is ready and not written yet. */
  flush(): void {
    const connection = this.#connection
    if (connection === null || this.#unsentHead === null) return
    const held = this.#held
    this.#held = []
    for (const body of held) this.#send(body)
    if (held.length > 0 && this.#requestComplete && this.#request.bodyBytes < 0) this.#send(null)
    else if (this.#unsentHead !== null) this.#send(null)
  }

  /** Sends body with the head before it; null: the end of a chunked body, or the head alone. */
  #send(body: Buffer | null): void {
    const connection = this.#connection
    if (connection === null) return
    const chunked = this.#request.bodyBytes < 0
    let before = this.#unsentHead ?? ''
    let after = ''
    this.#unsentHead = null
    if (chunked && body) {
      before += chunkStart(body.length)
      after = '\r\n'
    } else if (chunked && this.#requestComplete) after = lastChunk(this.#heldTrailers)
    const room = connection.outbox.send(before, body, after)
    if (!room && !this.#requestComplete) this.#client.setPause(pause.upstream, true)
    if (body) this.#touch()
  }

  upstreamDrained(): void {
    if (this.#phase === 'tunnel') this.#client.socket.resume()
    else this.#client.setPause(pause.upstream, false)
  }

  upstreamData(chunk: Buffer): void {
    const connection = this.#connection
    if (connection === null) return
    if (this.#phase === 'tunnel') {
      this.#client.setDeadline(this.#client.context.timeouts.tunnelIdleMs)
      if (!this.#client.outbox.send('', chunk, '')) connection.socket.pause()
      return
    }
    const { parser } = connection
    let at = 0
    while (at < chunk.length) {
      at = parser.feed(chunk, at)
      const head = parser.headFresh ? parser.head : null
      if (parser.error !== null || (head !== null && !this.#takeHead(head))) {
        this.#failed('malformed')
        return
      }
      if (head?.status === 101) {
        this.#openTunnel(connection, head, chunk.subarray(at))
        return
      }
      if (this.#response === null) {
        if (parser.complete) {
          parser.reset()
          parser.bodiless = this.#request.method === 'HEAD'
        }
        continue
      }
      this.#forward(parser.body, parser.complete ? parser.trailers : null)
      if (parser.complete) {
        this.#finish(connection, at < chunk.length)
        return
      }
    }
    this.#touch()
  }

  /** Interim responses go through at once. False: the head is not sound. */
  #takeHead(head: MessageHead): boolean {
    if (head.status === 101) return this.#request.upgrade !== null && head.upgrade
    if (head.status >= 100 && head.status < 200) {
      // We have said 100 ourselves if the client asked for it.
      if (head.status !== 100 && this.#request.head.minor > 0) {
        this.#client.outbox.send(interimHead(head), null, '')
      }
      return true
    }
    const { context } = this.#client
    const response = checkResponse(head, this.#request.method === 'HEAD')
    if (response === null) return false
    this.#response = response
    this.#phase = 'responding'
    if (this.#recorder?.begin(response) === false) this.#recorder = null
    this.#framing = clientFraming(response, this.#request.head.minor)
    this.#keep = this.#request.head.keepAlive && !context.draining && this.#framing !== 'close'
    this.#responseHead = clientResponseHead(response, {
      framing: this.#framing,
      connection: this.#keep ? this.#client.keepWord(this.#request) : 'close',
      limits: this.#limits,
    })
    return true
  }

  /** Writes what one read brought: a new head, body, and the end if `trailers` are given. */
  #forward(body: Buffer | null, trailers: readonly string[] | null): void {
    let before = this.#responseHead
    let after = ''
    if (body && this.#recorder?.add(body) === false) this.#recorder = null
    this.#responseHead = ''
    if (this.#framing === 'chunked') {
      if (body) {
        before += chunkStart(body.length)
        after = '\r\n'
      }
      if (trailers) after += lastChunk(trailers)
    }
    if (before === '' && after === '' && body === null) return
    const room = this.#client.outbox.send(before, body, after)
    if (!room && trailers === null) this.#connection?.socket.pause()
  }

  upstreamEnd(): void {
    const connection = this.#connection
    if (connection === null) return
    if (this.#phase === 'tunnel') {
      this.#client.outbox.end()
      return
    }
    const { parser } = connection
    if (this.#response?.framing === 'close') {
      parser.finish()
      if (parser.complete && parser.error === null) {
        this.#forward(null, [])
        this.#finish(connection, false)
        return
      }
    }
    connection.fail('reset')
  }

  upstreamLost(reason: UpstreamError): void {
    const connection = this.#connection
    this.#connection = null
    if (this.#phase === 'tunnel') {
      this.#client.context.counters.requests.upgraded++
      this.#over(101, false)
      this.#client.endAndLinger()
      return
    }
    if (this.#phase === 'waiting' && connection && this.#mayRetry(connection)) {
      const { counters } = this.#client.context
      counters.retries++
      this.#retried = true
      this.#proceed(true)
      this.flush()
      return
    }
    this.#failed(reason)
  }

  /** A kept-alive connection that closed before a byte of answer to a repeatable request. */
  #mayRetry(connection: UpstreamConnection): boolean {
    if (!connection.reused || connection.parser.started || this.#retried) return false
    return mayRepeat(this.#request.method, this.#request.bodyBytes)
  }

  #finish(connection: UpstreamConnection, surplus: boolean): void {
    const { context, socket } = this.#client
    const response = this.#response
    if (response === null) return
    const reusable =
      this.#requestComplete && !surplus && response.head.keepAlive && response.framing !== 'close'
    this.#connection = null
    if (reusable) {
      // It may have been paused for a slow client that still has the end of this in its buffer.
      connection.socket.resume()
      const seconds = response.keepAliveSeconds
      const idleMs = seconds === null ? context.timeouts.upstreamIdleMs : hintedIdleMs(seconds)
      context.pool.release(connection, idleMs)
    } else connection.destroy()
    this.#recorder?.end()
    const { status } = response.head
    context.counters.countStatus(status)
    this.#over(status, false)
    if (socket.destroyed) return
    this.#client.exchangeDone(this.#keep)
  }

  /** The upstream has failed this request. */
  #failed(reason: UpstreamError): void {
    const { context } = this.#client
    context.counters.upstreamErrors[reason]++
    this.#letGo()
    if (this.#phase === 'responding') {
      // The head is out: the only honest end of a cut body is a cut connection.
      context.counters.requests.aborted++
      this.#over(this.#response?.head.status ?? 0, true)
      this.#client.cut(this.#framing === 'close')
      return
    }
    this.#answer(failureAnswer(reason))
  }

  /** An answer of our own instead of the upstream's. */
  #answer(answer: LocalAnswer): void {
    this.#over(answer.status, false)
    this.#client.answer(answer)
  }

  /** The client's body is not well-formed. */
  requestBroken(answer: LocalAnswer): void {
    const responding = this.#phase === 'responding'
    this.#letGo()
    this.#over(responding ? (this.#response?.head.status ?? 0) : answer.status, responding)
    if (responding) this.#client.destroy()
    else this.#client.answer(answer, false)
  }

  /** The client has closed the connection, or has been closed. */
  clientGone(): void {
    if (this.#phase === 'over') return
    const { requests } = this.#client.context.counters
    if (this.#phase === 'tunnel') requests.upgraded++
    else requests.aborted++
    const status = this.#phase === 'tunnel' ? 101 : (this.#response?.head.status ?? 0)
    const aborted = this.#phase !== 'tunnel'
    this.#letGo()
    this.#over(status, aborted)
  }

  clientDrained(): void {
    this.#connection?.socket.resume()
    this.#touch()
  }

  /** The deadline of the phase has passed. */
  timedOut(): void {
    const { context } = this.#client
    switch (this.#phase) {
      case 'queued':
        this.#failed('queue-timeout')
        break
      case 'waiting':
        if (this.#requestComplete || this.#client.isPaused(pause.upstream)) {
          this.#failed('response-timeout')
        } else {
          context.counters.refused['body-timeout']++
          this.requestBroken(problemAnswer(408, 'The request body took too long.'))
        }
        break
      default:
        if (this.#phase === 'responding') context.counters.upstreamErrors['response-timeout']++
        this.#client.destroy()
    }
  }

  #openTunnel(connection: UpstreamConnection, head: MessageHead, early: Buffer): void {
    const { outbox, context } = this.#client
    this.#phase = 'tunnel'
    context.counters.tunnels++
    this.#client.setDeadline(context.timeouts.tunnelIdleMs)
    outbox.send(switchingHead(head, this.#limits), early.length > 0 ? early : null, '')
    const rest = this.#client.becomeTunnel()
    if (rest) connection.outbox.send('', rest, '')
  }

  tunnelData(chunk: Buffer): void {
    this.#client.setDeadline(this.#client.context.timeouts.tunnelIdleMs)
    if (this.#connection?.outbox.send('', chunk, '') === false) this.#client.socket.pause()
  }

  /** The client has ended its side of a tunnel. */
  tunnelEnd(): void {
    this.#connection?.outbox.end()
  }

  #touch(): void {
    const { timeouts } = this.#client.context
    if (this.#phase === 'waiting' && this.#requestComplete) {
      this.#client.setDeadline(timeouts.responseHeadMs)
    } else if (this.#phase === 'waiting' || this.#phase === 'responding') {
      this.#client.setDeadline(timeouts.bodyIdleMs)
    }
  }

  /** Drops the connection, the place in the queue and the timer. */
  #letGo(): void {
    if (this.#delay) clearTimeout(this.#delay)
    this.#delay = null
    if (this.#phase === 'queued') this.#client.context.pool.cancel(this)
    this.#connection?.destroy()
    this.#connection = null
  }

  #over(status: number, aborted: boolean): void {
    if (this.#phase === 'over') return
    const { context } = this.#client
    if (this.#admitted) context.counters.inflight--
    if (this.#phase === 'tunnel') context.counters.tunnels--
    this.#phase = 'over'
    const settlement = this.#settlement
    this.#settlement = null
    if (settlement === null) return
    const header = rawHeaderLookup(this.#response?.head.headers ?? [])
    context.ports.engine.settle(settlement, { status, aborted, header })
  }
}
