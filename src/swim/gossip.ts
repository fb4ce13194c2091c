/**
 * The two background ways of spreading news: a few packets to random members at every tick, and
 * from time to time a full exchange with one of them (memberlist state.go gossip, pushPull,
 * pushPullTrigger).
 */
import type { Address } from '../vocabulary.js'
import type { SwimContext, Timed } from './context.js'
import type { Member } from './member.js'
import type { PacketSender } from './packet-sender.js'
import { pushPullScaleMs } from './scaling.js'
import { Ticker } from './ticker.js'

export class Gossiper implements Timed {
  readonly #context: SwimContext
  readonly #sender: PacketSender
  readonly #ticker: Ticker | null

  constructor(context: SwimContext, sender: PacketSender, nowMs: number) {
    const { gossipNodes, gossipIntervalMs } = context.options
    this.#context = context
    this.#sender = sender
    this.#ticker = gossipNodes > 0 ? new Ticker(gossipIntervalMs, context.random(), nowMs) : null
  }

  nextDeadlineMs(): number {
    return this.#ticker?.nextMs ?? Infinity
  }

  advance(nowMs: number): void {
    if (this.#ticker?.take(nowMs) !== true) return
    const { options, table } = this.#context
    const peers = table.pick(options.gossipNodes, member => this.#isTold(member, nowMs))
    for (const peer of peers) if (!this.#sender.sendNews(peer, nowMs)) return
  }

  /** The freshly dead are told as well: one that is only cut off can then refute. */
  #isTold(member: Member, nowMs: number): boolean {
    const { options } = this.#context
    if (member.name === options.name || member.state === 'left') return false
    const deadForMs = nowMs - member.stateChangedAtMs
    return member.state !== 'dead' || deadForMs <= options.gossipToTheDeadTimeMs
  }
}

export class PushPuller implements Timed {
  readonly #context: SwimContext
  readonly #open: (address: Address, nowMs: number) => void
  #nextMs: number

  /** `open` starts the exchange with the chosen member. */
  constructor(
    context: SwimContext,
    open: (address: Address, nowMs: number) => void,
    nowMs: number,
  ) {
    this.#context = context
    this.#open = open
    const { pushPullIntervalMs } = context.options
    const staggerMs = pushPullIntervalMs * context.random()
    this.#nextMs = pushPullIntervalMs > 0 ? this.#following(nowMs + staggerMs) : Infinity
  }

  nextDeadlineMs(): number {
    return this.#nextMs
  }

  advance(nowMs: number): void {
    if (nowMs < this.#nextMs) return
    this.#nextMs = this.#following(nowMs)
    const { options, table } = this.#context
    const [peer] = table.pick(1, member => member.state === 'alive' && member.name !== options.name)
    if (peer !== undefined) this.#open(peer.address, nowMs)
  }

  #following(afterMs: number): number {
    const { options, table } = this.#context
    return afterMs + pushPullScaleMs(options.pushPullIntervalMs, table.size)
  }
}
