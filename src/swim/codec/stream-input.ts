/**
 * The bytes of a stream that have arrived and are not yet consumed. Memory follows what arrived, at
 * most doubled.
 */
export class StreamInput {
  private buffer = new Uint8Array(0)
  private start = 0
  private end = 0

  get length(): number {
    return this.end - this.start
  }

  /** A view of everything unread; valid until the next `append` or `replace`. */
  view(): Uint8Array {
    return this.buffer.subarray(this.start, this.end)
  }

  consume(count: number): void {
    this.start += count
  }

  append(chunk: Uint8Array): void {
    if (this.end + chunk.length > this.buffer.length) this.makeRoom(chunk.length)
    this.buffer.set(chunk, this.end)
    this.end += chunk.length
  }

  /** Goes on with other bytes, which it may keep: the inside of a frame that was opened. */
  replace(bytes: Uint8Array): void {
    this.buffer = bytes as Uint8Array<ArrayBuffer>
    this.start = 0
    this.end = bytes.length
  }

  private makeRoom(count: number): void {
    const unread = this.length
    const needed = unread + count
    const roomy = needed * 2 <= this.buffer.length
    const target = roomy ? this.buffer : new Uint8Array(Math.max(needed, this.buffer.length * 2))
    if (roomy) target.copyWithin(0, this.start, this.end)
    else target.set(this.view())
    this.buffer = target
    this.start = 0
    this.end = unread
  }
}
