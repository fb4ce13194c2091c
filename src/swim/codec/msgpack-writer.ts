/**
 * Writes msgpack exactly as go-msgpack's default handle does, which memberlist uses: strings and
 * byte strings in the old "raw" forms only (never str8 or bin), the shortest unsigned form for
 * unsigned fields, and for signed fields int16 or int32 from 128 on. Source: memberlist >= 0.5.1
 * with go-msgpack 2, by its bytes.
 */
import type { ByteWriter } from '../../lib/byte-writer.js'
import { encodedNames, type FieldId } from './field-names.js'
import { bytesOfText, isAscii } from './raw-text.js'

/** A struct of `count` fields, 0..15; exactly that many fields follow. */
export function writeStruct(out: ByteWriter, count: number): void {
  out.u8(0x80 + count)
}

export function writeTextField(out: ByteWriter, field: FieldId, value: string): void {
  out.bytes(encodedNames[field] as Uint8Array)
  if (isAscii(value)) {
    writeRawLength(out, value.length)
    out.ascii(value)
  } else {
    const bytes = bytesOfText(value)
    writeRawLength(out, bytes.length)
    out.bytes(bytes)
  }
}

export function writeBytesField(out: ByteWriter, field: FieldId, value: Uint8Array | null): void {
  out.bytes(encodedNames[field] as Uint8Array)
  if (value === null) {
    out.u8(0xc0)
  } else {
    writeRawLength(out, value.length)
    out.bytes(value)
  }
}

/** `value`: an integer in 0..2^32-1. */
export function writeUnsignedField(out: ByteWriter, field: FieldId, value: number): void {
  out.bytes(encodedNames[field] as Uint8Array)
  if (value < 0x80) {
    out.u8(value)
  } else if (value < 0x100) {
    out.u8(0xcc)
    out.u8(value)
  } else if (value < 0x1_0000) {
    out.u8(0xcd)
    out.u16(value)
  } else {
    out.u8(0xce)
    out.u32(value)
  }
}

/** `value`: an integer in 0..2^31-1 of a field that is signed in Go. */
export function writeSignedField(out: ByteWriter, field: FieldId, value: number): void {
  out.bytes(encodedNames[field] as Uint8Array)
  if (value < 0x80) {
    out.u8(value)
  } else if (value < 0x8000) {
    out.u8(0xd1)
    out.u16(value)
  } else {
    out.u8(0xd2)
    out.u32(value)
  }
}

export function writeBooleanField(out: ByteWriter, field: FieldId, value: boolean): void {
  out.bytes(encodedNames[field] as Uint8Array)
  out.u8(value ? 0xc3 : 0xc2)
}

function writeRawLength(out: ByteWriter, length: number): void {
  if (length < 32) {
    out.u8(0xa0 + length)
  } else if (length < 0x1_0000) {
    out.u8(0xda)
    out.u16(length)
  } else {
    out.u8(0xdb)
    out.u32(length)
  }
}
