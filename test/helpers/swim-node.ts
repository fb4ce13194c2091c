/**
 * Nodes for tests: a delegate that keeps what it is told, seeded chance, options for a name and an
 * address.
 */
import type { Random } from '../../src/ports.js'
import { Keyring } from '../../src/swim/codec/keyring.js'
import { createContext, type SwimContext } from '../../src/swim/context.js'
import type { Delegate } from '../../src/swim/delegate.js'
import type { PacketMessage } from '../../src/swim/messages.js'
import { lanDefaults, type SwimOptions, type SwimSettings } from '../../src/swim/options.js'
import { Swim } from '../../src/swim/protocol.js'
import type { MemberName } from '../../src/vocabulary.js'

export const textBytes = (text: string) => new TextEncoder().encode(text)
export const bytesText = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** Mulberry32: small, seeded, good enough to choose peers. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Nonces that never repeat; what they are does not matter to a test. */
export function countingEntropy(): (length: number) => Uint8Array {
  let count = 0
  return length => {
    count += 1
    const bytes = new Uint8Array(length)
    new DataView(bytes.buffer).setUint32(0, count)
    return bytes
  }
}

export class RecordingDelegate implements Delegate {
  meta: Uint8Array = new Uint8Array(0)
  state: Uint8Array = new Uint8Array(0)
  broadcasts: Uint8Array[] = []
  mergeVeto: string | null = null
  aliveVeto: (name: string) => string | null = () => null
  readonly messages: Uint8Array[] = []
  readonly states: { readonly state: Uint8Array; readonly join: boolean }[] = []
  readonly pings: { readonly name: string; readonly rttMs: number; readonly payload: string }[] = []
  readonly asked: { readonly overhead: number; readonly limit: number }[] = []

  nodeMeta(): Uint8Array {
    return this.meta
  }

  notifyMessage(message: Uint8Array): void {
    this.messages.push(message)
  }

  getBroadcasts(overhead: number, limit: number): readonly Uint8Array[] {
    this.asked.push({ overhead, limit })
    return this.broadcasts.splice(0)
  }

  localState(): Uint8Array {
    return this.state
  }

  mergeRemoteState(state: Uint8Array, join: boolean): void {
    this.states.push({ state, join })
  }

  notifyMerge(): string | null {
    return this.mergeVeto
  }

  notifyAlive(peer: { readonly name: string }): string | null {
    return this.aliveVeto(peer.name)
  }

  ackPayload(): Uint8Array {
    return textBytes('pong')
  }

  notifyPingComplete(peer: { readonly name: string }, rttMs: number, payload: Uint8Array): void {
    this.pings.push({ name: peer.name, rttMs, payload: bytesText(payload) })
  }
}

/** A node at `10.0.0.HOST` that announces itself for the first time. */
export function aliveOf(node: string, host = 9): PacketMessage {
  return {
    kind: 'alive',
    incarnation: 1,
    node: node as MemberName,
    addressBytes: Uint8Array.of(10, 0, 0, host),
    port: 7946,
    meta: null,
    versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
  }
}

export type TestSettings = Partial<SwimSettings>

export function swimOptions(
  name: string,
  host = '127.0.0.1',
  settings: TestSettings = {},
): SwimOptions {
  const identity = { name: name as MemberName, advertise: { host, port: 7946 } }
  return { ...lanDefaults, ...settings, ...identity }
}

/** A node that has not started, with its delegate. */
export function createNode(options: SwimOptions, seed = 1) {
  const delegate = new RecordingDelegate()
  const ports = { random: seededRandom(seed), entropy: countingEntropy(), delegate }
  return { swim: new Swim(options, ports), delegate }
}

/** The inside of a node, for tests of single parts. */
export function createTestContext(options: SwimOptions, seed = 1) {
  const delegate = new RecordingDelegate()
  const keyring = new Keyring(options.keys)
  const left: true[] = []
  const ports = { random: seededRandom(seed), entropy: countingEntropy(), delegate, keyring }
  const context: SwimContext = createContext(options, ports, () => left.push(true))
  return { context, delegate, left }
}
