/**
 * Numbers as counter messages hold them: LEB128 for whole ones up to 2^53, IEEE 754 big-endian
 * otherwise. Reading past the end or a malformed number sets `failed` and yields 0; nothing throws.
 */

const scratch = new DataView(new ArrayBuffer(8))
const safeMax = Number.MAX_SAFE_INTEGER

export class WireWriter {
  #bytes: Uint8Array
  length = 0

  /** `buffer` is written over: for who writes much and keeps copies only. */
  constructor(capacityBytes: number, buffer?: Uint8Array) {
    this.#bytes = buffer ?? new Uint8Array(capacityBytes)
  }

  u8(value: number): void {
    if (this.length === this.#bytes.length) this.#grow(1)
    this.#bytes[this.length++] = value
  }

  u32(value: number): void {
    this.u8(value >>> 24)
    this.u8((value >>> 16) & 255)
    this.u8((value >>> 8) & 255)
    this.u8(value & 255)
  }

  /** Whole, 0..2^53-1; anything else is brought into that range. */
  whole(value: number): void {
    let left = value > 0 ? Math.min(Math.floor(value), safeMax) : 0
    while (left >= 128) {
      this.u8((left % 128) | 128)
      left = Math.floor(left / 128)
    }
    this.u8(left)
  }

  f32(value: number): void {
    scratch.setFloat32(0, value)
    this.u32(scratch.getUint32(0))
  }

  f64(value: number): void {
    scratch.setFloat64(0, value)
    this.u32(scratch.getUint32(0))
    this.u32(scratch.getUint32(4))
  }

  /** A copy of what was written. */
  take(): Uint8Array {
    return this.#bytes.slice(0, this.length)
  }

  #grow(count: number): void {
    const grown = new Uint8Array(Math.max(this.length + count, this.#bytes.length * 2))
    grown.set(this.#bytes.subarray(0, this.length))
    this.#bytes = grown
  }
}

export class WireReader {
  readonly #bytes: Uint8Array
  #at = 0
  /** The bytes ended too early or held no such number. */
  failed = false

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get done(): boolean {
    return this.failed || this.#at >= this.#bytes.length
  }

  u8(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) {
      this.failed = true
      return 0
    }
    this.#at++
    return byte
  }

  u32(): number {
    return ((this.u8() << 24) | (this.u8() << 16) | (this.u8() << 8) | this.u8()) >>> 0
  }

  whole(): number {
    let value = 0
    let factor = 1
    for (let count = 0; count < 8; count++) {
      const byte = this.u8()
      value += (byte & 127) * factor
      if (byte < 128) {
        if (value > safeMax) break
        return value
      }
      factor *= 128
    }
    this.failed = true
    return 0
  }

  /** Finite, or failed. */
  f32(): number {
    scratch.setUint32(0, this.u32())
    return this.#finite(scratch.getFloat32(0))
  }

  /** Finite, or failed. */
  f64(): number {
    scratch.setUint32(0, this.u32())
    scratch.setUint32(4, this.u32())
    return this.#finite(scratch.getFloat64(0))
  }

  #finite(value: number): number {
    if (Number.isFinite(value)) return value
    this.failed = true
    return 0
  }
}
