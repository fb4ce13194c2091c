/**
 * Answers to what other members ask: pings of our own, and pings held open in their place (SWIM's
 * ping-req; Lifeguard's nack; memberlist net.go handlePing, handleIndirectPing).
 */
import type { Address } from '../vocabulary.js'
import { hostOf } from './address-bytes.js'
import type { SwimContext, Timed } from './context.js'
import type { IndirectPing, Ping } from './messages.js'
import type { PacketSender } from './packet-sender.js'

/**
 * The nack goes out at this share of the probe timeout. Go waits for the whole of it, which with
 * its LAN and WAN presets is just when the asker gives up and counts the nack as missing.
 */
const nackShare = 0.8

interface OpenPing {
  readonly asker: Address
  readonly askerSequence: number
  /** Infinity once it is sent, or if none was asked for. */
  nackAtMs: number
  readonly expiresAtMs: number
}

export class Relay implements Timed {
  readonly #context: SwimContext
  readonly #sender: PacketSender
  /** By the sequence number of our own ping; in order of expiry. */
  readonly #open = new Map<number, OpenPing>()

  constructor(context: SwimContext, sender: PacketSender) {
    this.#context = context
    this.#sender = sender
  }

  nextDeadlineMs(): number {
    let deadlineMs = Infinity
    for (const ping of this.#open.values()) {
      deadlineMs = Math.min(deadlineMs, ping.nackAtMs, ping.expiresAtMs)
    }
    return deadlineMs
  }

  advance(nowMs: number): void {
    for (const [sequence, ping] of this.#open) {
      if (nowMs >= ping.nackAtMs) {
        ping.nackAtMs = Infinity
        this.#sender.sendWithNews(ping.asker, { kind: 'nack', sequence: ping.askerSequence }, nowMs)
      }
      if (nowMs >= ping.expiresAtMs) this.#open.delete(sequence)
    }
  }

  handlePing(ping: Ping, from: Address, nowMs: number): void {
    const { options, delegate, effects } = this.#context
    // A pod may have inherited the address of one that is gone: it must not answer in its name.
    if (ping.node !== '' && ping.node !== options.name) {
      effects.drop('wrongName', from, nowMs)
      return
    }
    const payload = delegate.ackPayload?.() ?? null
    const { sequence } = ping
    this.#sender.sendWithNews(answerAddress(ping, from), { kind: 'ack', sequence, payload }, nowMs)
  }

  handleIndirectPing(request: IndirectPing, from: Address, nowMs: number): void {
    const { options, effects, selfAddressBytes } = this.#context
    const host = hostOf(request.target ?? new Uint8Array(0))
    if (host === null) {
      effects.drop('addressMalformed', from, nowMs)
      return
    }
    if (options.allowed?.(host) === false) {
      effects.drop('notAllowed', from, nowMs)
      return
    }
    if (this.#open.size >= options.relaysMax) {
      effects.drop('relaysMax', from, nowMs)
      return
    }
    const sequence = this.#context.nextSequence()
    this.#open.set(sequence, {
      asker: answerAddress(request, from),
      askerSequence: request.sequence,
      nackAtMs: request.nack ? nowMs + options.probeTimeoutMs * nackShare : Infinity,
      expiresAtMs: nowMs + options.probeTimeoutMs,
    })
    effects.stats.relays += 1
    const usePort = request.port !== 0 && options.protocolVersion > 1
    const port = usePort ? request.port : options.advertise.port
    this.#sender.sendWithNews(
      { host, port },
      {
        kind: 'ping',
        node: request.node,
        sequence,
        sourceAddress: selfAddressBytes,
        sourcePort: options.advertise.port,
        sourceNode: options.name,
      },
      nowMs,
    )
  }

  /** True if the ack answers a ping held open for somebody; it is passed on under their number. */
  handleAck(sequence: number, nowMs: number): boolean {
    const ping = this.#open.get(sequence)
    if (ping === undefined) return false
    this.#open.delete(sequence)
    this.#sender.sendWithNews(
      ping.asker,
      { kind: 'ack', sequence: ping.askerSequence, payload: null },
      nowMs,
    )
    return true
  }
}

/** Where the sender says it listens; else where the datagram came from. */
function answerAddress(message: Ping | IndirectPing, from: Address): Address {
  const host = hostOf(message.sourceAddress)
  return host !== null && message.sourcePort > 0 ? { host, port: message.sourcePort } : from
}
