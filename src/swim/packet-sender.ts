/**
 * Outgoing datagrams: what rides along, how much fits, which layers the receiver understands
 * (memberlist net.go sendMsg and rawSendMsgPacket, broadcast.go getBroadcasts).
 */
import type { Address } from '../vocabulary.js'
import { compoundHeaderBytes, compoundPartOverhead } from './codec/compound.js'
import { encodeMessage } from './codec/encode-message.js'
import { checksumFrameBytes, encodePacket, packetPartsMax } from './codec/packet.js'
import { gossipOverhead, piggybackOverhead, type Wire } from './codec/wire.js'
import type { SwimContext } from './context.js'
import type { Member } from './member.js'
import { messageType, type PacketMessage } from './messages.js'
import { type CountedKind, messagesOutNames } from './stats.js'

/** Protocol version from which a peer understands checksum frames. */
const checksumVersion = 5

const userTypeBytes = 1

const kindByType = new Map<number, CountedKind>(
  (['ping', 'indirectPing', 'ack', 'nack', 'suspect', 'alive', 'dead', 'user'] as const).map(
    kind => [messageType[kind], kind],
  ),
)

export class PacketSender {
  readonly #context: SwimContext
  readonly #userWire: Wire

  constructor(context: SwimContext) {
    this.#context = context
    const { enableCompression, compressUserPackets } = context.options
    this.#userWire = {
      ...context.wire,
      enableCompression: enableCompression && compressUserPackets,
    }
  }

  /** One message to an address, with as much news as fits beside it. */
  sendWithNews(to: Address, message: PacketMessage, nowMs: number): void {
    const bytes = encodeMessage(message)
    const { options, wire } = this.#context
    const roomBytes =
      options.udpBufferSizeBytes - bytes.length - compoundHeaderBytes - piggybackOverhead(wire)
    const news = this.#broadcasts(roomBytes, packetPartsMax - 1, nowMs)
    this.sendParts(to, null, [bytes, ...news])
  }

  /** One packet of waiting broadcasts; false if there are none that fit. */
  sendNews(peer: Member, nowMs: number): boolean {
    const { options, wire } = this.#context
    const roomBytes = options.udpBufferSizeBytes - compoundHeaderBytes - gossipOverhead(wire)
    const news = this.#broadcasts(roomBytes, packetPartsMax, nowMs)
    if (news.length === 0) return false
    this.sendParts(peer.address, peer, news)
    return true
  }

  /**
   * Encoded messages; `peer` is the receiver's entry where the original has it at hand, for the
   * checksum.
   */
  sendParts(to: Address, peer: Member | null, parts: readonly Uint8Array[]): void {
    this.#send(to, parts, peer, this.#context.wire)
  }

  /** A message of the application to one member; at most `userMessageBytesMax` long. */
  sendUserMessage(peer: Member, payload: Uint8Array): void {
    this.#send(peer.address, [userMessage(payload)], peer, this.#userWire)
  }

  /**
   * Room for one best-effort user message, so that the whole datagram keeps within the packet size.
   */
  userMessageBytesMax(): number {
    const { options, wire } = this.#context
    const overhead = userTypeBytes + checksumFrameBytes + gossipOverhead(wire)
    return options.udpBufferSizeBytes - overhead
  }

  #send(to: Address, parts: readonly Uint8Array[], peer: Member | null, wire: Wire): void {
    const checksum = peer !== null && (peer.versions[1] ?? 0) >= checksumVersion
    const bytes = encodePacket(parts, wire, { checksum })
    const { effects } = this.#context
    const { stats } = effects
    for (const part of parts) {
      const kind = kindByType.get(part[0] ?? -1)
      if (kind !== undefined) stats[messagesOutNames[kind]] += 1
    }
    stats.packetsOut += 1
    stats.packetBytesOut += bytes.length
    effects.add({ kind: 'sendPacket', to, bytes })
  }

  /** News about members first, then the application's in what is left. */
  #broadcasts(limitBytes: number, countMax: number, nowMs: number): Uint8Array[] {
    const { queue, userQueue, delegate } = this.#context
    const overhead = compoundPartOverhead
    const parts = queue.take(overhead, limitBytes, countMax)
    let roomBytes = limitBytes
    for (const part of parts) roomBytes -= part.length + overhead
    const userOverhead = overhead + userTypeBytes
    const add = (payloads: readonly Uint8Array[]) => {
      for (const payload of payloads) {
        roomBytes -= payload.length + userOverhead
        // A delegate that returns more than it was asked for loses the surplus.
        if (roomBytes >= 0 && parts.length < countMax) parts.push(userMessage(payload))
        else this.#context.effects.stats.userMessagesTooLarge += 1
      }
    }
    if (roomBytes > userOverhead) {
      add(userQueue.take(userOverhead, roomBytes, countMax - parts.length))
    }
    if (roomBytes > userOverhead && parts.length < countMax) {
      add(delegate.getBroadcasts(userOverhead, roomBytes, nowMs))
    }
    return parts
  }
}

function userMessage(payload: Uint8Array): Uint8Array {
  const message = new Uint8Array(userTypeBytes + payload.length)
  message[0] = messageType.user
  message.set(payload, userTypeBytes)
  return message
}
