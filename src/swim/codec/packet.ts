/**
 * One UDP datagram, outermost layer first; every layer but the message is optional:
 *
 *     [label] [encryption] [checksum] [compress] [compound] message(s)
 *
 * Compress and compound may nest in any order on receipt, the others stand only in their outer
 * place. Source: memberlist net.go (ingestPacket, handleCommand, rawSendMsgPacket).
 */
import { messageType, type PacketMessage } from '../messages.js'
import { crc32 } from './checksum.js'
import { compoundPartsMax, makeCompound, readCompound } from './compound.js'
import { compressFrame, decompressFrame } from './compression.js'
import { decodeMessage } from './decode-message.js'
import { decrypt, encrypt } from './encryption.js'
import { labelEnd } from './label.js'
import { encryptionEnabled, encryptsOutgoing, type Wire } from './wire.js'
import { type Decoded, refused, type WireError } from './wire-error.js'

/** Bytes of the checksum frame; no budget counts them. */
export const checksumFrameBytes = 5

/**
 * All that compress frames of one packet may grow to, nested ones included; a real packet needs
 * some 1400.
 */
const packetPlainBytesMax = 256 * 1024

/** Compounds and compress frames inside each other; real senders use two. */
const packetDepthMax = 8

/** Messages in one packet; a compound holds 255, and only nested ones hold more. */
const packetMessagesMax = 1024

export interface PacketOptions {
  /** The target's record is at hand and says that it understands checksums (pmax >= 5). */
  readonly checksum: boolean
}

export interface PacketContents {
  /** In the order of the packet; each owns its bytes. */
  readonly messages: readonly PacketMessage[]
  /** What was dropped beside them, one entry for each refused part. */
  readonly refused: readonly WireError[]
}

/** The most parts `encodePacket` takes; cut longer lists with `splitParts`. */
export const packetPartsMax = compoundPartsMax

/**
 * A datagram of encoded messages, in that order. `parts`: 1..255 messages, each 1..65535 bytes if
 * there are several. Bytes beyond the transport's packet size are the caller's affair.
 */
export function encodePacket(
  parts: readonly Uint8Array[],
  wire: Wire,
  options: PacketOptions,
): Uint8Array {
  let body = parts.length === 1 ? (parts[0] as Uint8Array) : makeCompound(parts)
  if (wire.enableCompression) body = compressFrame(body, body.length - 1) ?? body
  if (options.checksum) body = withChecksum(body)
  const key = encryptsOutgoing(wire) ? (wire.keyring?.primary ?? null) : null
  if (key !== null) body = encrypt(key, wire.encryptionVersion, body, wire.labelBytes, wire.entropy)
  return wire.labelHeader.length === 0 ? body : joined(wire.labelHeader, body)
}

/**
 * Takes a datagram apart. A failure of an outer layer refuses it all; a bad part of a compound only
 * itself.
 */
export function decodePacket(packet: Uint8Array, wire: Wire): Decoded<PacketContents> {
  const bytes = plainView(packet)
  if (bytes.length === 0) return refused('empty')
  const start = labelEnd(bytes, wire)
  if (typeof start === 'string') return refused(start === 'truncated' ? 'labelMalformed' : start)
  let body = bytes.subarray(start)
  if (encryptionEnabled(wire) && wire.keyring !== null) {
    const opened = decrypt(wire.keyring, body, wire.labelBytes)
    if (opened.ok) body = opened.value
    else if (wire.gossipVerifyIncoming) return opened
  }
  if (body.length >= checksumFrameBytes && body[0] === messageType.checksum) {
    if (readU32(body, 1) !== crc32(body, checksumFrameBytes)) return refused('checksumMismatch')
    body = body.subarray(checksumFrameBytes)
  }
  const contents = new ContentsReader()
  const failure = contents.read(body, 0)
  if (failure !== null) return refused(failure)
  return { ok: true, value: { messages: contents.messages, refused: contents.refused } }
}

/** Collects the messages under nested compress frames and compounds. */
class ContentsReader {
  readonly messages: PacketMessage[] = []
  readonly refused: WireError[] = []
  private plainBytesLeft = packetPlainBytesMax

  /** Adds what is in `body`, or says why there is nothing to add. */
  read(body: Uint8Array, depth: number): WireError | null {
    if (body[0] === messageType.compound) return this.readCompound(body, depth)
    if (body[0] === messageType.compress) return this.readCompressed(body, depth)
    if (this.messages.length >= packetMessagesMax) return 'tooLarge'
    const message = decodeMessage(body)
    if (!message.ok) return message.error
    this.messages.push(message.value)
    return null
  }

  private readCompound(body: Uint8Array, depth: number): WireError | null {
    if (depth >= packetDepthMax) return 'tooDeep'
    const compound = readCompound(body)
    if (!compound.ok) return compound.error
    if (compound.value.truncated > 0) this.note('truncated')
    for (const part of compound.value.parts) {
      const failure = this.read(part, depth + 1)
      if (failure !== null) this.note(failure)
    }
    return null
  }

  private readCompressed(body: Uint8Array, depth: number): WireError | null {
    if (depth >= packetDepthMax) return 'tooDeep'
    const plain = decompressFrame(body, this.plainBytesLeft)
    if (!plain.ok) {
      // What the attempt cost is not known, so no other one is paid for.
      this.plainBytesLeft = 0
      return plain.error
    }
    this.plainBytesLeft -= plain.value.length
    return this.read(plain.value, depth + 1)
  }

  private note(error: WireError): void {
    if (this.refused.length < packetMessagesMax) this.refused.push(error)
  }
}

function withChecksum(body: Uint8Array): Uint8Array {
  const framed = new Uint8Array(checksumFrameBytes + body.length)
  const sum = crc32(body)
  framed[0] = messageType.checksum
  framed[1] = sum >>> 24
  framed[2] = sum >>> 16
  framed[3] = sum >>> 8
  framed[4] = sum
  framed.set(body, checksumFrameBytes)
  return framed
}

function readU32(bytes: Uint8Array, offset: number): number {
  return (
    (bytes[offset] as number) * 0x100_0000 +
    (((bytes[offset + 1] as number) << 16) |
      ((bytes[offset + 2] as number) << 8) |
      (bytes[offset + 3] as number))
  )
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  const whole = new Uint8Array(head.length + tail.length)
  whole.set(head)
  whole.set(tail, head.length)
  return whole
}

/**
 * Sub-classes (Node's Buffer) have a `slice` that does not copy; decoding relies on one that does.
 */
function plainView(bytes: Uint8Array): Uint8Array {
  return bytes.constructor === Uint8Array
    ? bytes
    : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
}
