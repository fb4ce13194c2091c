/**
 * Hostile bytes against a whole node, through the same doors as real ones. Whatever arrives, the
 * node throws nothing, keeps within its bounds, and still answers a ping afterwards. Seeds are
 * printed on failure.
 */
import { describe, expect, it } from 'vitest'
import { encodeMessage } from '../../src/swim/codec/encode-message.js'
import { decodePacket, encodePacket } from '../../src/swim/codec/packet.js'
import { encodeStream } from '../../src/swim/codec/stream.js'
import { createWire } from '../../src/swim/codec/wire.js'
import type { PacketMessage } from '../../src/swim/messages.js'
import type { MemberName } from '../../src/vocabulary.js'
import { fromHex, memberlistVectors } from '../helpers/memberlist-vectors.js'
import { createNode, seededRandom, swimOptions } from '../helpers/swim-node.js'

const budgetMs = 1500
const wire = createWire({ entropy: length => new Uint8Array(length) })
const peer = { host: '10.0.0.9', port: 7946 }
const recorded = memberlistVectors.vectors.map(vector => fromHex(vector.hex))

function randomMessage(random: () => number): PacketMessage {
  const below = (bound: number) => Math.floor(random() * bound)
  const node = `n${below(40)}` as MemberName
  const from = `n${below(40)}` as MemberName
  const incarnation = [0, 1, below(10), 0xffff_ffff, below(2 ** 32)][below(5)]!
  const bytes = (length: number) => Uint8Array.from({ length }, () => below(256))
  switch (below(6)) {
    case 0:
      return { kind: 'suspect', node, from, incarnation }
    case 1:
      return { kind: 'dead', node, from, incarnation }
    case 2:
      return { kind: below(2) === 0 ? 'nack' : 'ack', sequence: below(50), payload: null }
    case 3:
      return {
        kind: 'indirectPing',
        nack: below(2) === 0,
        node,
        target: bytes([4, 16, 3][below(3)]!),
        port: below(65_536),
        sequence: below(2 ** 32),
        sourceAddress: bytes([0, 4, 7][below(3)]!),
        sourcePort: below(65_536),
        sourceNode: from,
      }
    default:
      return {
        kind: 'alive',
        node: below(20) === 0 ? ('self' as MemberName) : node,
        incarnation,
        addressBytes: bytes([4, 16, 0, 5][below(4)]!),
        port: below(65_536),
        meta: bytes(below(600)),
        versions: below(3) === 0 ? bytes(below(8)) : Uint8Array.of(1, 5, 2, 0, 0, 0),
      }
  }
}

function mutated(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = bytes.slice(0, random() < 0.3 ? Math.floor(random() * bytes.length) : bytes.length)
  const flips = Math.floor(random() * 4)
  for (let i = 0; i < flips && copy.length > 0; i++) {
    copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
  }
  return copy
}

function createTarget() {
  const node = createNode(swimOptions('self', '10.0.0.1', { membersMax: 30, relaysMax: 8 }))
  node.swim.start(0)
  node.swim.takeEffects()
  return node.swim
}

/** Feeds one input through a door chosen by chance. */
function feed(swim: ReturnType<typeof createTarget>, random: () => number, nowMs: number): void {
  const crafted = () => encodeMessage(randomMessage(random))
  const source = random() < 0.5 ? recorded[Math.floor(random() * recorded.length)]! : crafted()
  const bytes = random() < 0.3 ? source : mutated(source, random)
  if (random() < 0.7) {
    const packet =
      random() < 0.5 || bytes.length === 0
        ? bytes
        : encodePacket([bytes, crafted()], wire, { checksum: random() < 0.5 })
    swim.handlePacket(packet, peer, nowMs)
    return
  }
  const stream = swim.acceptStream(peer, nowMs)
  if (stream === null) return
  const cut = Math.floor(random() * bytes.length)
  swim.handleStreamData(stream, bytes.subarray(0, cut), nowMs)
  swim.handleStreamData(stream, bytes.subarray(cut), nowMs)
  if (random() < 0.7) swim.handleStreamEnd(stream, random() < 0.5 ? null : 'reset', nowMs)
}

function assertSane(swim: ReturnType<typeof createTarget>, seed: number, nowMs: number): void {
  const { stats } = swim
  expect(stats.members, `seed ${seed}`).toBeLessThanOrEqual(30)
  expect(stats.streamsOpen, `seed ${seed}`).toBeLessThanOrEqual(256)
  expect(swim.self(), `seed ${seed}`).toMatchObject({ name: 'self', state: 'alive' })
  swim.takeEffects()
  const source = { sourceAddress: new Uint8Array(0), sourcePort: 0, sourceNode: '' as MemberName }
  const ping = { kind: 'ping', node: 'self' as MemberName, sequence: 77, ...source } as const
  swim.handlePacket(encodeMessage(ping), peer, nowMs)
  const answer = swim.takeEffects().find(effect => effect.kind === 'sendPacket')
  const packet = answer?.kind === 'sendPacket' ? decodePacket(answer.bytes, wire) : null
  expect(packet?.ok === true && packet.value.messages[0], `seed ${seed}`).toMatchObject({
    kind: 'ack',
    sequence: 77,
  })
}

describe('a node under hostile input', () => {
  it('throws nothing, keeps its bounds and goes on answering', () => {
    const startedAt = performance.now()
    let seed = 0
    while (performance.now() - startedAt < budgetMs || seed < 3) {
      seed += 1
      const random = seededRandom(seed)
      const swim = createTarget()
      let nowMs = 0
      for (let i = 0; i < 300; i++) {
        nowMs += random() * 100
        try {
          feed(swim, random, nowMs)
          swim.advance(nowMs)
        } catch (error) {
          throw new Error(`seed ${seed}, input ${i}`, { cause: error })
        }
        if (i % 20 === 0) swim.takeEffects()
      }
      assertSane(swim, seed, nowMs)
    }
  })

  it('a peer that answers our streams with rubbish is a counted failure', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const random = seededRandom(seed)
      const swim = createTarget()
      swim.join([peer], 0)
      const [opened] = swim.takeEffects()
      if (opened?.kind !== 'openStream') throw new Error('no stream')
      const reply = encodeStream(
        { kind: 'pushPull', join: true, nodes: [], userState: new Uint8Array(9) },
        wire,
        'reply',
      )
      swim.handleStreamData(opened.stream, mutated(reply, random), 1)
      swim.handleStreamEnd(opened.stream, null, 2)
      const settled = swim.takeEffects().filter(effect => effect.kind === 'exchangeSettled')
      expect(settled, `seed ${seed}`).toHaveLength(1)
    }
  })
})
