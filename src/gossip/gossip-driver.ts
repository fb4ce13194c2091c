/**
 * The world of the core in production: feeds it packets, streams and time, carries out its effects
 * in order, and owns the one timer. Knows nothing of rules or counters.
 *
 *   UDP, TCP ---> core.handle...() --+
 *   timer ------> core.advance() ----+--> takeEffects() ---> UDP, TCP, listener
 *   perform() --> any call ----------+          then: arm the timer at core.nextDeadlineMs()
 */
import type { Clock } from '../ports.js'
import type { Effect, StreamId } from '../swim/effects.js'
import type { Address } from '../vocabulary.js'
import { AllowList } from './allow-list.js'
import type { GossipSockets } from './gossip-sockets.js'
import type { TcpStats } from './tcp-transport.js'
import type { UdpStats } from './udp-transport.js'

/**
 * Lateness of the timer, in milliseconds, that counts as a stall of the event loop (counters.md
 * §3).
 */
export const stallMs = 250
/**
 * Longest sleep: short enough that a stall is noticed by the timer, not by the request after it.
 */
const sleepMaxMs = 200
/** Turns of the loop spent on reading after a stall; libuv reads 32 datagrams per turn. */
const catchUpTurnsMax = 64

/** The part of `Core` that the driver drives. */
export interface GossipCore {
  handlePacket(bytes: Uint8Array, from: Address, monotonicMs: number, wallMs: number): void
  acceptStream(from: Address, monotonicMs: number): StreamId | null
  handleStreamData(stream: StreamId, bytes: Uint8Array, monotonicMs: number, wallMs: number): void
  handleStreamEnd(stream: StreamId, error: string | null, monotonicMs: number, wallMs: number): void
  advance(monotonicMs: number, wallMs: number): void
  nextDeadlineMs(): number
  takeEffects(): readonly Effect[]
}

/** Effects that are not for sockets. */
export type Notice = Exclude<
  Effect,
  { kind: 'sendPacket' | 'openStream' | 'writeStream' | 'closeStream' }
>

export interface GossipStats {
  readonly udp: Readonly<UdpStats>
  readonly tcp: Readonly<TcpStats>
  readonly receiveBufferBytes: number
  /** Packets and streams from outside `gossip.allow`. */
  readonly notAllowed: number
  /** Times the event loop stood still for more than `stallMs`. */
  readonly stalls: number
}

export interface GossipDriverOptions {
  /** Networks whose packets are read; empty: any. */
  readonly allow: readonly string[]
}

export interface GossipDriverPorts {
  readonly core: GossipCore
  readonly sockets: GossipSockets
  readonly clock: Clock
  /** Called for each effect that is not for sockets, in order, after the core call returned. */
  readonly onNotice: (notice: Notice) => void
}

export class GossipDriver {
  readonly #core: GossipCore
  readonly #sockets: GossipSockets
  readonly #clock: Clock
  readonly #onNotice: (notice: Notice) => void
  readonly #allow: AllowList
  #timer: NodeJS.Timeout | null = null
  #immediate: NodeJS.Immediate | null = null
  /** Monotonic time the timer is set for; Infinity: not set; -Infinity: due in this turn. */
  #armedForMs = Number.POSITIVE_INFINITY
  #running = false
  #notAllowed = 0
  #stalls = 0

  constructor(options: GossipDriverOptions, ports: GossipDriverPorts) {
    this.#core = ports.core
    this.#sockets = ports.sockets
    this.#clock = ports.clock
    this.#onNotice = ports.onNotice
    this.#allow = new AllowList(options.allow)
  }

  /** Begins to read the sockets and to keep time. The core must have been started. */
  start(): void {
    this.#running = true
    this.#sockets.udp.attach((bytes, from) => this.#packet(bytes, from))
    this.#sockets.tcp.attach({
      streamAccepted: from => this.#streamAccepted(from),
      streamData: (stream, bytes) =>
        this.perform((now, wall) => this.#core.handleStreamData(stream, bytes, now, wall)),
      streamEnded: (stream, error) =>
        this.perform((now, wall) => this.#core.handleStreamEnd(stream, error, now, wall)),
    })
    this.#settle()
  }

  /**
   * Runs a call on the core with the clocks, carries out what it asks for, and re-arms the timer.
   * For every call that may leave effects behind (join, rules, draining, flush, leave).
   */
  perform<T>(call: (monotonicMs: number, wallMs: number) => T): T {
    const result = call(this.#clock.monotonicMs(), this.#clock.wallMs())
    this.#settle()
    return result
  }

  /** After a decision: the deadline may have moved closer. A comparison when it has not. */
  poke(): void {
    if (this.#running && this.#core.nextDeadlineMs() < this.#armedForMs) this.#arm(0)
  }

  stats(): GossipStats {
    return {
      udp: this.#sockets.udp.stats,
      tcp: this.#sockets.tcp.stats,
      receiveBufferBytes: this.#sockets.receiveBufferBytes,
      notAllowed: this.#notAllowed,
      stalls: this.#stalls,
    }
  }

  /** Stops the timer and closes both sockets; nothing is said to peers. */
  async close(): Promise<void> {
    this.#running = false
    this.#disarm()
    await Promise.all([this.#sockets.udp.close(), this.#sockets.tcp.shutdown()])
  }

  #packet(bytes: Uint8Array, from: Address): void {
    if (!this.#allow.admits(from.host)) {
      this.#notAllowed += 1
      return
    }
    this.perform((now, wall) => this.#core.handlePacket(bytes, from, now, wall))
  }

  #streamAccepted(from: Address): StreamId | null {
    if (!this.#allow.admits(from.host)) {
      this.#notAllowed += 1
      return null
    }
    return this.perform(now => this.#core.acceptStream(from, now))
  }

  #settle(): void {
    for (const effect of this.#core.takeEffects()) this.#carryOut(effect)
    if (this.#running && this.#core.nextDeadlineMs() < this.#armedForMs) this.#arm(0)
  }

  #carryOut(effect: Effect): void {
    const { udp, tcp } = this.#sockets
    switch (effect.kind) {
      case 'sendPacket':
        udp.send(effect.to, effect.bytes)
        break
      case 'openStream':
        tcp.dial(effect.stream, effect.to, effect.bytes, effect.timeoutMs)
        break
      case 'writeStream':
        tcp.write(effect.stream, effect.bytes)
        break
      case 'closeStream':
        tcp.close(effect.stream)
        break
      default:
        this.#onNotice(effect)
    }
  }

  /** Sets the timer for the core's next deadline, at least `delayMinMs` from now. */
  #arm(delayMinMs: 0 | 1): void {
    this.#disarm()
    const nowMs = this.#clock.monotonicMs()
    const delayMs = Math.min(sleepMaxMs, this.#core.nextDeadlineMs() - nowMs)
    if (delayMs <= 0 && delayMinMs === 0) {
      this.#armedForMs = Number.NEGATIVE_INFINITY
      this.#immediate = setImmediate(() => this.#advance())
      return
    }
    const sleepMs = Math.max(1, Math.ceil(delayMs))
    this.#armedForMs = nowMs + sleepMs
    this.#timer = setTimeout(() => this.#wake(), sleepMs)
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (this.#immediate !== null) clearImmediate(this.#immediate)
    this.#timer = null
    this.#immediate = null
    this.#armedForMs = Number.POSITIVE_INFINITY
  }

  #wake(): void {
    const lateMs = this.#clock.monotonicMs() - this.#armedForMs
    if (lateMs <= stallMs) {
      this.#advance()
      return
    }
    this.#stalls += 1
    this.#armedForMs = Number.NEGATIVE_INFINITY
    this.#catchUp(0)
  }

  /** After a stall: news waits in the sockets. Time goes on once a turn brought no packet. */
  #catchUp(turn: number): void {
    const before = this.#sockets.udp.stats.packetsIn
    this.#immediate = setImmediate(() => {
      const quiet = this.#sockets.udp.stats.packetsIn === before
      if (quiet || turn >= catchUpTurnsMax) this.#advance()
      else this.#catchUp(turn + 1)
    })
  }

  #advance(): void {
    this.#timer = null
    this.#immediate = null
    this.#armedForMs = Number.NEGATIVE_INFINITY
    this.#core.advance(this.#clock.monotonicMs(), this.#clock.wallMs())
    this.#settle()
    // Never at once: work that stays due must leave the loop to requests in between.
    if (this.#running) this.#arm(1)
  }
}
