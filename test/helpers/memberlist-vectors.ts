/**
 * The bytes and tables taken from the real Go library, and the shapes they give their decoded
 * values in.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { NodeRecord, PacketMessage, StreamMessage } from '../../src/swim/messages.js'

export interface Vector {
  readonly name: string
  readonly hex: string
  // biome-ignore lint/suspicious/noExplicitAny: the file's values have many shapes
  readonly decoded?: any
  readonly params?: Readonly<Record<string, string | number | boolean>>
}

export interface Acceptance {
  readonly name: string
  readonly hex: string
  readonly results: readonly {
    readonly versions: readonly string[]
    readonly decoded?: GoStruct
    readonly rejected?: string
  }[]
}

export interface Rejection {
  readonly name: string
  readonly hex: string
  readonly results: readonly {
    readonly versions: readonly string[]
    readonly error: string | null
  }[]
}

export type GoStruct = Readonly<Record<string, unknown>>

interface VectorsFile {
  readonly vectors: readonly Vector[]
  readonly decoderAcceptance: readonly Acceptance[]
  readonly packetRejection: readonly Rejection[]
  // biome-ignore lint/suspicious/noExplicitAny: each table has its own shape
  readonly tables: Readonly<Record<string, any>>
}

const path = fileURLToPath(new URL('../fixtures/memberlist-vectors.json', import.meta.url))

export const memberlistVectors = JSON.parse(readFileSync(path, 'utf8')) as VectorsFile

export function vectorsUnder(prefix: string): readonly Vector[] {
  return memberlistVectors.vectors.filter(vector => vector.name.startsWith(prefix))
}

export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}

function goBytes(bytes: Uint8Array | null): unknown {
  return bytes === null ? null : { hex: toHex(bytes) }
}

function goSource(message: {
  readonly sourceAddress: Uint8Array
  readonly sourcePort: number
  readonly sourceNode: string
}): GoStruct {
  return {
    ...(message.sourceAddress.length > 0 && { SourceAddr: goBytes(message.sourceAddress) }),
    ...(message.sourceNode !== '' && { SourceNode: message.sourceNode }),
    ...(message.sourcePort > 0 && { SourcePort: message.sourcePort }),
  }
}

/** A decoded message as the vectors state it. */
export function goStructOf(message: PacketMessage | StreamMessage): GoStruct {
  switch (message.kind) {
    case 'ping':
      return { Node: message.node, SeqNo: message.sequence, ...goSource(message) }
    case 'indirectPing':
      return {
        Nack: message.nack,
        Node: message.node,
        Port: message.port,
        SeqNo: message.sequence,
        Target: goBytes(message.target),
        ...goSource(message),
      }
    case 'ack':
      return { Payload: goBytes(message.payload), SeqNo: message.sequence }
    case 'nack':
      return { SeqNo: message.sequence }
    case 'suspect':
    case 'dead':
      return { From: message.from, Incarnation: message.incarnation, Node: message.node }
    case 'alive':
      return {
        Addr: goBytes(message.addressBytes),
        Incarnation: message.incarnation,
        Meta: goBytes(message.meta),
        Node: message.node,
        Port: message.port,
        Vsn: goBytes(message.versions),
      }
    case 'error':
      return { Error: message.text }
    case 'user':
      return { payload: goBytes(message.payload) }
    case 'pushPull':
      return {
        header: {
          Join: message.join,
          Nodes: message.nodes.length,
          UserStateLen: message.userState.length,
        },
        nodes: message.nodes.map(goRecordOf),
        userState: goBytes(message.userState),
      }
  }
}

export function goRecordOf(record: NodeRecord): GoStruct {
  return {
    Addr: goBytes(record.addressBytes),
    Incarnation: record.incarnation,
    Meta: goBytes(record.meta),
    Name: record.name,
    Port: record.port,
    State: record.state,
    Vsn: goBytes(record.versions),
  }
}

/** The nonce source of the recordings: the vector's own nonce, once. */
export function fixedEntropy(nonceHex: string): (length: number) => Uint8Array {
  return () => fromHex(nonceHex)
}
