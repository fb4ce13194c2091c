/**
 * News waiting to be piggybacked or gossiped (SWIM section 4.1; memberlist queue.go): what was sent
 * least goes first, each item a limited number of times, and newer news about the same subject
 * replaces older.
 */
import { retransmitLimit } from './scaling.js'

interface Item {
  /** What it is about; null for news that replaces nothing. */
  readonly subject: string | null
  readonly message: Uint8Array
  /** Grows with every item queued. */
  readonly id: number
  transmits: number
  /** Called once, when the item was sent often enough, replaced or dropped. */
  readonly finished: (() => void) | null
}

export interface BroadcastQueueOptions {
  readonly retransmitMult: number
  readonly itemsMax: number
  /** The size of the cluster at the moment. */
  readonly nodes: () => number
}

export class BroadcastQueue {
  readonly #options: BroadcastQueueOptions
  /** Sorted: fewest transmits, then longest, then newest first. */
  #items: Item[] = []
  readonly #bySubject = new Map<string, Item>()
  #lastId = 0
  #dropped = 0

  constructor(options: BroadcastQueueOptions) {
    this.#options = options
  }

  get length(): number {
    return this.#items.length
  }

  /** Of all messages; counted anew at each call. */
  get bytes(): number {
    return this.#items.reduce((sum, { message }) => sum + message.length, 0)
  }

  /** Items that made way because the queue was full. */
  get dropped(): number {
    return this.#dropped
  }

  /** Drops an older item about the same subject. `message` must not be changed afterwards. */
  queue(subject: string | null, message: Uint8Array, finished: (() => void) | null = null): void {
    this.#lastId += 1
    const item: Item = { subject, message, id: this.#lastId, transmits: 0, finished }
    if (subject !== null) {
      const older = this.#bySubject.get(subject)
      if (older !== undefined) this.#remove(older)
      this.#bySubject.set(subject, item)
    }
    this.#insert(item)
    if (this.#items.length > this.#options.itemsMax) this.#dropLast()
  }

  /**
   * Messages for one packet of `limitBytes`, each costing its length plus `overheadBytes`; every
   * one of them counts as sent. A message that never fits stays queued, as in the original.
   */
  take(overheadBytes: number, limitBytes: number, countMax = Infinity): Uint8Array[] {
    const items = this.#items
    if (items.length === 0) return []
    const messages: Uint8Array[] = []
    const sent: Item[] = []
    const kept: Item[] = []
    let roomBytes = limitBytes
    // The order makes one pass enough: within a tier the longest that fits comes first, and what
    // did not fit once cannot fit later because the room only shrinks.
    for (const item of items) {
      const costBytes = item.message.length + overheadBytes
      if (costBytes <= roomBytes && messages.length < countMax) {
        roomBytes -= costBytes
        messages.push(item.message)
        sent.push(item)
      } else {
        kept.push(item)
      }
    }
    if (sent.length === 0) return messages
    this.#items = kept
    this.#settle(sent)
    return messages
  }

  clear(): void {
    const items = this.#items
    this.#items = []
    this.#bySubject.clear()
    for (const item of items) item.finished?.()
  }

  #settle(sent: readonly Item[]): void {
    const limit = retransmitLimit(this.#options.retransmitMult, this.#options.nodes())
    for (const item of sent) {
      item.transmits += 1
      if (item.transmits < limit) {
        this.#insert(item)
      } else {
        if (item.subject !== null) this.#bySubject.delete(item.subject)
        item.finished?.()
      }
    }
  }

  #insert(item: Item): void {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (compare(this.#items[middle]!, item) < 0) low = middle + 1
      else high = middle
    }
    this.#items.splice(low, 0, item)
  }

  #remove(item: Item): void {
    const index = this.#items.indexOf(item)
    if (index >= 0) this.#items.splice(index, 1)
    item.finished?.()
  }

  #dropLast(): void {
    const item = this.#items.pop()
    if (item === undefined) return
    if (item.subject !== null) this.#bySubject.delete(item.subject)
    this.#dropped += 1
    item.finished?.()
  }
}

function compare(a: Item, b: Item): number {
  if (a.transmits !== b.transmits) return a.transmits - b.transmits
  if (a.message.length !== b.message.length) return b.message.length - a.message.length
  return b.id - a.id
}
