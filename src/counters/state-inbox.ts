/** States of peers that wait to be merged: one part at a time, so that requests come in between. */
import { type BundlePart, readBundle } from './state-bundle.js'

/** Bytes that may wait; a state beyond that is refused, as its sender will come again. */
const waitingBytesMax = 16 << 20
/** Time left to requests between two parts. */
const partGapMs = 2

interface Waiting extends BundlePart {
  readonly receivedAtMs: number
  /** The last part of its state. */
  readonly isLast: boolean
  /** Ends of the sender's table in its state, 0..2. */
  readonly ends: number
}

export interface Taken {
  readonly part: BundlePart
  readonly isLast: boolean
  readonly ends: number
}

export class StateInbox {
  /** States refused because too much was waiting. */
  refused = 0
  #waiting: Waiting[] = []
  #bytes = 0
  #dueAtMs = Number.NEGATIVE_INFINITY

  /** False when `bytes` is no bundle, which is then merged as it is. */
  accept(bytes: Uint8Array, monotonicMs: number): boolean {
    const bundle = readBundle(bytes)
    if (bundle === null) return false
    const { parts, ends } = bundle
    if (this.#bytes + bytes.length > waitingBytesMax) {
      this.refused++
      return true
    }
    const last = parts.length - 1
    parts.forEach((part, index) => {
      this.#bytes += part.bytes.length
      this.#waiting.push({ ...part, receivedAtMs: monotonicMs, isLast: index === last, ends })
    })
    return true
  }

  nextDeadlineMs(): number {
    return this.#waiting.length === 0 ? Number.POSITIVE_INFINITY : this.#dueAtMs
  }

  /** The next part with its age by now, when one is due. */
  take(monotonicMs: number): Taken | null {
    if (monotonicMs < this.nextDeadlineMs()) return null
    const first = this.#waiting.shift()
    if (first === undefined) return null
    this.#bytes -= first.bytes.length
    this.#dueAtMs = monotonicMs + partGapMs
    const heldMs = first.heldMs + monotonicMs - first.receivedAtMs
    const { bytes, isLast, ends } = first
    return { part: { bytes, heldMs }, isLast, ends }
  }
}
