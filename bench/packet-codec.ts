/**
 * Packets encoded and decoded per second: a gossip packet of 20 alive messages (some 1300 bytes),
 * plain, compressed, and encrypted with a 32-byte key, and a single ping.
 */
import { Bench } from 'tinybench'
import { encodeMessage } from '../src/swim/codec/encode-message.js'
import { Keyring } from '../src/swim/codec/keyring.js'
import { decodePacket, encodePacket } from '../src/swim/codec/packet.js'
import { createWire, type Wire } from '../src/swim/codec/wire.js'
import type { Alive, PacketMessage, Ping } from '../src/swim/messages.js'
import type { MemberName } from '../src/vocabulary.js'

export interface CodecMeasure {
  readonly name: string
  readonly opsPerSecond: number
}

const versions = Uint8Array.of(1, 5, 2, 0, 0, 0)

function alive(index: number): Alive {
  return {
    kind: 'alive',
    incarnation: index + 1,
    node: `pod-${index}` as MemberName,
    addressBytes: Uint8Array.of(10, 0, 0, index),
    port: 7946,
    meta: null,
    versions,
  }
}

const ping: Ping = {
  kind: 'ping',
  node: 'pod-1' as MemberName,
  sequence: 70_000,
  sourceAddress: Uint8Array.of(10, 0, 0, 7),
  sourcePort: 7946,
  sourceNode: 'pod-7' as MemberName,
}

/** How long each case is measured, after a shorter warm-up. */
const measureMs = 500

/** Fails if a packet does not survive the round trip: a fast wrong codec is no result. */
function addCase(bench: Bench, name: string, wire: Wire, messages: readonly PacketMessage[]): void {
  const encode = () => encodePacket(messages.map(encodeMessage), wire, { checksum: true })
  const packet = encode()
  const contents = decodePacket(packet, wire)
  if (!contents.ok || contents.value.messages.length !== messages.length)
    throw new Error(`${name}: the packet does not decode`)
  bench.add(`encode ${name} (${packet.length} bytes)`, () => {
    encode()
  })
  bench.add(`decode ${name} (${packet.length} bytes)`, () => {
    decodePacket(packet, wire)
  })
}

/** Operations per second of each case, in the order of the cases. */
export async function packetCodecBench(): Promise<CodecMeasure[]> {
  const bench = new Bench({ time: measureMs, warmupTime: measureMs / 5 })
  const gossip = Array.from({ length: 20 }, (_, index) => alive(index))
  let calls = 0
  const entropy = (length: number) => new Uint8Array(length).fill(++calls)
  const keyring = new Keyring([new Uint8Array(32).fill(7)])
  const plain = createWire({ entropy, enableCompression: false })
  const compressed = createWire({ entropy, enableCompression: true })
  const encrypted = createWire({ entropy, enableCompression: false, keyring, label: 'bench' })
  const everything = createWire({ entropy, enableCompression: true, keyring, label: 'bench' })
  addCase(bench, 'ping, plain', plain, [ping])
  addCase(bench, 'ping, encrypted', encrypted, [ping])
  addCase(bench, '20 alive, plain', plain, gossip)
  addCase(bench, '20 alive, compressed', compressed, gossip)
  addCase(bench, '20 alive, encrypted', encrypted, gossip)
  addCase(bench, '20 alive, compressed and encrypted', everything, gossip)
  await bench.run()
  return bench.tasks.map(task => {
    if (task.result.state !== 'completed') throw new Error(`${task.name}: ${task.result.state}`)
    return { name: task.name, opsPerSecond: Math.round(task.result.throughput.mean) }
  })
}
