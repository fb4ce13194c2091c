/**
 * A growing byte buffer that is written front to back and used again after `finish`. Multi-byte
 * numbers are big-endian. For callers that know nothing about the length of what they write.
 */

/** Below this a plain loop copies faster than a typed array's `set`. */
const loopCopyBytesMax = 24

export class ByteWriter {
  private buffer: Uint8Array
  private used = 0

  /**
   * `capacityBytes`: the first guess, > 0; the buffer doubles when it is exceeded and never
   * shrinks.
   */
  constructor(capacityBytes = 256) {
    this.buffer = new Uint8Array(capacityBytes)
  }

  /** Bytes written since the last `finish`. */
  get length(): number {
    return this.used
  }

  u8(value: number): void {
    this.reserve(1)
    this.buffer[this.used++] = value
  }

  u16(value: number): void {
    this.reserve(2)
    this.buffer[this.used++] = value >>> 8
    this.buffer[this.used++] = value
  }

  u32(value: number): void {
    this.reserve(4)
    this.buffer[this.used++] = value >>> 24
    this.buffer[this.used++] = value >>> 16
    this.buffer[this.used++] = value >>> 8
    this.buffer[this.used++] = value
  }

  bytes(source: Uint8Array): void {
    const length = source.length
    this.reserve(length)
    if (length <= loopCopyBytesMax) {
      for (let index = 0; index < length; index++)
        this.buffer[this.used + index] = source[index] as number
    } else {
      this.buffer.set(source, this.used)
    }
    this.used += length
  }

  /** The low byte of every character; the caller knows that the text is ASCII. */
  ascii(text: string): void {
    const length = text.length
    this.reserve(length)
    for (let index = 0; index < length; index++)
      this.buffer[this.used + index] = text.charCodeAt(index)
    this.used += length
  }

  /** Forgets what was written and not finished. */
  clear(): void {
    this.used = 0
  }

  /** A copy of everything written; the writer starts over. */
  finish(): Uint8Array {
    const written = this.buffer.slice(0, this.used)
    this.used = 0
    return written
  }

  private reserve(count: number): void {
    const needed = this.used + count
    if (needed <= this.buffer.length) return
    const grown = new Uint8Array(Math.max(needed, this.buffer.length * 2))
    grown.set(this.buffer.subarray(0, this.used))
    this.buffer = grown
  }
}
