/**
 * What an application plugs into the protocol (memberlist's Delegate, delegate.go). All calls are
 * synchronous, come from inside `Swim` and must not call back into it; keep what is to be done.
 */
import type { Member } from './member.js'

export interface Delegate {
  /** The node's meta, at most `limit` (512) bytes. */
  nodeMeta(limit: number): Uint8Array
  /** A user message that arrived by packet or stream; the bytes are the callee's to keep. */
  notifyMessage(message: Uint8Array, nowMs: number): void
  /** Broadcasts that fill a gossip packet: each costs its length + `overhead`, `limit` in all. */
  getBroadcasts(overhead: number, limit: number, nowMs: number): readonly Uint8Array[]
  /** The application's part of a push/pull. */
  localState(join: boolean, nowMs: number): Uint8Array
  /** A peer's part of a push/pull; never empty. */
  mergeRemoteState(state: Uint8Array, join: boolean, nowMs: number): void
  /** Veto over a merge at join (memberlist's MergeDelegate): a reason refuses, null accepts. */
  notifyMerge?(peers: readonly Member[]): string | null
  /** Veto over a single alive (memberlist's AliveDelegate): a reason refuses, null accepts. */
  notifyAlive?(peer: Member): string | null
  /** Payload of the acks to direct pings (memberlist's PingDelegate). */
  ackPayload?(): Uint8Array
  /** A member that was asked (`Swim.ask`) has answered, straight or through another. */
  notifyAnswer?(member: Member, nowMs: number): void
  notifyPingComplete?(peer: Member, rttMs: number, payload: Uint8Array): void
}
