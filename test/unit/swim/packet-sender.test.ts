import { describe, expect, it } from 'vitest'
import { decodePacket } from '../../../src/swim/codec/packet.js'
import { Gossiper } from '../../../src/swim/gossip.js'
import { PacketSender } from '../../../src/swim/packet-sender.js'
import { Transitions } from '../../../src/swim/transitions.js'
import { memberlistVectors } from '../../helpers/memberlist-vectors.js'
import { createTestContext, swimOptions, type TestSettings } from '../../helpers/swim-node.js'

interface PackingRow {
  readonly variant: string
  readonly messageLen: number
  readonly messagesPerPacket: readonly number[]
  readonly packetLens: readonly number[]
}

const key = new Uint8Array(16).fill(7)
const variants: Readonly<Record<string, TestSettings>> = {
  plain: {},
  'encryption v1': { keys: [key] },
  'encryption v0 (protocol 1)': { keys: [key], protocolVersion: 1 },
  'label cluster-a': { label: 'cluster-a' },
  'label cluster-a + encryption v1': { label: 'cluster-a', keys: [key] },
}

/** A node that knows one peer of protocol range 1..5, with its queue empty. */
function createPair(settings: TestSettings) {
  const node = createTestContext(
    swimOptions('self', '127.0.0.1', { enableCompression: false, ...settings }),
  )
  const { context } = node
  const transitions = new Transitions(context)
  transitions.announceSelf(new Uint8Array(0), 0)
  transitions.alive(
    {
      kind: 'alive',
      incarnation: 1,
      node: 'peer' as never,
      addressBytes: Uint8Array.of(10, 0, 0, 1),
      port: 7946,
      meta: null,
      versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
    },
    0,
  )
  context.queue.clear()
  context.effects.take()
  const sender = new PacketSender(context)
  const packets = () =>
    context.effects.take().flatMap(effect => (effect.kind === 'sendPacket' ? [effect.bytes] : []))
  return { ...node, sender, packets, peer: context.table.get('peer')!.member }
}

/** An application message, so that its first byte is a known type. */
function userPart(length: number): Uint8Array {
  const part = new Uint8Array(length)
  part[0] = 8
  return part
}

describe('gossip packing', () => {
  const rows: readonly PackingRow[] = memberlistVectors.tables.gossipPacking.rows

  it.each(rows)('fills packets as the Go library: $variant, messages of $messageLen', row => {
    const { context, sender, packets } = createPair(variants[row.variant]!)
    for (let i = 0; i < 400; i++) context.queue.queue(`item-${i}`, userPart(row.messageLen))
    const gossiper = new Gossiper(context, sender, 0)
    gossiper.advance(context.options.gossipIntervalMs)
    const sent = packets()
    const counts = sent.map(bytes => {
      const packet = decodePacket(bytes, context.wire)
      return packet.ok ? packet.value.messages.length : packet.error
    })
    expect({ lens: sent.map(bytes => bytes.length), counts }).toEqual({
      lens: row.packetLens,
      counts: row.messagesPerPacket,
    })
  })

  it('the table has every variant', () => {
    expect(new Set(rows.map(row => row.variant))).toEqual(new Set(Object.keys(variants)))
  })
})

describe('piggybacking', () => {
  it('an ack takes membership news along, and the application fills what is left', () => {
    const { context, delegate, sender, packets, peer } = createPair({})
    context.queue.queue('n', userPart(100))
    delegate.broadcasts = [new Uint8Array([1, 2, 3])]
    sender.sendWithNews(peer.address, { kind: 'ack', sequence: 1, payload: null }, 0)
    const [bytes] = packets()
    const packet = decodePacket(bytes!, context.wire)
    expect(packet.ok && packet.value.messages.map(message => message.kind)).toEqual([
      'ack',
      'user',
      'user',
    ])
    // 1400 less the ack, the compound header and the queued message; 3 bytes per application
    // message.
    const ackBytes = 18
    expect(delegate.asked).toEqual([{ overhead: 3, limit: 1400 - ackBytes - 2 - 102 }])
  })

  it('an application that returns more than fits loses the surplus, and it is counted', () => {
    const { context, delegate, sender, packets, peer } = createPair({})
    delegate.broadcasts = [new Uint8Array(1000), new Uint8Array(1000)]
    sender.sendNews(peer, 0)
    const [bytes] = packets()
    expect(bytes!.length).toBeLessThanOrEqual(1405)
    expect(context.effects.stats.userMessagesTooLarge).toBe(1)
  })

  it('a thousand tiny broadcasts never make a compound of more than 255 parts', () => {
    const { context, sender, packets, peer } = createPair({ udpBufferSizeBytes: 9000 })
    for (let i = 0; i < 1000; i++) context.queue.queue(null, userPart(2))
    sender.sendWithNews(peer.address, { kind: 'ack', sequence: 1, payload: null }, 0)
    sender.sendNews(peer, 0)
    const counts = packets().map(bytes => {
      const packet = decodePacket(bytes, context.wire)
      return packet.ok ? packet.value.messages.length : packet.error
    })
    expect(counts).toEqual([255, 255])
  })

  it('nothing waiting means no packet', () => {
    const { sender, packets, peer } = createPair({})
    expect(sender.sendNews(peer, 0)).toBe(false)
    expect(packets()).toEqual([])
  })
})

describe('user messages', () => {
  it.each(Object.entries(variants))(
    'the longest one fills a datagram: %s',
    (_variant, settings) => {
      const { context, sender, packets, peer } = createPair(settings)
      const payload = new Uint8Array(sender.userMessageBytesMax()).fill(9)
      sender.sendUserMessage(peer, payload)
      const [bytes] = packets()
      expect(bytes!.length).toBeLessThanOrEqual(context.options.udpBufferSizeBytes)
      expect(bytes!.length).toBeGreaterThan(context.options.udpBufferSizeBytes - 17)
      const packet = decodePacket(bytes!, context.wire)
      expect(packet.ok && packet.value.messages).toEqual([{ kind: 'user', payload }])
    },
  )

  it('are compressed only on demand, other packets whenever it pays', () => {
    const payload = new Uint8Array(500)
    const sizes = [false, true].map(compressUserPackets => {
      const { sender, packets, peer } = createPair({ enableCompression: true, compressUserPackets })
      sender.sendUserMessage(peer, payload)
      return packets()[0]!.length
    })
    expect(sizes[0]).toBe(506)
    expect(sizes[1]).toBeLessThan(100)
  })

  it('carry a checksum only for peers that understand it', () => {
    const { sender, packets, peer } = createPair({})
    const old = { ...peer, versions: Uint8Array.of(1, 4, 2, 0, 0, 0) }
    sender.sendUserMessage(peer, new Uint8Array(3))
    sender.sendUserMessage(old, new Uint8Array(3))
    expect(packets().map(bytes => bytes[0])).toEqual([12, 8])
  })
})
