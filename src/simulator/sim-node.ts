/**
 * What the simulator needs of a node: the part of `Core` that it steps. Tests put small nodes in
 * its place; everything else runs the real one.
 */
import type { RequestFacts } from '../limiter/request-facts.js'
import type { Effect, StreamId } from '../swim/effects.js'
import type { Address, DecisionInterface } from '../vocabulary.js'
import type { SeededRandom } from './seeded-random.js'

export interface SimNode {
  start(monotonicMs: number, wallMs: number): void
  decide(
    facts: RequestFacts,
    via: DecisionInterface,
    monotonicMs: number,
    wallMs: number,
  ): { readonly allowed: boolean }
  join(addresses: readonly Address[], monotonicMs: number, wallMs: number): void
  setExpectedPeers(addresses: readonly Address[] | null, monotonicMs: number, wallMs: number): void
  handlePacket(bytes: Uint8Array, from: Address, monotonicMs: number, wallMs: number): void
  /** Null refuses the connection. */
  acceptStream(from: Address, monotonicMs: number): StreamId | null
  handleStreamData(stream: StreamId, bytes: Uint8Array, monotonicMs: number, wallMs: number): void
  handleStreamEnd(stream: StreamId, error: string | null, monotonicMs: number, wallMs: number): void
  advance(monotonicMs: number, wallMs: number): void
  nextDeadlineMs(): number
  takeEffects(): readonly Effect[]
  synced(): boolean
  setDraining(monotonicMs: number, wallMs: number): void
  flush(monotonicMs: number, wallMs: number): void
  leave(monotonicMs: number, wallMs: number): void
  /** Other members that this node believes alive. */
  alivePeers(): number
}

/** Who a new process is. */
export interface NodeIdentity {
  /** The configured node name; a restarted process has its predecessor's. */
  readonly node: string
  /** Unique per process: the suffix of its name on the wire. */
  readonly start: number
  readonly address: Address
  readonly startWallMs: number
  /** The process's own chance. */
  readonly random: SeededRandom
}

export type NodeFactory = (identity: NodeIdentity) => SimNode
