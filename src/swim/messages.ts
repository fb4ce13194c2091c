/**
 * The messages of the memberlist protocol as values. Nothing here knows bytes, layers or sockets;
 * `codec/` turns these into bytes and back. Source: memberlist net.go (message structs), its wire
 * protocol 1 to 5.
 *
 * A byte field that may be `null` is Go's nil slice: a receiver treats it like an empty one, but it
 * is another byte on the wire (`c0`, not `a0`), so it is kept apart and re-encoding stays
 * byte-identical.
 */
import type { MemberName } from '../vocabulary.js'
import type { MemberState } from './member.js'

/** The first byte of a message or of a layer around messages. */
export const messageType = {
  ping: 0,
  indirectPing: 1,
  ack: 2,
  suspect: 3,
  alive: 4,
  dead: 5,
  pushPull: 6,
  compound: 7,
  user: 8,
  compress: 9,
  encrypt: 10,
  nack: 11,
  checksum: 12,
  error: 13,
  label: 244,
} as const

/** Length of a well-formed `versions` field: `[pmin, pmax, pcur, dmin, dmax, dcur]`. */
export const versionsBytes = 6

/** Most bytes of meta a node may announce; receivers do not check (memberlist MetaMaxSize). */
export const metaBytesMax = 512

/** Sent by the prober; asks for an ack. Also the request of the TCP fallback. */
export interface Ping {
  readonly kind: 'ping'
  /** Whom the prober means to reach; empty: whoever listens. */
  readonly node: MemberName
  /** 0..2^32-1. */
  readonly sequence: number
  /** Where to answer; empty: the datagram's source. 4 or 16 bytes. */
  readonly sourceAddress: Uint8Array
  /** 0: the datagram's source. */
  readonly sourcePort: number
  /** Empty from senders older than memberlist 0.2.0. */
  readonly sourceNode: MemberName
}

/** Asks a third member to ping `target` in the sender's place. */
export interface IndirectPing {
  readonly kind: 'indirectPing'
  /** The sender understands nacks. */
  readonly nack: boolean
  readonly node: MemberName
  readonly target: Uint8Array | null
  /** 0: the receiver's own bind port. */
  readonly port: number
  readonly sequence: number
  readonly sourceAddress: Uint8Array
  readonly sourcePort: number
  readonly sourceNode: MemberName
}

/** Answers a ping, directly or through a relay. */
export interface Ack {
  readonly kind: 'ack'
  readonly sequence: number
  readonly payload: Uint8Array | null
}

/** A relay's word that it asked and got no answer in time. */
export interface Nack {
  readonly kind: 'nack'
  readonly sequence: number
}

export interface Suspect {
  readonly kind: 'suspect'
  readonly incarnation: number
  readonly node: MemberName
  readonly from: MemberName
}

/** A death notice; `from` equal to `node` is a leave. */
export interface Dead {
  readonly kind: 'dead'
  readonly incarnation: number
  readonly node: MemberName
  readonly from: MemberName
}

export interface Alive {
  readonly kind: 'alive'
  readonly incarnation: number
  readonly node: MemberName
  /** 4 or 16 bytes from a sane sender; part of the identity as they stand. */
  readonly addressBytes: Uint8Array | null
  readonly port: number
  readonly meta: Uint8Array | null
  /** `versionsBytes` long from a sane sender; the length is not checked by the codec. */
  readonly versions: Uint8Array | null
}

/** An opaque message of the application, by packet or by stream. */
export interface UserMessage {
  readonly kind: 'user'
  readonly payload: Uint8Array
}

/** One member as a push/pull carries it. */
export interface NodeRecord {
  readonly name: MemberName
  readonly addressBytes: Uint8Array | null
  readonly port: number
  readonly incarnation: number
  readonly meta: Uint8Array | null
  /** 0 alive, 1 suspect, 2 dead, 3 left; anything else is to be ignored. See `memberStateOf`. */
  readonly state: number
  readonly versions: Uint8Array | null
}

/** Everything one side knows; request and reply have the same form. */
export interface PushPull {
  readonly kind: 'pushPull'
  readonly join: boolean
  readonly nodes: readonly NodeRecord[]
  /** The application's part; empty when there is none. */
  readonly userState: Uint8Array
}

/** The listener's answer to a stream that it could not open. */
export interface ErrorMessage {
  readonly kind: 'error'
  readonly text: string
}

/** What a datagram can carry, alone or in a compound. */
export type PacketMessage = Ping | IndirectPing | Ack | Nack | Suspect | Alive | Dead | UserMessage

/** What a stream can carry; exactly one each way. */
export type StreamMessage = Ping | Ack | PushPull | UserMessage | ErrorMessage

const memberStates: readonly MemberState[] = ['alive', 'suspect', 'dead', 'left']

/** The state a record's number stands for; null for a number this protocol does not define. */
export function memberStateOf(state: number): MemberState | null {
  return memberStates[state] ?? null
}

/** The number a record carries for a state, 0..3. */
export function wireStateOf(state: MemberState): number {
  return memberStates.indexOf(state)
}
