/**
 * Bytes to messages: the type byte and its body, after all layers are off. Go's lenience is kept
 * (any field order, unknown fields, missing fields, trailing bytes); see `MsgpackReader` for the
 * value forms.
 */
import type { MemberName } from '../../vocabulary.js'
import {
  type Ack,
  type Alive,
  type Dead,
  type ErrorMessage,
  type IndirectPing,
  messageType,
  type NodeRecord,
  type PacketMessage,
  type Ping,
  type Suspect,
} from '../messages.js'
import { type FieldId, fields } from './field-names.js'
import { MsgpackReader } from './msgpack-reader.js'
import { type Decoded, refused } from './wire-error.js'

const u16Max = 0xffff
const u32Max = 0xffff_ffff
const emptyBytes = new Uint8Array(0)
const emptyName = '' as MemberName

/** Declaration orders, for positional arrays. */
const pingOrder: readonly FieldId[] = [
  fields.seqNo,
  fields.node,
  fields.sourceAddr,
  fields.sourcePort,
  fields.sourceNode,
]
const indirectPingOrder: readonly FieldId[] = [
  fields.seqNo,
  fields.target,
  fields.port,
  fields.node,
  fields.nack,
  fields.sourceAddr,
  fields.sourcePort,
  fields.sourceNode,
]
const ackOrder: readonly FieldId[] = [fields.seqNo, fields.payload]
const accusationOrder: readonly FieldId[] = [fields.incarnation, fields.node, fields.from]
const aliveOrder: readonly FieldId[] = [
  fields.incarnation,
  fields.node,
  fields.addr,
  fields.port,
  fields.meta,
  fields.vsn,
]
const pushPullOrder: readonly FieldId[] = [fields.nodes, fields.userStateLen, fields.join]
const recordOrder: readonly FieldId[] = [
  fields.name,
  fields.addr,
  fields.port,
  fields.meta,
  fields.incarnation,
  fields.state,
  fields.vsn,
]
const errorOrder: readonly FieldId[] = [fields.error]
const userHeaderOrder: readonly FieldId[] = [fields.userMsgLen]

export interface PushPullHeader {
  /** As they stand on the wire: may be negative or huge. */
  readonly nodes: number
  readonly userStateBytes: number
  readonly join: boolean
}

/**
 * One message of a datagram, type byte first. `compound` and `compress` are layers and unknown
 * here.
 */
export function decodeMessage(bytes: Uint8Array): Decoded<PacketMessage> {
  const type = bytes[0]
  if (type === undefined) return refused('empty')
  if (type === messageType.user)
    return { ok: true, value: { kind: 'user', payload: bytes.slice(1) } }
  const reader = new MsgpackReader(bytes, 1, bytes.length)
  const value = readBody(reader, type)
  if (value === null) return refused('unknownType')
  return reader.error === null ? { ok: true, value } : refused(reader.error)
}

function readBody(reader: MsgpackReader, type: number): PacketMessage | null {
  switch (type) {
    case messageType.ping:
      return readPing(reader)
    case messageType.indirectPing:
      return readIndirectPing(reader)
    case messageType.ack:
      return readAck(reader)
    case messageType.nack:
      return { kind: 'nack', sequence: readAck(reader).sequence }
    case messageType.suspect:
      return readAccusation(reader, 'suspect')
    case messageType.dead:
      return readAccusation(reader, 'dead')
    case messageType.alive:
      return readAlive(reader)
    default:
      return null
  }
}

export function readPing(reader: MsgpackReader): Ping {
  let node = emptyName
  let sequence = 0
  let sourceAddress = emptyBytes as Uint8Array
  let sourcePort = 0
  let sourceNode = emptyName
  reader.beginStruct(pingOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.node) node = reader.text() as MemberName
    else if (field === fields.seqNo) sequence = reader.integer(0, u32Max)
    else if (field === fields.sourceAddr) sourceAddress = reader.byteString() ?? emptyBytes
    else if (field === fields.sourcePort) sourcePort = reader.integer(0, u16Max)
    else if (field === fields.sourceNode) sourceNode = reader.text() as MemberName
    else reader.skip()
  }
  return { kind: 'ping', node, sequence, sourceAddress, sourcePort, sourceNode }
}

function readIndirectPing(reader: MsgpackReader): IndirectPing {
  let nack = false
  let target: Uint8Array | null = null
  let port = 0
  let node = emptyName
  let sequence = 0
  let sourceAddress = emptyBytes as Uint8Array
  let sourcePort = 0
  let sourceNode = emptyName
  reader.beginStruct(indirectPingOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.nack) nack = reader.boolean()
    else if (field === fields.node) node = reader.text() as MemberName
    else if (field === fields.port) port = reader.integer(0, u16Max)
    else if (field === fields.seqNo) sequence = reader.integer(0, u32Max)
    else if (field === fields.target) target = reader.byteString()
    else if (field === fields.sourceAddr) sourceAddress = reader.byteString() ?? emptyBytes
    else if (field === fields.sourcePort) sourcePort = reader.integer(0, u16Max)
    else if (field === fields.sourceNode) sourceNode = reader.text() as MemberName
    else reader.skip()
  }
  return {
    kind: 'indirectPing',
    nack,
    node,
    target,
    port,
    sequence,
    sourceAddress,
    sourcePort,
    sourceNode,
  }
}

export function readAck(reader: MsgpackReader): Ack {
  let sequence = 0
  let payload: Uint8Array | null = null
  reader.beginStruct(ackOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.seqNo) sequence = reader.integer(0, u32Max)
    else if (field === fields.payload) payload = reader.byteString()
    else reader.skip()
  }
  return { kind: 'ack', sequence, payload }
}

function readAccusation(reader: MsgpackReader, kind: 'suspect' | 'dead'): Suspect | Dead {
  let incarnation = 0
  let node = emptyName
  let from = emptyName
  reader.beginStruct(accusationOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.incarnation) incarnation = reader.integer(0, u32Max)
    else if (field === fields.node) node = reader.text() as MemberName
    else if (field === fields.from) from = reader.text() as MemberName
    else reader.skip()
  }
  return { kind, incarnation, node, from }
}

function readAlive(reader: MsgpackReader): Alive {
  let incarnation = 0
  let node = emptyName
  let addressBytes: Uint8Array | null = null
  let port = 0
  let meta: Uint8Array | null = null
  let versions: Uint8Array | null = null
  reader.beginStruct(aliveOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.addr) addressBytes = reader.byteString()
    else if (field === fields.incarnation) incarnation = reader.integer(0, u32Max)
    else if (field === fields.meta) meta = reader.byteString()
    else if (field === fields.node) node = reader.text() as MemberName
    else if (field === fields.port) port = reader.integer(0, u16Max)
    else if (field === fields.vsn) versions = reader.byteString()
    else reader.skip()
  }
  return { kind: 'alive', incarnation, node, addressBytes, port, meta, versions }
}

export function readNodeRecord(reader: MsgpackReader): NodeRecord {
  let name = emptyName
  let addressBytes: Uint8Array | null = null
  let port = 0
  let meta: Uint8Array | null = null
  let incarnation = 0
  let state = 0
  let versions: Uint8Array | null = null
  reader.beginStruct(recordOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.addr) addressBytes = reader.byteString()
    else if (field === fields.incarnation) incarnation = reader.integer(0, u32Max)
    else if (field === fields.meta) meta = reader.byteString()
    else if (field === fields.name) name = reader.text() as MemberName
    else if (field === fields.port) port = reader.integer(0, u16Max)
    else if (field === fields.state) state = readSigned(reader)
    else if (field === fields.vsn) versions = reader.byteString()
    else reader.skip()
  }
  return { name, addressBytes, port, incarnation, meta, state, versions }
}

export function readPushPullHeader(reader: MsgpackReader): PushPullHeader {
  let nodes = 0
  let userStateBytes = 0
  let join = false
  reader.beginStruct(pushPullOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.nodes) nodes = readSigned(reader)
    else if (field === fields.userStateLen) userStateBytes = readSigned(reader)
    else if (field === fields.join) join = reader.boolean()
    else reader.skip()
  }
  return { nodes, userStateBytes, join }
}

/** The announced length of a stream's user message, as it stands on the wire. */
export function readStreamUserHeader(reader: MsgpackReader): number {
  let payloadBytes = 0
  reader.beginStruct(userHeaderOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.userMsgLen) payloadBytes = readSigned(reader)
    else reader.skip()
  }
  return payloadBytes
}

export function readErrorMessage(reader: MsgpackReader): ErrorMessage {
  let text = ''
  reader.beginStruct(errorOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.error) text = reader.text()
    else reader.skip()
  }
  return { kind: 'error', text }
}

function readSigned(reader: MsgpackReader): number {
  return reader.integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
}
