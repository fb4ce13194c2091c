/** What the parts of one node share. Made by `Swim`, handed to each part, never seen outside. */
import { assert } from '../lib/assert.js'
import type { Entropy, Random } from '../ports.js'
import { addressBytesOf } from './address-bytes.js'
import { Awareness } from './awareness.js'
import { BroadcastQueue } from './broadcast-queue.js'
import type { Keyring } from './codec/keyring.js'
import { createWire, type Wire } from './codec/wire.js'
import type { Delegate } from './delegate.js'
import { EffectList } from './effect-list.js'
import { MemberTable } from './member-table.js'
import { protocolVersionMax, protocolVersionMin, type SwimOptions } from './options.js'
import { emptyStats } from './stats.js'

export interface SwimContext {
  readonly options: SwimOptions
  readonly wire: Wire
  readonly random: Random
  readonly delegate: Delegate
  readonly effects: EffectList
  readonly table: MemberTable
  /** News about members; goes before everything else. */
  readonly queue: BroadcastQueue
  /** The application's broadcasts given to `Swim.queueBroadcast`. */
  readonly userQueue: BroadcastQueue
  readonly awareness: Awareness
  /** The address this node announces, 4 bytes for IPv4. */
  readonly selfAddressBytes: Uint8Array
  /** `[1, 5, protocolVersion, dmin, dmax, dcur]`. */
  readonly selfVersions: Uint8Array
  /** True from `leave()` on; news about this node is then taken as it comes. */
  leaving: boolean
  /** The own leave message needs to be sent no more. */
  leaveSent(): void
  /** The next number for a ping, 1..2^32-1 and around. */
  nextSequence(): number
}

/** What a part that waits for times offers. */
export interface Timed {
  /** Does what is due. */
  advance(nowMs: number): void
  /** When something is due, Infinity if nothing is. */
  nextDeadlineMs(): number
}

export interface ContextPorts {
  readonly random: Random
  readonly entropy: Entropy
  readonly delegate: Delegate
  readonly keyring: Keyring
}

const sequenceMax = 0xffff_ffff

/** The state of a node that has not started: an empty table and empty queues. */
export function createContext(
  options: SwimOptions,
  ports: ContextPorts,
  leaveSent: () => void,
): SwimContext {
  const selfAddressBytes = addressBytesOf(options.advertise.host)
  assert(selfAddressBytes !== null, 'the advertised host is an IP address')
  const table = new MemberTable(ports.random)
  const queueOptions = {
    retransmitMult: options.retransmitMult,
    itemsMax: options.broadcastQueueMax,
    nodes: () => table.size,
  }
  let sequence = 0
  return {
    options,
    wire: createWire({ ...options, keyring: ports.keyring, entropy: ports.entropy }),
    random: ports.random,
    delegate: ports.delegate,
    effects: new EffectList(emptyStats()),
    table,
    queue: new BroadcastQueue(queueOptions),
    userQueue: new BroadcastQueue(queueOptions),
    awareness: new Awareness(options.awarenessMaxMultiplier),
    selfAddressBytes,
    selfVersions: Uint8Array.of(
      protocolVersionMin,
      protocolVersionMax,
      options.protocolVersion,
      options.delegateProtocolMin,
      options.delegateProtocolMax,
      options.delegateProtocolVersion,
    ),
    leaving: false,
    leaveSent,
    nextSequence() {
      sequence = sequence === sequenceMax ? 1 : sequence + 1
      return sequence
    },
  }
}
