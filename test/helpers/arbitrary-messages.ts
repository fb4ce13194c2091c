/**
 * fast-check generators of protocol messages and wire settings, shared by property and fuzz tests.
 */
import fc from 'fast-check'
import { Keyring } from '../../src/swim/codec/keyring.js'
import { createWire, type Wire } from '../../src/swim/codec/wire.js'
import type { NodeRecord, PacketMessage, StreamMessage } from '../../src/swim/messages.js'
import type { MemberName } from '../../src/vocabulary.js'

const u32 = fc.oneof(fc.constantFrom(0, 127, 128, 255, 256, 65_535, 65_536), fc.nat(0xffff_ffff))
const u16 = fc.nat(0xffff)
const bytes = (maxLength: number) => fc.uint8Array({ maxLength })
const nullable = (maxLength: number) => fc.option(bytes(maxLength), { nil: null })
const name = fc
  .oneof(
    fc.string({ maxLength: 40 }),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.constant('n'.repeat(70_000)),
  )
  .map(text => text as MemberName)

const source = {
  sourceAddress: bytes(16),
  sourcePort: u16,
  sourceNode: name,
}

const ping = fc.record({ kind: fc.constant('ping' as const), node: name, sequence: u32, ...source })

const ack = fc.record({ kind: fc.constant('ack' as const), sequence: u32, payload: nullable(400) })

const user = fc.record({ kind: fc.constant('user' as const), payload: bytes(600) })

export const packetMessage: fc.Arbitrary<PacketMessage> = fc.oneof(
  ping,
  fc.record({
    kind: fc.constant('indirectPing' as const),
    nack: fc.boolean(),
    node: name,
    target: nullable(16),
    port: u16,
    sequence: u32,
    ...source,
  }),
  ack,
  fc.record({ kind: fc.constant('nack' as const), sequence: u32 }),
  fc.record({
    kind: fc.constantFrom('suspect' as const, 'dead' as const),
    incarnation: u32,
    node: name,
    from: name,
  }),
  fc.record({
    kind: fc.constant('alive' as const),
    incarnation: u32,
    node: name,
    addressBytes: nullable(16),
    port: u16,
    meta: nullable(512),
    versions: nullable(6),
  }),
  user,
)

const nodeRecord: fc.Arbitrary<NodeRecord> = fc.record({
  name,
  addressBytes: nullable(16),
  port: u16,
  incarnation: u32,
  meta: nullable(512),
  state: fc.nat(4),
  versions: nullable(6),
})

/** What a listener accepts. */
export const requestMessage: fc.Arbitrary<StreamMessage> = fc.oneof(
  ping,
  user,
  fc.record({
    kind: fc.constant('pushPull' as const),
    join: fc.boolean(),
    nodes: fc.array(nodeRecord, { maxLength: 20 }),
    userState: bytes(2000),
  }),
)

/** What a dialler accepts. */
export const replyMessage: fc.Arbitrary<StreamMessage> = fc.oneof(
  ack,
  fc.record({ kind: fc.constant('error' as const), text: fc.string({ maxLength: 300 }) }),
  requestMessage.filter(message => message.kind === 'pushPull'),
)

/** A node's settings, with nonces that depend on nothing but the order of calls. */
export const wire: fc.Arbitrary<Wire> = fc
  .record({
    label: fc.oneof(fc.constant(''), fc.string({ minLength: 1, maxLength: 60 })),
    key: fc.option(fc.constantFrom(16, 24, 32), { nil: null }),
    enableCompression: fc.boolean(),
    protocolVersion: fc.constantFrom(1, 2, 5),
    gossipVerifyOutgoing: fc.boolean(),
  })
  .map(({ key, gossipVerifyOutgoing, ...options }) => {
    let calls = 0
    return createWire({
      ...options,
      keyring: key === null ? null : new Keyring([new Uint8Array(key).fill(key)]),
      gossipVerifyOutgoing,
      gossipVerifyIncoming: gossipVerifyOutgoing,
      entropy: length => new Uint8Array(length).fill(++calls),
    })
  })
