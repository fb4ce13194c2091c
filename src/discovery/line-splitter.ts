/** Chunks of bytes to lines, as a watch sends them; what one line may take is bounded. */

const newline = 0x0a

export class LineSplitter {
  readonly #bytesMax: number
  #rest: Buffer[] = []
  #restBytes = 0
  #overflowed = false

  /** `bytesMax`: longest line, in bytes. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** A line was too long; nothing is split from then on. */
  get overflowed(): boolean {
    return this.#overflowed
  }

  /** The lines that `chunk` completes, empty ones left out. */
  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let start = 0
    while (!this.#overflowed) {
      const end = chunk.indexOf(newline, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      this.#restBytes += part.length
      if (this.#restBytes > this.#bytesMax) {
        this.#overflowed = true
        this.#rest = []
        break
      }
      this.#rest.push(part)
      if (end === -1) break
      const line = Buffer.concat(this.#rest).toString('utf8').trim()
      if (line !== '') lines.push(line)
      this.#rest = []
      this.#restBytes = 0
      start = end + 1
    }
    return lines
  }
}
