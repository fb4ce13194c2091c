/**
 * Reads the msgpack that memberlist peers write: structs as maps keyed by field name (or as
 * positional arrays), strings and byte strings in any of their forms, integers of any width, nil
 * for anything.
 *
 * The first failure sticks: it is kept in `error`, and every later read returns a zero value. A
 * caller reads a whole struct and looks at `error` once. `truncated` means that more bytes could
 * still make the struct whole. Source: the msgpack specification, and go-msgpack's lenience as
 * recorded in the decoderAcceptance vectors.
 */
import { type FieldId, fieldIdOf, fields } from './field-names.js'
import { textOf } from './raw-text.js'
import type { WireError } from './wire-error.js'

/** Values inside values; the structs themselves are flat, so this bounds only what is skipped. */
const depthMax = 16

/**
 * Values in one struct, nested ones included: known fields are at most 8, the rest is for unknown
 * ones.
 */
const valuesMax = 1024

/**
 * Bytes written as an array of small integers; the longest legitimate field is 512 bytes of meta.
 */
const arrayBytesMax = 4096

const emptyBytes = new Uint8Array(0)

/** Bytes after the tag: nil and booleans, floats, integers, and fixext with its type byte. */
const fixedBytes: ReadonlyMap<number, number> = new Map([
  ...[0xc0, 0xc2, 0xc3].map(tag => [tag, 0] as const),
  ...[0xca, 0xcb].map(tag => [tag, 4 << (tag - 0xca)] as const),
  ...[0xcc, 0xcd, 0xce, 0xcf].map(tag => [tag, 1 << (tag - 0xcc)] as const),
  ...[0xd0, 0xd1, 0xd2, 0xd3].map(tag => [tag, 1 << (tag - 0xd0)] as const),
  ...[0xd4, 0xd5, 0xd6, 0xd7, 0xd8].map(tag => [tag, (1 << (tag - 0xd4)) + 1] as const),
])

export class MsgpackReader {
  error: WireError | null = null
  offset: number
  /** After `truncated`: the input length below which another try is sure to fail again. */
  wantedEnd = 0
  private readonly bytes: Uint8Array
  private readonly bytesMax: number
  private fieldsLeft = 0
  private valuesLeft = valuesMax
  private order: readonly FieldId[] | null = null
  private position = 0

  /** `bytesMax`: the longest string or byte string accepted. */
  constructor(bytes: Uint8Array, offset: number, bytesMax: number) {
    this.bytes = bytes
    this.offset = offset
    this.bytesMax = bytesMax
  }

  /**
   * Starts a struct. `order`: its fields in the order of their declaration, for senders that write
   * a positional array. Nil is a struct of zero values.
   */
  beginStruct(order: readonly FieldId[]): void {
    this.order = null
    this.position = 0
    this.valuesLeft = valuesMax
    const tag = this.tag()
    if (tag === 0xc0) this.fieldsLeft = 0
    else if (tag >= 0x80 && tag <= 0x8f) this.fieldsLeft = tag & 0x0f
    else if (tag === 0xde) this.fieldsLeft = this.unsigned(2)
    else if (tag === 0xdf) this.fieldsLeft = this.unsigned(4)
    else {
      this.order = order
      if (tag >= 0x90 && tag <= 0x9f) this.fieldsLeft = tag & 0x0f
      else if (tag === 0xdc) this.fieldsLeft = this.unsigned(2)
      else if (tag === 0xdd) this.fieldsLeft = this.unsigned(4)
      else this.fail('valueType')
    }
    if (this.fieldsLeft > valuesMax) this.fail('tooLarge')
  }

  /**
   * The next field's id, `fields.unknown` for one to skip, `fields.end` after the last or on
   * failure.
   */
  nextField(): FieldId {
    if (this.error !== null || this.fieldsLeft === 0) return fields.end
    this.fieldsLeft -= 1
    if (this.order !== null) return this.order[this.position++] ?? fields.unknown
    const length = this.textLength(this.tag())
    const start = this.offset
    if (!this.advance(length)) return fields.end
    return fieldIdOf(this.bytes, start, length)
  }

  text(): string {
    const tag = this.tag()
    if (tag === 0xc0) return ''
    const length = this.textLength(tag)
    const start = this.offset
    return this.advance(length) ? textOf(this.bytes, start, this.offset) : ''
  }

  /** A byte string as a copy of its own; null for nil. */
  byteString(): Uint8Array | null {
    const part = this.byteView()
    return part === null || part.length === 0 ? part : part.slice()
  }

  /**
   * A byte string as a view of the input (or a fresh array, if it came as an array of integers).
   */
  byteView(): Uint8Array | null {
    const tag = this.tag()
    if (tag === 0xc0) return null
    if ((tag >= 0x90 && tag <= 0x9f) || tag === 0xdc || tag === 0xdd) return this.byteArray(tag)
    const length = this.textLength(tag)
    const start = this.offset
    return this.advance(length) ? this.bytes.subarray(start, this.offset) : emptyBytes
  }

  /** An integer in [min, max], both safe integers; nil is 0. */
  integer(min: number, max: number): number {
    const tag = this.tag()
    let value: number
    if (tag <= 0x7f) value = tag
    else if (tag >= 0xe0) value = tag - 0x100
    else value = this.wideInteger(tag)
    if (value < min || value > max) {
      this.fail('valueRange')
      return 0
    }
    return value
  }

  boolean(): boolean {
    const tag = this.tag()
    if (tag === 0xc3 || tag === 0x01) return true
    if (tag === 0xc2 || tag === 0x00 || tag === 0xc0) return false
    this.fail('valueType')
    return false
  }

  /** Steps over one value of any type. */
  skip(): void {
    this.skipValue(0)
  }

  private wideInteger(tag: number): number {
    switch (tag) {
      case 0xc0:
        return 0
      case 0xcc:
        return this.unsigned(1)
      case 0xcd:
        return this.unsigned(2)
      case 0xce:
        return this.unsigned(4)
      case 0xcf:
        return this.unsigned(4) * 0x1_0000_0000 + this.unsigned(4)
      case 0xd0:
        return (this.unsigned(1) << 24) >> 24
      case 0xd1:
        return (this.unsigned(2) << 16) >> 16
      case 0xd2:
        return this.unsigned(4) | 0
      case 0xd3:
        return (this.unsigned(4) | 0) * 0x1_0000_0000 + this.unsigned(4)
      default:
        this.fail('valueType')
        return 0
    }
  }

  private byteArray(tag: number): Uint8Array {
    const count = tag <= 0x9f ? tag & 0x0f : this.unsigned(tag === 0xdc ? 2 : 4)
    if (count > arrayBytesMax) {
      this.fail('tooLarge')
      return emptyBytes
    }
    // Each element takes at least one byte, so a count beyond the input is refused before it costs
    // anything.
    if (this.offset + count > this.bytes.length) {
      this.wantedEnd = this.offset + count
      this.fail('truncated')
      return emptyBytes
    }
    const value = new Uint8Array(count)
    for (let index = 0; index < count && this.error === null; index++)
      value[index] = this.integer(0, 0xff)
    return value
  }

  private skipValue(depth: number): void {
    this.valuesLeft -= 1
    if (depth > depthMax) this.fail('tooDeep')
    const inside = this.skipHead(this.tag())
    if (inside > this.valuesLeft) this.fail('tooLarge')
    for (let index = 0; index < inside && this.error === null; index++) this.skipValue(depth + 1)
  }

  /** Steps over a value's own bytes; how many values follow inside it. */
  private skipHead(tag: number): number {
    if (tag <= 0x7f || tag >= 0xe0) return 0
    if (tag <= 0x8f) return (tag & 0x0f) * 2
    if (tag <= 0x9f) return tag & 0x0f
    if (tag === 0xdc || tag === 0xdd) return this.unsigned(tag === 0xdc ? 2 : 4)
    if (tag === 0xde || tag === 0xdf) return this.unsigned(tag === 0xde ? 2 : 4) * 2
    const fixed = fixedBytes.get(tag)
    if (fixed !== undefined) this.advance(fixed)
    // ext 8, 16, 32: a length, then a type byte and that many bytes.
    else if (tag >= 0xc7 && tag <= 0xc9) this.advance(this.unsigned(1 << (tag - 0xc7)) + 1)
    else this.advance(this.textLength(tag))
    return 0
  }

  /** The length of a string or byte string whose first byte is `tag`. */
  private textLength(tag: number): number {
    if (tag >= 0xa0 && tag <= 0xbf) return tag & 0x1f
    switch (tag) {
      case 0xc4:
      case 0xd9:
        return this.unsigned(1)
      case 0xc5:
      case 0xda:
        return this.unsigned(2)
      case 0xc6:
      case 0xdb:
        return this.unsigned(4)
      default:
        this.fail('valueType')
        return 0
    }
  }

  private tag(): number {
    const tag = this.bytes[this.offset]
    if (this.error !== null) return 0xc0
    if (tag === undefined) {
      this.wantedEnd = this.offset + 1
      this.fail('truncated')
      return 0xc0
    }
    this.offset += 1
    return tag
  }

  private unsigned(width: number): number {
    if (!this.advance(width)) return 0
    let value = 0
    for (let index = this.offset - width; index < this.offset; index++)
      value = value * 0x100 + (this.bytes[index] as number)
    return value
  }

  /** Moves past `count` bytes if they are there and no failure stuck before. */
  private advance(count: number): boolean {
    if (this.error !== null) return false
    if (count > this.bytesMax) {
      this.fail('tooLarge')
      return false
    }
    if (count > this.bytes.length - this.offset) {
      this.wantedEnd = this.offset + count
      this.fail('truncated')
      return false
    }
    this.offset += count
    return true
  }

  private fail(error: WireError): void {
    this.error ??= error
  }
}
