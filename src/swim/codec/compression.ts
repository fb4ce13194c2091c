/**
 * The compress frame of packets and streams:
 *
 *     09 | msgpack map { Algo: 0 (LZW), Buf: compressed bytes }
 *
 * A datagram takes it only when it gets shorter, a stream always when compression is on. Source:
 * memberlist util.go.
 */
import { messageType } from '../messages.js'
import { type FieldId, fields } from './field-names.js'
import { lzwDecode } from './lzw-decoder.js'
import { lzwEncode } from './lzw-encoder.js'
import { MsgpackReader } from './msgpack-reader.js'
import { type Decoded, refused } from './wire-error.js'

const algorithmLzw = 0

/** The frame up to Buf's length: type, map of two, Algo 0, the name Buf. */
const frameHead = Uint8Array.of(
  messageType.compress,
  0x82,
  ...[0xa4, 0x41, 0x6c, 0x67, 0x6f, algorithmLzw],
  ...[0xa3, 0x42, 0x75, 0x66],
)

const frameOrder: readonly FieldId[] = [fields.algo, fields.buf]

/** The frame, or null if it would be longer than `frameBytesMax` bytes. */
export function compressFrame(plain: Uint8Array, frameBytesMax: number): Uint8Array | null {
  const packed = lzwEncode(plain, frameBytesMax - frameHead.length - 1)
  if (packed === null) return null
  const lengthBytes = packed.length < 32 ? 1 : packed.length < 0x1_0000 ? 3 : 5
  const frame = new Uint8Array(frameHead.length + lengthBytes + packed.length)
  if (frame.length > frameBytesMax) return null
  frame.set(frameHead)
  let offset = frameHead.length
  if (lengthBytes === 1) {
    frame[offset++] = 0xa0 + packed.length
  } else {
    frame[offset++] = lengthBytes === 3 ? 0xda : 0xdb
    for (let shift = (lengthBytes - 2) * 8; shift >= 0; shift -= 8)
      frame[offset++] = packed.length >>> shift
  }
  frame.set(packed, offset)
  return frame
}

/** A view of the compressed bytes of the frame whose type byte stands before `offset`. */
export function readCompressedBody(
  bytes: Uint8Array,
  offset: number,
  packedBytesMax: number,
): Decoded<Uint8Array> {
  const reader = new MsgpackReader(bytes, offset, packedBytesMax)
  let algorithm = 0
  let packed: Uint8Array | null = null
  reader.beginStruct(frameOrder)
  for (let field = reader.nextField(); field !== fields.end; field = reader.nextField()) {
    if (field === fields.algo) algorithm = reader.integer(0, 0xff)
    else if (field === fields.buf) packed = reader.byteView()
    else reader.skip()
  }
  if (reader.error !== null) return refused(reader.error)
  if (algorithm !== algorithmLzw) return refused('compressionUnknown')
  return { ok: true, value: packed ?? new Uint8Array(0) }
}

/** Opens a frame (type byte first) that stands whole in `frame`. */
export function decompressFrame(frame: Uint8Array, plainBytesMax: number): Decoded<Uint8Array> {
  const body = readCompressedBody(frame, 1, frame.length)
  return body.ok ? lzwDecode(body.value, plainBytesMax) : body
}
