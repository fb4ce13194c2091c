/** What the parts of one node share. Made by `Swim`, handed to each part, never seen outside. */
import type { Random } from '../ports.js'
import type { Awareness } from './awareness.js'
import type { BroadcastQueue } from './broadcast-queue.js'
import type { Wire } from './codec/wire.js'
import type { Delegate } from './delegate.js'
import type { EffectList } from './effect-list.js'
import type { MemberTable } from './member-table.js'
import type { SwimOptions } from './options.js'

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
