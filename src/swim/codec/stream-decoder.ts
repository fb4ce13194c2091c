/**
 * Reads one direction of a TCP exchange from chunks as they arrive. The end of the message is known
 * from its own counts, never from the end of the stream: the peer keeps its side open while it
 * waits for the answer.
 *
 *     label -> encryption -> compression -> type -> header -> records -> user state
 *
 * Announced lengths are checked against the limits and never allocated ahead of the bytes. Source:
 * memberlist net.go (handleConn, readStream, readRemoteState, readUserMsg).
 */
import { messageType, type NodeRecord, type StreamMessage } from '../messages.js'
import { readCompressedBody } from './compression.js'
import {
  type PushPullHeader,
  readAck,
  readErrorMessage,
  readNodeRecord,
  readPing,
  readPushPullHeader,
  readStreamUserHeader,
} from './decode-message.js'
import { decrypt } from './encryption.js'
import { labelEnd } from './label.js'
import { lzwDecode } from './lzw-decoder.js'
import { MsgpackReader } from './msgpack-reader.js'
import { encryptFrameHeadBytes, streamPartBytesMax } from './stream.js'
import { StreamInput } from './stream-input.js'
import { encryptionEnabled, type Wire } from './wire.js'
import type { WireError } from './wire-error.js'

/** What a compress frame may grow to (memberlist after 0.6.0); twice the largest part. */
const plainBytesMax = 2 * streamPartBytesMax

/** One struct: a name of up to 65535 bytes, 512 bytes of meta and room for fields of the future. */
const structBytesMax = 128 * 1024

/** All records of one push/pull together. */
const recordsBytesMax = streamPartBytesMax

/** Who this side is: a listener reads a request, a dialler the answer to its own. */
export type StreamRole = 'listener' | 'dialler'

export type StreamResult =
  | { readonly ok: true; readonly message: StreamMessage; readonly encrypted: boolean }
  | {
      readonly ok: false
      readonly error: WireError
      /** What a listener tells the peer in an error message before it closes; null: just close. */
      readonly reply: string | null
    }

const acceptedTypes: Readonly<Record<StreamRole, ReadonlySet<number>>> = {
  listener: new Set([messageType.ping, messageType.pushPull, messageType.user]),
  dialler: new Set([messageType.ack, messageType.pushPull, messageType.error]),
}

type Phase =
  | 'label'
  | 'encryption'
  | 'compression'
  | 'type'
  | 'single'
  | 'pushPull'
  | 'records'
  | 'userState'
  | 'user'
  | 'payload'

export class StreamDecoder {
  private readonly wire: Wire
  private readonly role: StreamRole
  private readonly input = new StreamInput()
  private phase: Phase
  private result: StreamResult | null = null
  private started = false
  /** The input is the inside of a frame: what is missing will not come. */
  private whole = false
  private encrypted = false
  /** Input length below which another try at the current phase is pointless. */
  private wanted = 1
  private single = -1
  private header: PushPullHeader = { nodes: 0, userStateBytes: 0, join: false }
  private readonly records: NodeRecord[] = []
  private recordsBytes = 0
  private payloadBytes = 0

  constructor(wire: Wire, role: StreamRole) {
    this.wire = wire
    this.role = role
    this.phase = role === 'listener' ? 'label' : 'encryption'
  }

  /**
   * Takes what arrived; null while more is needed. Once there is a result, later bytes do not
   * change it.
   */
  push(chunk: Uint8Array): StreamResult | null {
    if (this.result !== null) return this.result
    if (chunk.length > 0) this.started = true
    this.input.append(chunk)
    while (this.input.length >= this.wanted && this.step()) {
      // Each step that returns true has entered the next phase.
    }
    return this.result
  }

  /** The peer's end of stream; always a result. */
  end(): StreamResult {
    if (this.result === null) this.fail(this.started ? 'truncated' : 'closedUnused', null)
    return this.result as StreamResult
  }

  /** Does one phase; false when it waits for more bytes or the result is there. */
  private step(): boolean {
    switch (this.phase) {
      case 'label':
        return this.readLabel()
      case 'encryption':
        return this.openEncryption()
      case 'compression':
        return this.openCompression()
      case 'type':
        return this.readType()
      case 'single':
        return this.readSingle()
      case 'pushPull':
        return this.readHeader()
      case 'records':
        return this.readRecord()
      case 'userState':
        return this.readUserState()
      case 'user':
        return this.readUserHeader()
      case 'payload':
        return this.readPayload()
    }
  }

  private readLabel(): boolean {
    const end = labelEnd(this.input.view(), this.wire)
    if (end === 'truncated') return false
    if (typeof end === 'string') return this.fail(end, null)
    this.input.consume(end)
    return this.enter('encryption', 1)
  }

  private openEncryption(): boolean {
    const bytes = this.input.view()
    const { keyring } = this.wire
    if (bytes[0] !== messageType.encrypt) {
      if (encryptionEnabled(this.wire) && this.wire.gossipVerifyIncoming)
        return this.refuseFrame('notEncrypted')
      return this.enter('compression', 1)
    }
    if (keyring === null || keyring.size === 0) return this.refuseFrame('noKey')
    if (bytes.length < encryptFrameHeadBytes) return this.waitFor(encryptFrameHeadBytes)
    const unitBytes = unitLength(bytes)
    if (unitBytes > streamPartBytesMax) return this.refuseFrame('tooLarge')
    const end = encryptFrameHeadBytes + unitBytes
    if (bytes.length < end) return this.waitFor(end)
    const aad = new Uint8Array(encryptFrameHeadBytes + this.wire.labelBytes.length)
    aad.set(bytes.subarray(0, encryptFrameHeadBytes))
    aad.set(this.wire.labelBytes, encryptFrameHeadBytes)
    const plain = decrypt(keyring, bytes.subarray(encryptFrameHeadBytes, end), aad)
    if (!plain.ok) return this.refuseFrame(plain.error)
    if (plain.value.length === 0) return this.refuseFrame('frameEmpty')
    this.encrypted = true
    return this.goInside(plain.value, 'compression')
  }

  private openCompression(): boolean {
    const bytes = this.input.view()
    if (bytes[0] !== messageType.compress) return this.enter('type', 1)
    const body = readCompressedBody(bytes, 1, streamPartBytesMax)
    if (!body.ok) {
      if (body.error !== 'truncated' || this.whole) return this.refuseFrame(body.error)
      const hopeless = bytes.length > streamPartBytesMax + structBytesMax
      return hopeless ? this.refuseFrame('tooLarge') : false
    }
    const plain = lzwDecode(body.value, plainBytesMax)
    if (!plain.ok) return this.refuseFrame(plain.error)
    if (plain.value.length === 0) return this.refuseFrame('frameEmpty')
    return this.goInside(plain.value, 'type')
  }

  private readType(): boolean {
    const type = this.input.view()[0] as number
    if (!acceptedTypes[this.role].has(type)) return this.fail('unknownType', null)
    this.input.consume(1)
    if (type === messageType.pushPull) return this.enter('pushPull', 1)
    if (type === messageType.user) return this.enter('user', 1)
    this.single = type
    return this.enter('single', 1)
  }

  /** A message that is one struct and nothing after it. */
  private readSingle(): boolean {
    const message = this.readStruct(readerOf(this.single))
    return message !== null && this.succeed(message)
  }

  private readHeader(): boolean {
    const header = this.readStruct(readPushPullHeader)
    if (header === null) return false
    if (header.nodes < 0 || header.userStateBytes < 0) return this.fail('negativeLength', null)
    if (header.nodes > this.wire.exchangeNodesMax || header.userStateBytes > streamPartBytesMax)
      return this.fail('tooLarge', null)
    this.header = header
    return this.enterRecords()
  }

  private readRecord(): boolean {
    const before = this.input.length
    const record = this.readStruct(readNodeRecord)
    if (record === null) return false
    this.recordsBytes += before - this.input.length
    if (this.recordsBytes > recordsBytesMax) return this.fail('tooLarge', null)
    this.records.push(record)
    return this.enterRecords()
  }

  /** On to the next record or, after the last one, to the user state. */
  private enterRecords(): boolean {
    return this.records.length < this.header.nodes
      ? this.enter('records', 1)
      : this.enter('userState', this.header.userStateBytes)
  }

  private readUserState(): boolean {
    return this.succeed({
      kind: 'pushPull',
      join: this.header.join,
      nodes: this.records,
      userState: this.input.view().slice(0, this.header.userStateBytes),
    })
  }

  private readUserHeader(): boolean {
    const payloadBytes = this.readStruct(readStreamUserHeader)
    if (payloadBytes === null) return false
    if (payloadBytes < 0) return this.fail('negativeLength', null)
    if (payloadBytes > streamPartBytesMax) return this.fail('tooLarge', null)
    this.payloadBytes = payloadBytes
    return this.enter('payload', payloadBytes)
  }

  private readPayload(): boolean {
    return this.succeed({ kind: 'user', payload: this.input.view().slice(0, this.payloadBytes) })
  }

  /** One struct from the front; null when it waits for more bytes or has failed. */
  private readStruct<T>(read: (reader: MsgpackReader) => T): T | null {
    const reader = new MsgpackReader(this.input.view(), 0, structBytesMax)
    const value = read(reader)
    if (reader.error === null) {
      this.input.consume(reader.offset)
      return value
    }
    if (reader.error !== 'truncated' || this.whole) this.fail(reader.error, null)
    else if (this.input.length > structBytesMax) this.fail('tooLarge', null)
    else this.waitFor(reader.wantedEnd)
    return null
  }

  /** `wanted`: unread bytes the phase needs before it is worth a try. */
  private enter(phase: Phase, wanted: number): boolean {
    this.phase = phase
    this.wanted = wanted
    if (this.whole && this.input.length < wanted) return this.fail('truncated', null)
    return true
  }

  private goInside(plain: Uint8Array, phase: Phase): boolean {
    this.input.replace(plain)
    this.whole = true
    return this.enter(phase, 1)
  }

  private waitFor(wanted: number): false {
    this.wanted = wanted
    return false
  }

  private succeed(message: StreamMessage): false {
    return this.settle({ ok: true, message, encrypted: this.encrypted })
  }

  /** A frame that does not open is answered; what is wrong inside it is not. */
  private refuseFrame(error: WireError): false {
    return this.fail(error, this.role === 'listener' ? replyText(error) : null)
  }

  private fail(error: WireError, reply: string | null): false {
    return this.settle({ ok: false, error, reply })
  }

  /** Keeps the result and lets go of the bytes. */
  private settle(result: StreamResult): false {
    this.result = result
    this.input.replace(new Uint8Array(0))
    return false
  }
}

function unitLength(bytes: Uint8Array): number {
  return (
    (bytes[1] as number) * 0x100_0000 +
    (((bytes[2] as number) << 16) | ((bytes[3] as number) << 8) | (bytes[4] as number))
  )
}

function readerOf(type: number): (reader: MsgpackReader) => StreamMessage {
  if (type === messageType.ping) return readPing
  return type === messageType.ack ? readAck : readErrorMessage
}

/**
 * The two texts that operators search logs for are memberlist's; the others only name the fault.
 */
function replyText(error: WireError): string {
  if (error === 'noKey') return 'remote state is encrypted and encryption is not configured'
  if (error === 'notEncrypted') return 'encryption is configured but remote state is not encrypted'
  return `stream could not be opened: ${error}`
}
