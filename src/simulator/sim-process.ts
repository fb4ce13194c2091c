/**
 * One simulated process: a node, its clocks, its sockets and its single timer. The counterpart of
 * the production gossip driver: every event goes into the node with both clocks, effects come out
 * and are carried out by the ports. While paused nothing runs; what arrives waits in bounded socket
 * queues.
 */
import type { RequestFacts } from '../limiter/request-facts.js'
import type { Effect } from '../swim/effects.js'
import type { Address } from '../vocabulary.js'
import type { PodClock } from './pod-clock.js'
import type { SimNode } from './sim-node.js'
import type { StreamHost } from './sim-streams.js'

export interface ProcessPorts {
  nowMs(): number
  sendPacket(from: SimProcess, to: Address, bytes: Uint8Array): void
  dial(from: SimProcess, stream: number, to: Address, bytes: Uint8Array, timeoutMs: number): void
  writeStream(from: SimProcess, stream: number, bytes: Uint8Array): void
  closeStream(from: SimProcess, stream: number): void
  /** Calls `wake(version)` on the process after `delayMs`. */
  wakeAfter(process: SimProcess, delayMs: number, version: number): void
  /** The node said that its leave message is out. */
  leaveSettled(process: SimProcess): void
}

/** Node's timers count in whole milliseconds and fire after at least one. */
const timerStepMs = 1

/** Linux's default receive buffer (net.core.rmem_default), and what it charges beside a payload. */
const receiveBufferBytes = 212_992
const packetOverheadBytes = 768

/** Requests that wait in the listen queue and in accepted connections of a stopped process. */
const requestsHeldMax = 65_536

export class SimProcess implements StreamHost {
  running = true
  paused = false
  /** Receives traffic: it has the fleet's state, or waited long enough for it. */
  ready = false
  /** What a full socket queue turned away. */
  packetsDropped = 0
  requestsDropped = 0

  readonly startedAtMs: number
  endedAtMs = Number.POSITIVE_INFINITY

  private timerAtMs = Number.POSITIVE_INFINITY
  private timerVersion = 0
  private timerFiredWhilePaused = false
  private heldBytes = 0
  private heldEvents: (() => void)[] = []
  private heldClients: number[] = []

  constructor(
    readonly id: number,
    readonly pod: number,
    readonly address: Address,
    readonly node: SimNode,
    private readonly clock: PodClock,
    private readonly ports: ProcessPorts,
  ) {
    this.startedAtMs = ports.nowMs()
  }

  /** What the process's monotonic clock shows now. */
  monotonicMs(): number {
    return this.clock.monotonicMs(this.ports.nowMs())
  }

  /** One call into the node with its clocks, then its effects and its next deadline. */
  step(act: (node: SimNode, monotonicMs: number, wallMs: number) => void): void {
    const now = this.ports.nowMs()
    act(this.node, this.clock.monotonicMs(now), this.clock.wallMs(now))
    this.settle()
  }

  decide(facts: RequestFacts): boolean {
    const now = this.ports.nowMs()
    const decision = this.node.decide(
      facts,
      'check',
      this.clock.monotonicMs(now),
      this.clock.wallMs(now),
    )
    const { allowed } = decision
    // A decision sends nothing (counters.md §4); it only may bring the deadline forward.
    this.armTimer(now)
    return allowed
  }

  packet(bytes: Uint8Array, from: Address): void {
    if (!this.running) return
    if (this.paused) {
      const charge = bytes.length + packetOverheadBytes
      if (this.heldBytes + charge > receiveBufferBytes) {
        this.packetsDropped++
        return
      }
      this.heldBytes += charge
      this.heldEvents.push(() => this.packet(bytes, from))
      return
    }
    const now = this.ports.nowMs()
    this.node.handlePacket(bytes, from, this.clock.monotonicMs(now), this.clock.wallMs(now))
    this.settle()
  }

  /** The timer armed as `version` goes off. */
  wake(version: number): void {
    if (version !== this.timerVersion || !this.running) return
    this.timerAtMs = Number.POSITIVE_INFINITY
    if (this.paused) {
      this.timerFiredWhilePaused = true
      return
    }
    const now = this.ports.nowMs()
    const monotonicMs = this.clock.monotonicMs(now)
    if (this.node.nextDeadlineMs() <= monotonicMs) {
      this.node.advance(monotonicMs, this.clock.wallMs(now))
      this.settle()
    } else {
      this.armTimer(now)
    }
  }

  // --- standing still

  pause(): void {
    this.paused = true
  }

  /** A request that arrives while paused. */
  holdRequest(client: number): void {
    if (this.heldClients.length >= requestsHeldMax) this.requestsDropped++
    else this.heldClients.push(client)
  }

  /** Runs again: the sockets first, in order; the clients that waited are returned in order. */
  resume(): number[] {
    this.paused = false
    const events = this.heldEvents
    const clients = this.heldClients
    this.heldEvents = []
    this.heldClients = []
    this.heldBytes = 0
    for (const event of events) event()
    return clients
  }

  /** After `resume` and the waiting requests: the timer that went off meanwhile. */
  catchUp(): void {
    if (!this.timerFiredWhilePaused || !this.running) return
    this.timerFiredWhilePaused = false
    this.step((node, monotonicMs, wallMs) => node.advance(monotonicMs, wallMs))
  }

  /** The process is gone; nothing reaches it any more. */
  stop(): void {
    this.running = false
    this.endedAtMs = this.ports.nowMs()
    this.ready = false
    this.timerVersion++
    this.heldEvents = []
    this.heldClients = []
  }

  // --- streams

  receive(act: () => void): void {
    if (!this.running) return
    if (this.paused) this.heldEvents.push(act)
    else act()
  }

  acceptStream(from: StreamHost): number | null {
    const { address } = from as SimProcess
    const stream = this.node.acceptStream(address, this.monotonicMs())
    this.settle()
    return stream
  }

  streamData(stream: number, bytes: Uint8Array): void {
    this.step((node, monotonicMs, wallMs) => {
      node.handleStreamData(stream, bytes, monotonicMs, wallMs)
    })
  }

  streamEnd(stream: number, error: string | null): void {
    this.step((node, monotonicMs, wallMs) => {
      node.handleStreamEnd(stream, error, monotonicMs, wallMs)
    })
  }

  private settle(): void {
    for (const effect of this.node.takeEffects()) this.carryOut(effect)
    if (this.running) this.armTimer(this.ports.nowMs())
  }

  private carryOut(effect: Effect): void {
    const { ports } = this
    switch (effect.kind) {
      case 'sendPacket':
        ports.sendPacket(this, effect.to, effect.bytes)
        return
      case 'openStream':
        ports.dial(this, effect.stream, effect.to, effect.bytes, effect.timeoutMs)
        return
      case 'writeStream':
        ports.writeStream(this, effect.stream, effect.bytes)
        return
      case 'closeStream':
        ports.closeStream(this, effect.stream)
        return
      case 'leaveSettled':
        ports.leaveSettled(this)
        return
      default:
        // What production logs: changes of members, conflicts, settled exchanges, notices.
        return
    }
  }

  /** One timer, as in production; it only ever moves forward in time by going off early. */
  private armTimer(now: number): void {
    const deadlineMs = this.node.nextDeadlineMs()
    if (deadlineMs === Number.POSITIVE_INFINITY) return
    const waitMs = this.clock.waitMs(deadlineMs, now)
    const delayMs = Math.max(timerStepMs, Math.ceil(waitMs / timerStepMs) * timerStepMs)
    if (now + delayMs >= this.timerAtMs) return
    this.timerAtMs = now + delayMs
    this.ports.wakeAfter(this, delayMs, ++this.timerVersion)
  }
}
