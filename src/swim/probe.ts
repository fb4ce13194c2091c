/**
 * Failure detection: one member at a time is pinged, then through others and by TCP, then suspected
 * (SWIM section 4.1; Lifeguard's LHA-Probe and nacks; memberlist state.go probeNode).
 *
 *     t=0                probeTimeoutMs                             probeInterval x (score + 1)
 *      | ping -> target        | ping-req -> indirectChecks members      |
 *      |                       | TCP ping -> target                      | no answer: suspect
 *      +---- ack: success -----+---- ack, own or relayed: success -------+
 */
import { encodeMessage } from './codec/encode-message.js'
import type { SwimContext, Timed } from './context.js'
import type { StreamId } from './effects.js'
import type { Member } from './member.js'
import { isDeadOrLeft } from './member-table.js'
import type { Ping } from './messages.js'
import type { PacketSender } from './packet-sender.js'
import { Ticker } from './ticker.js'
import type { Transitions } from './transitions.js'

/** Protocol versions from which a peer understands these. */
const streamPingVersion = 3
const nackVersion = 4

interface Probe {
  readonly target: Member
  readonly ping: Ping
  readonly sentAtMs: number
  readonly timeoutAtMs: number
  deadlineMs: number
  /** The second stage has begun. */
  indirect: boolean
  nacksExpected: number
  nacks: number
  stream: StreamId | null
  streamAnswered: boolean
}

/** Opens the TCP ping; null if no stream can be opened. */
export type OpenPingStream = (
  target: Member,
  ping: Ping,
  timeoutMs: number,
  nowMs: number,
) => StreamId | null

export class Prober implements Timed {
  readonly #context: SwimContext
  readonly #sender: PacketSender
  readonly #transitions: Transitions
  readonly #openPingStream: OpenPingStream
  readonly #ticker: Ticker
  #probe: Probe | null = null

  constructor(
    context: SwimContext,
    parts: {
      readonly sender: PacketSender
      readonly transitions: Transitions
      readonly openPingStream: OpenPingStream
    },
    nowMs: number,
  ) {
    this.#context = context
    this.#sender = parts.sender
    this.#transitions = parts.transitions
    this.#openPingStream = parts.openPingStream
    this.#ticker = new Ticker(context.options.probeIntervalMs, context.random(), nowMs)
  }

  nextDeadlineMs(): number {
    const probe = this.#probe
    if (probe === null) return this.#ticker.nextMs
    return probe.indirect ? probe.deadlineMs : probe.timeoutAtMs
  }

  advance(nowMs: number): void {
    const probe = this.#probe
    if (probe !== null && !probe.indirect && nowMs >= probe.timeoutAtMs) {
      this.#askOthers(probe, nowMs)
    }
    if (probe?.indirect === true && nowMs >= probe.deadlineMs) this.#conclude(probe, nowMs)
    // While a probe is open ticks wait; when it ends, the one that came meanwhile starts the next.
    if (this.#probe === null && this.#ticker.take(nowMs)) this.#begin(nowMs)
  }

  /** True if the ack belongs to the open probe. */
  handleAck(sequence: number, payload: Uint8Array, nowMs: number): boolean {
    const probe = this.#probe
    if (probe === null || probe.ping.sequence !== sequence) return false
    if (probe.indirect) {
      this.#context.effects.stats.probesRescuedLate += 1
    } else {
      this.#context.delegate.notifyPingComplete?.(probe.target, nowMs - probe.sentAtMs, payload)
    }
    this.#succeed()
    return true
  }

  handleNack(sequence: number): void {
    const probe = this.#probe
    if (probe?.ping.sequence === sequence) probe.nacks += 1
  }

  /** The TCP ping was answered as it should be. It counts when the time for packets is over. */
  handleStreamAck(stream: StreamId, sequence: number): void {
    const probe = this.#probe
    if (probe?.stream === stream && probe.ping.sequence === sequence) probe.streamAnswered = true
  }

  #begin(nowMs: number): void {
    const { options, table, awareness, effects, selfAddressBytes } = this.#context
    const entry = table.nextToProbe(
      member => member.name !== options.name && !isDeadOrLeft(member),
      () => this.#endOfRound(nowMs),
    )
    if (entry === null) return
    const target = entry.member
    const ping: Ping = {
      kind: 'ping',
      node: target.name,
      sequence: this.#context.nextSequence(),
      sourceAddress: selfAddressBytes,
      sourcePort: options.advertise.port,
      sourceNode: options.name,
    }
    this.#probe = {
      target,
      ping,
      sentAtMs: nowMs,
      timeoutAtMs: nowMs + options.probeTimeoutMs,
      deadlineMs: nowMs + awareness.scaleMs(options.probeIntervalMs),
      indirect: false,
      nacksExpected: 0,
      nacks: 0,
      stream: null,
      streamAnswered: false,
    }
    effects.stats.probes += 1
    if (awareness.score > 0) effects.stats.probesDegraded += 1
    if (target.state === 'alive') this.#sender.sendWithNews(target.address, ping, nowMs)
    else this.#pingAndAccuse(target, ping)
  }

  /** A suspect is told so together with the ping, to give it the earliest chance to refute. */
  #pingAndAccuse(target: Member, ping: Ping): void {
    const suspect = encodeMessage({
      kind: 'suspect',
      incarnation: target.incarnation,
      node: target.name,
      from: this.#context.options.name,
    })
    this.#sender.sendParts(target.address, target, [encodeMessage(ping), suspect])
  }

  #endOfRound(nowMs: number): void {
    const { options, table, effects } = this.#context
    effects.stats.membersReaped += table.reap(
      member =>
        isDeadOrLeft(member) &&
        member.name !== options.name &&
        nowMs - member.stateChangedAtMs > options.gossipToTheDeadTimeMs,
    )
    table.shuffle()
  }

  #askOthers(probe: Probe, nowMs: number): void {
    const { options, table, effects, selfAddressBytes } = this.#context
    const { target, ping } = probe
    // After a stall of this process the answers may still wait in the socket: the second stage
    // always gets its full time.
    probe.deadlineMs += nowMs - probe.timeoutAtMs
    probe.indirect = true
    effects.stats.probesIndirect += 1
    const relays = table.pick(
      options.indirectChecks,
      member =>
        member.state === 'alive' && member.name !== options.name && member.name !== target.name,
    )
    for (const relay of relays) {
      const nack = (relay.versions[1] ?? 0) >= nackVersion
      if (nack) probe.nacksExpected += 1
      this.#sender.sendWithNews(
        relay.address,
        {
          kind: 'indirectPing',
          nack,
          node: target.name,
          target: target.addressBytes,
          port: target.address.port,
          sequence: ping.sequence,
          sourceAddress: selfAddressBytes,
          sourcePort: options.advertise.port,
          sourceNode: options.name,
        },
        nowMs,
      )
    }
    if (options.disableTcpPings || (target.versions[1] ?? 0) < streamPingVersion) return
    probe.stream = this.#openPingStream(target, ping, probe.deadlineMs - nowMs, nowMs)
  }

  #conclude(probe: Probe, nowMs: number): void {
    const { options, awareness, effects, table } = this.#context
    const { target } = probe
    if (probe.streamAnswered) {
      effects.stats.probesRescuedByStream += 1
      effects.notice('warn', 'a member answers by TCP but not by UDP: is UDP blocked?', {
        member: target.name,
      })
      this.#succeed()
      return
    }
    this.#probe = null
    effects.stats.probesFailed += 1
    const missing = Math.max(0, probe.nacksExpected - probe.nacks)
    effects.stats.nacksExpected += probe.nacksExpected
    effects.stats.nacksMissing += missing
    // Relays that keep quiet are a sign that this node is the one in trouble.
    awareness.applyDelta(probe.nacksExpected > 0 ? missing : 1)
    const { incarnation, name: node } = target
    // It may have refuted or died while the probe was open; the suspicion is then void.
    const current = table.get(node)?.member
    if (current?.incarnation === incarnation && !isDeadOrLeft(current)) {
      effects.notice('info', 'suspecting a member: no ack in time', { member: node })
    }
    this.#transitions.suspect({ kind: 'suspect', incarnation, node, from: options.name }, nowMs)
  }

  #succeed(): void {
    this.#probe = null
    this.#context.awareness.applyDelta(-1)
  }
}
