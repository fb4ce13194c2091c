/**
 * Questions beside the schedule of probes: is a member there, now? An answer is told to the
 * application; none tells SWIM nothing. On the wire they are memberlist's ping and indirect ping.
 */
import type { SwimContext } from './context.js'
import type { Member } from './member.js'
import type { PacketSender } from './packet-sender.js'

/** Questions without an answer that are remembered; the oldest go. */
const openMax = 1024

export class Asker {
  readonly #context: SwimContext
  readonly #sender: PacketSender
  /** Who was asked, by sequence number, in the order of asking. */
  readonly #open = new Map<number, Member>()

  constructor(context: SwimContext, sender: PacketSender) {
    this.#context = context
    this.#sender = sender
  }

  ask(target: Member, nowMs: number): void {
    const { options, table, selfAddressBytes } = this.#context
    const sequence = this.#context.nextSequence()
    const question = {
      node: target.name,
      sequence,
      sourceAddress: selfAddressBytes,
      sourcePort: options.advertise.port,
      sourceNode: options.name,
    }
    this.#sender.sendWithNews(target.address, { kind: 'ping', ...question }, nowMs)
    const isOther = (member: Member) =>
      member.state === 'alive' && member.name !== options.name && member.name !== target.name
    for (const relay of table.pick(1, isOther)) {
      const { addressBytes, address } = target
      const through = { target: addressBytes, port: address.port, nack: false }
      const message = { kind: 'indirectPing', ...question, ...through } as const
      this.#sender.sendWithNews(relay.address, message, nowMs)
    }
    this.#open.set(sequence, target)
    if (this.#open.size <= openMax) return
    for (const oldest of this.#open.keys()) {
      this.#open.delete(oldest)
      break
    }
  }

  /** True if the ack answers a question; a second answer to it is nobody's. */
  handleAck(sequence: number, nowMs: number): boolean {
    const member = this.#open.get(sequence)
    if (member === undefined) return false
    this.#open.delete(sequence)
    this.#context.delegate.notifyAnswer?.(member, nowMs)
    return true
  }
}
