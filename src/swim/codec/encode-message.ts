/**
 * Messages to bytes: the type byte and its body, before any layer. Fields stand in alphabetical
 * order, as Go writes them, so the bytes equal Go's. Nothing here compresses, encrypts or frames.
 */
import { ByteWriter } from '../../lib/byte-writer.js'
import {
  type ErrorMessage,
  type IndirectPing,
  messageType,
  type NodeRecord,
  type PacketMessage,
  type Ping,
} from '../messages.js'
import { fields } from './field-names.js'
import {
  writeBooleanField,
  writeBytesField,
  writeSignedField,
  writeStruct,
  writeTextField,
  writeUnsignedField,
} from './msgpack-writer.js'

/** Shared by all encodings: each writes and finishes before it returns. */
const out = new ByteWriter(2048)

/** One message as a datagram or a compound part carries it. */
export function encodeMessage(message: PacketMessage): Uint8Array {
  // A bug that threw in the middle of a message must not leak into the next one.
  out.clear()
  switch (message.kind) {
    case 'ping':
      writePing(message)
      break
    case 'indirectPing':
      writeIndirectPing(message)
      break
    case 'ack':
      out.u8(messageType.ack)
      writeStruct(out, 2)
      writeBytesField(out, fields.payload, message.payload)
      writeUnsignedField(out, fields.seqNo, message.sequence)
      break
    case 'nack':
      out.u8(messageType.nack)
      writeStruct(out, 1)
      writeUnsignedField(out, fields.seqNo, message.sequence)
      break
    case 'suspect':
    case 'dead':
      out.u8(messageType[message.kind])
      writeStruct(out, 3)
      writeTextField(out, fields.from, message.from)
      writeUnsignedField(out, fields.incarnation, message.incarnation)
      writeTextField(out, fields.node, message.node)
      break
    case 'alive':
      out.u8(messageType.alive)
      writeStruct(out, 6)
      writeBytesField(out, fields.addr, message.addressBytes)
      writeUnsignedField(out, fields.incarnation, message.incarnation)
      writeBytesField(out, fields.meta, message.meta)
      writeTextField(out, fields.node, message.node)
      writeUnsignedField(out, fields.port, message.port)
      writeBytesField(out, fields.vsn, message.versions)
      break
    case 'user':
      out.u8(messageType.user)
      out.bytes(message.payload)
      break
  }
  return out.finish()
}

/** The type byte, header and records of a push/pull; the user state follows it raw. */
export function writePushPullHead(
  target: ByteWriter,
  join: boolean,
  nodes: readonly NodeRecord[],
  userStateBytes: number,
): void {
  target.u8(messageType.pushPull)
  writeStruct(target, 3)
  writeBooleanField(target, fields.join, join)
  writeSignedField(target, fields.nodes, nodes.length)
  writeSignedField(target, fields.userStateLen, userStateBytes)
  for (const node of nodes) writeNodeRecord(target, node)
}

/** The type byte and header of a user message on a stream; the payload follows it raw. */
export function writeStreamUserHead(target: ByteWriter, payloadBytes: number): void {
  target.u8(messageType.user)
  writeStruct(target, 1)
  writeSignedField(target, fields.userMsgLen, payloadBytes)
}

export function writeErrorMessage(target: ByteWriter, message: ErrorMessage): void {
  target.u8(messageType.error)
  writeStruct(target, 1)
  writeTextField(target, fields.error, message.text)
}

function writeNodeRecord(target: ByteWriter, node: NodeRecord): void {
  writeStruct(target, 7)
  writeBytesField(target, fields.addr, node.addressBytes)
  writeUnsignedField(target, fields.incarnation, node.incarnation)
  writeBytesField(target, fields.meta, node.meta)
  writeTextField(target, fields.name, node.name)
  writeUnsignedField(target, fields.port, node.port)
  writeSignedField(target, fields.state, node.state)
  writeBytesField(target, fields.vsn, node.versions)
}

function writePing(message: Ping): void {
  out.u8(messageType.ping)
  writeStruct(out, 2 + sourceFieldCount(message))
  writeTextField(out, fields.node, message.node)
  writeUnsignedField(out, fields.seqNo, message.sequence)
  writeSource(message)
}

function writeIndirectPing(message: IndirectPing): void {
  out.u8(messageType.indirectPing)
  writeStruct(out, 5 + sourceFieldCount(message))
  writeBooleanField(out, fields.nack, message.nack)
  writeTextField(out, fields.node, message.node)
  writeUnsignedField(out, fields.port, message.port)
  writeUnsignedField(out, fields.seqNo, message.sequence)
  writeSource(message)
  writeBytesField(out, fields.target, message.target)
}

/** The source fields are left out one by one when empty. */
function sourceFieldCount(message: Ping | IndirectPing): number {
  return (
    (message.sourceAddress.length > 0 ? 1 : 0) +
    (message.sourceNode.length > 0 ? 1 : 0) +
    (message.sourcePort > 0 ? 1 : 0)
  )
}

function writeSource(message: Ping | IndirectPing): void {
  if (message.sourceAddress.length > 0)
    writeBytesField(out, fields.sourceAddr, message.sourceAddress)
  if (message.sourceNode.length > 0) writeTextField(out, fields.sourceNode, message.sourceNode)
  if (message.sourcePort > 0) writeUnsignedField(out, fields.sourcePort, message.sourcePort)
}
