/** Writing a head, a piece of body and what follows it with as few system calls as possible. */
import type { Socket } from 'node:net'

/** Pieces up to this size are copied next to their head: one write costs more than the copy. */
const copiedBytesMax = 16_384

/**
 * Writes `before`, `body` and `after` in this order. The texts are Latin-1, as HTTP/1 heads are.
 * False: the socket's buffer is over its mark, wait for 'drain'.
 */
export function writeParts(
  socket: Socket,
  before: string,
  body: Buffer | null,
  after: string,
): boolean {
  if (body === null) {
    const text = before + after
    return text === '' ? !socket.writableNeedDrain : socket.write(text, 'latin1')
  }
  if (before === '' && after === '') return socket.write(body)
  if (body.length > copiedBytesMax) {
    socket.cork()
    if (before !== '') socket.write(before, 'latin1')
    const room = socket.write(body)
    const more = after === '' ? room : socket.write(after, 'latin1')
    socket.uncork()
    return more
  }
  const whole = Buffer.allocUnsafe(before.length + body.length + after.length)
  let at = whole.write(before, 0, 'latin1')
  at += body.copy(whole, at)
  whole.write(after, at, 'latin1')
  return socket.write(whole)
}

/** The size line of a chunk; a chunk of no bytes would end the body and is never asked for. */
export function chunkStart(bytes: number): string {
  return `${bytes.toString(16)}\r\n`
}
