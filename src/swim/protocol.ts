/**
 * One memberlist node as a step function: events and the time go in, effects come out through
 * `takeEffects()`. No socket, no clock, no timer of its own; whoever drives it moves bytes and
 * calls `advance` at `nextDeadlineMs()`. Sources: SWIM (Das, Gupta, Motivala 2002), Lifeguard
 * (Dadgar, Phillips, Currey 2017), memberlist.go and state.go.
 *
 *     packets, streams --> Swim --> Transitions (who is alive)     --> effects
 *                               --> Prober, Relay (who answers)
 *                               --> Gossiper, PushPuller (spreading news)
 *                               --> Exchanges (streams)
 */
import { assert } from '../lib/assert.js'
import type { Entropy, Random } from '../ports.js'
import type { Address, MemberName } from '../vocabulary.js'
import { Asker } from './asker.js'
import { type KeyError, Keyring } from './codec/keyring.js'
import { decodePacket } from './codec/packet.js'
import { createContext, type SwimContext, type Timed } from './context.js'
import type { Delegate } from './delegate.js'
import type { Effect, StreamId } from './effects.js'
import { Exchanges } from './exchange.js'
import { Gossiper, PushPuller } from './gossip.js'
import type { Member } from './member.js'
import { isDeadOrLeft } from './member-table.js'
import { metaBytesMax, type PacketMessage } from './messages.js'
import { optionErrors, type SwimOptions } from './options.js'
import { PacketSender } from './packet-sender.js'
import { Prober } from './probe.js'
import { Relay } from './relay.js'
import { messagesInNames, type SwimStats } from './stats.js'
import { Transitions } from './transitions.js'

/** Lateness from which this process counts as having stood still. */
const stallMs = 250

/**
 * After a stall suspicions do not run out for this long, so that waiting refutations are read
 * first.
 */
const stallGraceMs = 100

export interface SwimPorts {
  /** Whom to probe and to tell; not for secrets. */
  readonly random: Random
  /** Nonces of encrypted packets. */
  readonly entropy: Entropy
  readonly delegate: Delegate
}

/** What exists from `start` on. */
interface Running {
  readonly prober: Prober
  readonly timed: readonly Timed[]
}

export class Swim {
  readonly #context: SwimContext
  readonly #keyring: Keyring
  readonly #sender: PacketSender
  readonly #transitions: Transitions
  readonly #relay: Relay
  readonly #asker: Asker
  readonly #exchanges: Exchanges
  #running: Running | null = null
  #judgeAfterMs = -Infinity
  #leaveSettled = false

  /** The options must be free of `optionErrors`. */
  constructor(options: SwimOptions, ports: SwimPorts) {
    const errors = optionErrors(options)
    assert(errors.length === 0, `swim options: ${errors.join('; ')}`)
    this.#keyring = new Keyring(options.keys)
    this.#context = createContext(options, { ...ports, keyring: this.#keyring }, () =>
      this.#settleLeave(),
    )
    this.#sender = new PacketSender(this.#context)
    this.#transitions = new Transitions(this.#context)
    this.#relay = new Relay(this.#context, this.#sender)
    this.#asker = new Asker(this.#context, this.#sender)
    this.#exchanges = new Exchanges(this.#context, {
      transitions: this.#transitions,
      pingAnswered: (stream, sequence) => this.#running?.prober.handleStreamAck(stream, sequence),
    })
  }

  // --- life

  /** Announces this node to itself (join event) and starts the schedules. Once. */
  start(nowMs: number): void {
    assert(this.#running === null, 'swim starts once')
    this.#transitions.announceSelf(this.#nodeMeta(), nowMs)
    const context = this.#context
    const prober = new Prober(
      context,
      {
        sender: this.#sender,
        transitions: this.#transitions,
        openPingStream: (target, ping, timeoutMs, atMs) =>
          this.#exchanges.openPing(target.address, ping, timeoutMs, atMs),
      },
      nowMs,
    )
    const gossiper = new Gossiper(context, this.#sender, nowMs)
    const openPushPull = (address: Address, atMs: number) =>
      this.#exchanges.openPushPull(address, { join: false, reported: false }, atMs)
    const pushPuller = new PushPuller(context, openPushPull, nowMs)
    // Others are answered before own business, which may take longer.
    this.#running = { prober, timed: [this.#relay, prober, gossiper, pushPuller, this.#exchanges] }
  }

  /** Exchanges full state with each address, as a joining node. One `exchangeSettled` for each. */
  join(addresses: readonly Address[], nowMs: number): void {
    for (const address of addresses) {
      this.#exchanges.openPushPull(address, { join: true, reported: true }, nowMs)
    }
  }

  /** Exchanges full state with one address; one `exchangeSettled`. */
  pushPull(address: Address, nowMs: number): void {
    this.#exchanges.openPushPull(address, { join: false, reported: true }, nowMs)
  }

  /** Asks the delegate for the meta and announces it under a new incarnation. */
  updateMeta(nowMs: number): void {
    if (!this.#context.leaving) this.#transitions.announceSelf(this.#nodeMeta(), nowMs)
  }

  /**
   * Tells the cluster that this node goes; `leaveSettled` follows. Keep driving it for some gossip
   * intervals more. A node that left cannot come back.
   */
  leave(nowMs: number): void {
    if (this.#context.leaving) return
    this.#context.leaving = true
    const { name: node, incarnation } = this.self()
    this.#transitions.dead({ kind: 'dead', incarnation, node, from: node }, nowMs)
    this.#settleLeaveIfAlone()
  }

  /** Primary first; empty turns encryption off. On an error the old ring stays. */
  setKeyring(keys: readonly Uint8Array[]): KeyError | null {
    return this.#keyring.replace(keys)
  }

  // --- input

  /**
   * One datagram, from the socket address it came from. Not read before the start. False when it is
   * no packet of this ring.
   */
  handlePacket(bytes: Uint8Array, from: Address, nowMs: number): boolean {
    if (this.#running === null) return false
    const { effects, options, wire } = this.#context
    effects.stats.packetsIn += 1
    effects.stats.packetBytesIn += bytes.length
    if (options.allowed?.(from.host) === false) {
      effects.drop('notAllowed', from, nowMs)
      return false
    }
    const packet = decodePacket(bytes, wire)
    if (!packet.ok) {
      effects.drop(packet.error, from, nowMs)
      return false
    }
    for (const error of packet.value.refused) effects.drop(error, from, nowMs)
    for (const message of packet.value.messages) this.#handleMessage(message, from, nowMs)
    return true
  }

  /** A peer connected; null: close at once. */
  acceptStream(from: Address, nowMs: number): StreamId | null {
    return this.#running === null ? null : this.#exchanges.accept(from, nowMs)
  }

  handleStreamData(stream: StreamId, bytes: Uint8Array, nowMs: number): void {
    this.#exchanges.handleData(stream, bytes, nowMs)
  }

  /** The peer closed (null) or the stream failed; unknown streams are ignored. */
  handleStreamEnd(stream: StreamId, error: string | null, nowMs: number): void {
    this.#exchanges.handleEnd(stream, error, nowMs)
  }

  /** Does everything that is due. Calling it early or late is harmless. */
  advance(nowMs: number): void {
    const running = this.#running
    if (running === null) return
    if (nowMs - this.nextDeadlineMs() > stallMs) {
      this.#context.effects.stats.stalls += 1
      this.#judgeAfterMs = nowMs + stallGraceMs
    }
    for (const part of running.timed) part.advance(nowMs)
    if (nowMs >= this.#judgeAfterMs) this.#transitions.advance(nowMs)
    if (this.#context.leaving) this.#settleLeaveIfAlone()
  }

  /** When `advance` is needed next; Infinity before the start. */
  nextDeadlineMs(): number {
    const running = this.#running
    if (running === null) return Infinity
    let deadlineMs = Math.max(this.#transitions.nextDeadlineMs(), this.#judgeAfterMs)
    for (const part of running.timed) deadlineMs = Math.min(deadlineMs, part.nextDeadlineMs())
    return deadlineMs
  }

  /** What is to be done since the last call, in order. */
  takeEffects(): Effect[] {
    return this.#context.effects.take()
  }

  // --- the application's messages

  /**
   * `bestEffort` is one datagram of at most `packetPayloadBytesMax()` bytes, `reliable` one stream.
   * False, and nothing sent, if the member is unknown, is this node, or the message does not fit.
   */
  sendUserMessage(
    to: MemberName,
    message: Uint8Array,
    mode: 'bestEffort' | 'reliable',
    nowMs: number,
  ): boolean {
    const { table, options, effects } = this.#context
    const member = table.get(to)?.member
    if (member === undefined || to === options.name) return false
    const bytesMax =
      mode === 'bestEffort' ? this.packetPayloadBytesMax() : options.exchangeBytesMax / 2
    if (message.length > bytesMax) {
      effects.stats.userMessagesTooLarge += 1
      return false
    }
    if (mode === 'reliable') return this.#exchanges.openUser(member.address, message, nowMs)
    this.#sender.sendUserMessage(member, message)
    return true
  }

  /**
   * Pings a member beside the schedule of probes, directly and through a random other one. Decides
   * nothing here: `notifyAnswer` tells when an answer comes.
   */
  ask(to: MemberName, nowMs: number): void {
    const target = this.#context.table.get(to)?.member
    if (target !== undefined && to !== this.#context.options.name) this.#asker.ask(target, nowMs)
  }

  /** Spreads a message to everybody with the gossip, each node passing on its own copy only. */
  queueBroadcast(message: Uint8Array, _nowMs: number): void {
    this.#context.userQueue.queue(null, message)
  }

  /** The longest best-effort message that fits one datagram with label, encryption and checksum. */
  packetPayloadBytesMax(): number {
    return this.#sender.userMessageBytesMax()
  }

  // --- views

  member(name: MemberName): Member | undefined {
    return this.#context.table.get(name)?.member
  }

  /** Everybody known, dead and left ones included, in the order of arrival; self is the first. */
  *members(): IterableIterator<Member> {
    for (const entry of this.#context.table.entries()) yield entry.member
  }

  self(): Member {
    const entry = this.#context.table.get(this.#context.options.name)
    assert(entry !== undefined, 'self is known from the start on')
    return entry.member
  }

  /** Moves whenever a suspicion begins or is cleared: changes of state without an effect. */
  suspicionChanges(): number {
    const { suspicions, suspicionsCleared } = this.#context.effects.stats
    return suspicions + suspicionsCleared
  }

  /** 0 is healthy, `awarenessMaxMultiplier` - 1 the worst. */
  healthScore(): number {
    return this.#context.awareness.score
  }

  /** The counters, with the gauges as of now. */
  get stats(): Readonly<SwimStats> {
    const { effects, queue, userQueue, table } = this.#context
    const { stats } = effects
    stats.broadcastQueueLength = queue.length
    stats.broadcastQueueBytes = queue.bytes
    stats.userBroadcastQueueLength = userQueue.length
    stats.userBroadcastQueueBytes = userQueue.bytes
    stats.broadcastsDropped = queue.dropped + userQueue.dropped
    stats.healthScore = this.healthScore()
    stats.members = table.size
    stats.streamsOpen = this.#exchanges.size
    return stats
  }

  // --- inside

  #handleMessage(message: PacketMessage, from: Address, nowMs: number): void {
    const { effects, delegate } = this.#context
    effects.stats[messagesInNames[message.kind]] += 1
    switch (message.kind) {
      case 'ping':
        this.#relay.handlePing(message, from, nowMs)
        break
      case 'indirectPing':
        this.#relay.handleIndirectPing(message, from, nowMs)
        break
      case 'ack':
        this.#handleAck(message.sequence, message.payload, nowMs)
        break
      case 'nack':
        this.#running?.prober.handleNack(message.sequence)
        break
      case 'suspect':
        this.#transitions.suspect(message, nowMs)
        break
      case 'alive':
        this.#transitions.alive(message, nowMs)
        break
      case 'dead':
        this.#transitions.dead(message, nowMs)
        break
      case 'user':
        effects.stats.userMessageBytesIn += message.payload.length
        delegate.notifyMessage(message.payload, nowMs)
        break
    }
  }

  #handleAck(sequence: number, payload: Uint8Array | null, nowMs: number): void {
    const own = this.#running?.prober.handleAck(sequence, payload ?? new Uint8Array(0), nowMs)
    if (own !== true && !this.#asker.handleAck(sequence, nowMs)) {
      this.#relay.handleAck(sequence, nowMs)
    }
  }

  #nodeMeta(): Uint8Array {
    const meta = this.#context.delegate.nodeMeta(metaBytesMax)
    assert(meta.length <= metaBytesMax, `node meta is at most ${metaBytesMax} bytes`)
    return meta
  }

  #settleLeaveIfAlone(): void {
    for (const member of this.members()) {
      if (member.name !== this.#context.options.name && !isDeadOrLeft(member)) return
    }
    this.#settleLeave()
  }

  #settleLeave(): void {
    if (this.#leaveSettled) return
    this.#leaveSettled = true
    this.#context.effects.add({ kind: 'leaveSettled' })
  }
}
