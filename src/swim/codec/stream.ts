/**
 * One message on a TCP stream, outermost layer first:
 *
 *     [label, dialling side only] [0a | length u32 | encrypted unit] [compress frame] message
 *
 * There is one message each way and no overall length. A reply carries no label header, yet its
 * additional data includes the label. Reading is `StreamDecoder`'s. Source: memberlist net.go
 * (rawSendMsgStream, sendLocalState).
 */
import { ByteWriter } from '../../lib/byte-writer.js'
import { messageType, type StreamMessage } from '../messages.js'
import { compressFrame } from './compression.js'
import {
  encodeMessage,
  writeErrorMessage,
  writePushPullHead,
  writeStreamUserHead,
} from './encode-message.js'
import { encrypt, encryptedLength } from './encryption.js'
import { encryptsOutgoing, type Wire } from './wire.js'

/** Limit of memberlist for the encrypted unit, the user state and a user message, each. */
export const streamPartBytesMax = 20 * 1024 * 1024

/**
 * What is longer goes as it is, which every reader takes: LZW costs 20 ns a byte in one go here and
 * more there, and a request would have to wait for a state of megabytes.
 */
const compressedBytesMax = 64 * 1024

/**
 * The encrypt frame before its unit: type byte and length. Authenticated together with the label.
 */
export const encryptFrameHeadBytes = 5

/** A `request` is written by the side that dialled, a `reply` by the side that listened. */
export type StreamDirection = 'request' | 'reply'

/** All bytes of one direction of an exchange. */
export function encodeStream(
  message: StreamMessage,
  wire: Wire,
  direction: StreamDirection,
): Uint8Array {
  let body = encodeStreamMessage(message)
  if (wire.enableCompression && body.length <= compressedBytesMax)
    body = compressFrame(body, Number.MAX_SAFE_INTEGER) as Uint8Array
  const key = encryptsOutgoing(wire) ? (wire.keyring?.primary ?? null) : null
  const label = direction === 'request' ? wire.labelHeader : null
  if (key === null) return label === null || label.length === 0 ? body : joined(label, body)
  const head = encryptFrameHead(encryptedLength(wire.encryptionVersion, body.length))
  const aad = joined(head, wire.labelBytes)
  const unit = encrypt(key, wire.encryptionVersion, body, aad, wire.entropy)
  return label === null ? joined(head, unit) : joined(label, head, unit)
}

/** The message alone, before any layer. */
export function encodeStreamMessage(message: StreamMessage): Uint8Array {
  switch (message.kind) {
    case 'ping':
    case 'ack':
      return encodeMessage(message)
    case 'pushPull': {
      const out = new ByteWriter(64 + message.nodes.length * 96 + message.userState.length)
      writePushPullHead(out, message.join, message.nodes, message.userState.length)
      out.bytes(message.userState)
      return out.finish()
    }
    case 'user': {
      const out = new ByteWriter(32 + message.payload.length)
      writeStreamUserHead(out, message.payload.length)
      out.bytes(message.payload)
      return out.finish()
    }
    case 'error': {
      const out = new ByteWriter()
      writeErrorMessage(out, message)
      return out.finish()
    }
  }
}

/** `unitBytes`: length of the encrypted unit that follows. */
function encryptFrameHead(unitBytes: number): Uint8Array {
  return Uint8Array.of(
    messageType.encrypt,
    unitBytes >>> 24,
    unitBytes >>> 16,
    unitBytes >>> 8,
    unitBytes,
  )
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}
