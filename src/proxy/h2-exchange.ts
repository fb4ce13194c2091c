/**
 * One HTTP/2 stream from a client and its twin to the upstream: decided, held back, forwarded,
 * settled once. Data is piped both ways, so flow control carries the back-pressure.
 */
import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { clientAddress } from '../http/client-address.js'
import { HttpRequestFacts, recordHeaderLookup } from '../http/request-facts.js'
import type { Decision, Settlement } from '../limiter/decision.js'
import {
  grpcAnswer,
  grpcStatusOf,
  h2Refusal,
  h2RequestHeaders,
  h2ResponseHeaders,
  h2Text,
  httpStatusOfGrpc,
  isGrpc,
  plainAnswer,
} from './h2-heads.js'
import type { H2Sessions, H2Slot } from './h2-sessions.js'
import { denial, type LocalAnswer, limitLines, problemAnswer } from './local-answer.js'
import type { Claims, ProxyLimits, ProxyOptions, ProxyPorts, ProxyTimeouts } from './options.js'
import type { ProxyCounters, UpstreamError } from './proxy-stats.js'
import { failureAnswer } from './upstream-failure.js'

export interface H2Context {
  readonly options: ProxyOptions
  readonly ports: ProxyPorts
  readonly timeouts: ProxyTimeouts
  readonly limits: ProxyLimits
  readonly counters: ProxyCounters
  readonly sessions: H2Sessions
}

export interface H2Peer {
  /** Canonical address. */
  readonly address: string
  readonly trusted: boolean
}

export class H2Exchange {
  readonly #context: H2Context
  readonly #peer: H2Peer
  readonly #stream: ServerHttp2Stream
  readonly #headers: IncomingHttpHeaders
  /** The request has no body: its first frame ended the stream. */
  readonly #bodiless: boolean
  #up: ClientHttp2Stream | null = null
  /**
   * Resets the upstream's stream. Its `close` would end an unfinished body first, as if it were
   * whole.
   */
  readonly #cancel = new AbortController()
  #delay: NodeJS.Timeout | null = null
  #settlement: Settlement | null = null
  /** The rate-limit fields of an admitted request, as lines. */
  #limits = ''
  #admitted = false
  #over = false
  /** The response was ended in order. */
  #whole = false
  /** The request was passed on to its end. */
  #requestWhole: boolean
  #status = 0
  #response: IncomingHttpHeaders = {}
  #trailers: IncomingHttpHeaders | null = null

  constructor(
    context: H2Context,
    peer: H2Peer,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    bodiless: boolean,
  ) {
    this.#context = context
    this.#peer = peer
    this.#stream = stream
    this.#headers = headers
    this.#bodiless = bodiless
    this.#requestWhole = bodiless
  }

  start(): void {
    const { ports, limits } = this.#context
    this.#stream.on('error', () => {})
    this.#stream.on('close', () => this.#closed())
    const refusal = h2Refusal(this.#headers, limits.targetBytesMax)
    if (refusal) {
      this.#context.counters.refused[refusal.status === 414 ? 'too-large' : 'malformed']++
      this.#answer(problemAnswer(refusal.status, refusal.detail))
      return
    }
    const { authorization } = this.#headers
    if (authorization !== undefined && ports.verifyToken && ports.engine.needs().jwt) {
      const claims = ports.verifyToken(authorization, this.#clientIp())
      if (claims instanceof Promise) {
        claims.then(
          found => this.#decide(found),
          () => this.#decide(null),
        )
        return
      }
      this.#decide(claims)
      return
    }
    this.#decide(null)
  }

  #clientIp(): string {
    const { address, trusted } = this.#peer
    if (!trusted) return address
    const forwardedFor = h2Text(this.#headers, 'x-forwarded-for')
    return clientAddress(address, forwardedFor, this.#context.options.trusts)
  }

  #decide(jwt: Claims | null): void {
    if (this.#over) return
    const { ports, options, counters } = this.#context
    const headers = this.#headers
    const facts = new HttpRequestFacts({
      method: h2Text(headers, constants.HTTP2_HEADER_METHOD) ?? 'GET',
      target: h2Text(headers, constants.HTTP2_HEADER_PATH) ?? '/',
      header: recordHeaderLookup(headers),
      host: h2Text(headers, constants.HTTP2_HEADER_AUTHORITY) ?? headers.host,
      ip: this.#clientIp(),
      peerTrusted: this.#peer.trusted,
      jwt,
    })
    if (ports.engine.needs().path && facts.path === null) {
      this.#answer(problemAnswer(400, 'The path is ambiguous.'))
      return
    }
    const decision = ports.engine.decide(facts, 'proxy')
    this.#settlement = decision.settlement
    if (!decision.allowed) {
      this.#deny(decision)
      return
    }
    if (decision.rule !== null || decision.reason === 'degraded') {
      this.#limits = limitLines(decision, options, ports.engine.wallMs())
    }
    this.#admitted = true
    counters.inflight++
    if (decision.delayMs <= 0) this.#forward()
    else this.#delay = setTimeout(() => this.#forward(), decision.delayMs)
  }

  /** gRPC callers read a status of their own; the numbers are the same. */
  #deny(decision: Decision): void {
    const { ports, options } = this.#context
    const onExceeded =
      decision.rule === null ? undefined : ports.engine.rule(decision.rule)?.onExceeded
    const wallMs = ports.engine.wallMs()
    const answer = denial(decision, onExceeded, options, wallMs, ports.random)
    if (!isGrpc(this.#headers)) {
      this.#answer(answer)
      return
    }
    const blocked = decision.reason === 'blocked'
    const degraded = decision.reason === 'degraded'
    const status = grpcStatusOf(blocked ? 403 : degraded ? 503 : 429)
    const message = blocked
      ? 'Refused'
      : degraded
        ? 'Rate limiter unavailable'
        : 'Rate limit exceeded'
    const extra = ['cache-control', 'content-type']
    const pairs: string[] = []
    for (let index = 0; index < answer.headers.length; index += 2) {
      const name = answer.headers[index] as string
      if (!extra.includes(name.toLowerCase())) pairs.push(name, answer.headers[index + 1] as string)
    }
    if (!blocked && decision.retryAfterMs > 0) {
      pairs.push('grpc-retry-pushback-ms', String(Math.ceil(decision.retryAfterMs)))
    }
    this.#respondOnce(answer.status, grpcAnswer(status, message, pairs), '')
  }

  #answer(answer: LocalAnswer): void {
    if (isGrpc(this.#headers)) {
      const { detail } = JSON.parse(answer.body) as { detail: string }
      this.#respondOnce(answer.status, grpcAnswer(grpcStatusOf(answer.status), detail, []), '')
      return
    }
    this.#respondOnce(answer.status, plainAnswer(answer), answer.body)
  }

  #respondOnce(status: number, headers: Record<string, unknown>, body: string): void {
    const stream = this.#stream
    this.#status = status
    this.#context.counters.countStatus(status)
    this.#settle(false)
    if (stream.destroyed || stream.headersSent) return
    const toHead = this.#headers[constants.HTTP2_HEADER_METHOD] === 'HEAD'
    const empty = body === '' || toHead
    stream.respond(headers as IncomingHttpHeaders, { endStream: empty })
    if (!empty) stream.end(body)
    if (this.#bodiless) return
    // The client may stop sending: nobody reads the rest (RFC 9113 §8.1).
    if (empty) stream.close(constants.NGHTTP2_NO_ERROR)
    else stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
  }

  #forward(): void {
    this.#delay = null
    const { sessions, timeouts } = this.#context
    const slot = sessions.take()
    if (slot === null) {
      this.#failed('queue-full')
      return
    }
    const up = slot.session.request(
      h2RequestHeaders(this.#headers, { peer: this.#peer.address, trusted: this.#peer.trusted }),
      {
        endStream: this.#bodiless,
        waitForTrailers: !this.#bodiless,
        signal: this.#cancel.signal,
      },
    )
    this.#up = up
    this.#wireUpstream(up, slot)
    up.setTimeout(timeouts.bodyIdleMs, () => {
      if (this.#stream.headersSent) this.#stream.destroy(new Error('the upstream is silent'))
      else this.#failed('response-timeout')
    })
    if (!this.#bodiless) this.#wireRequestBody(up)
  }

  #wireRequestBody(up: ClientHttp2Stream): void {
    const stream = this.#stream
    let trailers: IncomingHttpHeaders = {}
    stream.on('trailers', sent => {
      trailers = sent
    })
    up.on('wantTrailers', () => up.sendTrailers(trailers))
    stream.pipe(up, { end: false })
    // A reset ends the readable side as well: only a whole body may end the request.
    stream.on('end', () => {
      if (stream.aborted || stream.rstCode || up.destroyed) return
      this.#requestWhole = true
      up.end()
    })
  }

  #wireUpstream(up: ClientHttp2Stream, slot: H2Slot): void {
    const stream = this.#stream
    up.on('error', () => {})
    up.on('headers', headers => {
      if (!stream.destroyed && !stream.headersSent) stream.additionalHeaders(headers)
    })
    up.on('response', (headers, flags) => {
      if (stream.destroyed) return
      this.#response = headers
      this.#status = Number(headers[constants.HTTP2_HEADER_STATUS])
      const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      stream.respond(h2ResponseHeaders(headers, this.#limits), {
        endStream,
        waitForTrailers: !endStream,
      })
      if (endStream) this.#whole = true
      else up.pipe(stream, { end: false })
    })
    // As above: a cut response must not look whole.
    up.on('end', () => {
      if (up.rstCode || !stream.headersSent || stream.writableEnded) return
      this.#whole = true
      stream.end()
    })
    up.on('trailers', trailers => {
      this.#trailers = trailers
    })
    stream.on('wantTrailers', () => stream.sendTrailers(this.#trailers ?? {}))
    up.on('close', () => {
      this.#context.sessions.release(slot)
      this.#upstreamClosed(slot)
    })
  }

  #upstreamClosed(slot: H2Slot): void {
    const stream = this.#stream
    this.#up = null
    if (stream.destroyed || this.#over) return
    if (!stream.headersSent) {
      this.#failed(slot.error)
    } else if (!this.#whole) {
      this.#context.counters.upstreamErrors.reset++
      // Again not `close`, which would end the response in order. The code is INTERNAL_ERROR.
      stream.destroy(new Error('the upstream cut its response'))
    }
  }

  #failed(reason: UpstreamError): void {
    this.#context.counters.upstreamErrors[reason]++
    this.#up = null
    this.#cancel.abort()
    this.#answer(failureAnswer(reason))
  }

  /** The client's stream is over, one way or the other. */
  #closed(): void {
    if (this.#delay) clearTimeout(this.#delay)
    // A lost session leaves neither a code nor a mark on its streams: what we ended ourselves
    // counts.
    const cut = !this.#whole || this.#stream.rstCode !== constants.NGHTTP2_NO_ERROR
    if (this.#up && (cut || !this.#requestWhole)) this.#cancel.abort()
    this.#up = null
    if (this.#over) return
    if (cut) this.#context.counters.requests.aborted++
    else this.#context.counters.countStatus(this.#status)
    this.#settle(cut)
  }

  #settle(aborted: boolean): void {
    if (this.#over) return
    this.#over = true
    const { counters, ports } = this.#context
    if (this.#admitted) counters.inflight--
    const settlement = this.#settlement
    if (settlement === null) return
    const header = recordHeaderLookup(this.#response)
    const grpc = this.#trailers?.['grpc-status'] ?? this.#response['grpc-status']
    const told = this.#status === 200 && isGrpc(this.#headers)
    const status = told
      ? httpStatusOfGrpc(typeof grpc === 'string' ? grpc : undefined)
      : this.#status
    ports.engine.settle(settlement, { status, aborted, header })
  }
}
