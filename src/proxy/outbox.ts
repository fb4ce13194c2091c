/**
 * Writing to a socket, put off to the end of the event loop's turn: what one turn reads is handled
 * first, and then everything is written in one go. Each write may wake a process that sleeps, on
 * another core and at a price; in a burst only the first one does. Measured in
 * docs/decisions/0004-proxy-data-path.md: a quarter more requests per second.
 */
import type { Socket } from 'node:net'

/** Pieces up to this size are copied next to their head: one write costs more than the copy. */
const copiedBytesMax = 16_384

const waiting: Outbox[] = []

function flushAll(): void {
  // By index, since a write may put another outbox on the list.
  for (let index = 0; index < waiting.length; index++) waiting[index]?.turnOver()
  waiting.length = 0
}

export class Outbox {
  readonly #socket: Socket
  /** Latin-1 text or bytes; at most one piece is ever held back. */
  #held: string | Buffer | null = null
  #queued = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Writes `before`, `body` and `after` in this order, at the latest when this turn ends. The texts
   * are Latin-1, as HTTP/1 heads are. False: the socket's buffer is over its mark, wait for
   * 'drain'.
   */
  send(before: string, body: Buffer | null, after: string): boolean {
    this.flush()
    if (body === null) {
      const text = before + after
      if (text !== '') this.#hold(text)
    } else if (body.length > copiedBytesMax) this.#writeLarge(before, body, after)
    else if (before === '' && after === '') this.#hold(body)
    else {
      const whole = Buffer.allocUnsafe(before.length + body.length + after.length)
      let at = whole.write(before, 0, 'latin1')
      at += body.copy(whole, at)
      whole.write(after, at, 'latin1')
      this.#hold(whole)
    }
    return !this.#socket.writableNeedDrain
  }

  /** Writes what is held back. */
  flush(): void {
    const held = this.#held
    if (held === null) return
    this.#held = null
    if (typeof held === 'string') this.#socket.write(held, 'latin1')
    else this.#socket.write(held)
  }

  /** Writes what is held back and ends the writable side. */
  end(): void {
    this.flush()
    this.#socket.end()
  }

  /** Forgets what is held back: the socket is being destroyed. */
  drop(): void {
    this.#held = null
  }

  /** For the turn's end. */
  turnOver(): void {
    this.#queued = false
    this.flush()
  }

  #hold(piece: string | Buffer): void {
    this.#held = piece
    if (this.#queued) return
    this.#queued = true
    if (waiting.length === 0) setImmediate(flushAll)
    waiting.push(this)
  }

  #writeLarge(before: string, body: Buffer, after: string): void {
    const socket = this.#socket
    socket.cork()
    if (before !== '') socket.write(before, 'latin1')
    socket.write(body)
    if (after !== '') socket.write(after, 'latin1')
    socket.uncork()
  }
}

/** The size line of a chunk; a chunk of no bytes would end the body and is never asked for. */
export function chunkStart(bytes: number): string {
  return `${bytes.toString(16)}\r\n`
}
