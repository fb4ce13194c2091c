/**
 * What other origins said of a counter: one pooled record per (origin, counter), 67 bytes, in a
 * list per slot. Merging is a join: a higher epoch wins whole, within one epoch (and one window)
 * every total is the greater of both. Commutative, associative, idempotent, monotone;
 * property-tested.
 */
import { assert } from '../lib/assert.js'

export class OriginEntries {
  readonly entriesMax: number
  readonly next: Int32Array
  readonly origin: Uint16Array
  readonly epoch: Uint32Array
  readonly consumed: Float64Array
  readonly returned: Float64Array
  readonly offered: Float64Array
  /**
   * Bucket: when the origin last saw the bucket untouched (own clock). Windows: number of the
   * window.
   */
  readonly mark: Float64Array
  /** Bucket: usage since then. Windows: usage of the window before. */
  readonly tail: Float64Array
  /** When these totals were published, own clock, milliseconds. */
  readonly publishedAt: Float64Array
  /** Demand in units per millisecond. */
  readonly demand: Float32Array
  /** Log family: newest slice, -1 for none. */
  readonly log: Int32Array
  /** 1: to be handed on with the next batch. */
  readonly relay: Uint8Array
  #free = -1
  #fresh = 0
  #used = 0

  constructor(entriesMax: number) {
    this.entriesMax = entriesMax
    this.next = new Int32Array(entriesMax)
    this.origin = new Uint16Array(entriesMax)
    this.epoch = new Uint32Array(entriesMax)
    this.consumed = new Float64Array(entriesMax)
    this.returned = new Float64Array(entriesMax)
    this.offered = new Float64Array(entriesMax)
    this.mark = new Float64Array(entriesMax)
    this.tail = new Float64Array(entriesMax)
    this.publishedAt = new Float64Array(entriesMax)
    this.demand = new Float32Array(entriesMax)
    this.log = new Int32Array(entriesMax)
    this.relay = new Uint8Array(entriesMax)
  }

  get used(): number {
    return this.#used
  }

  get isFull(): boolean {
    return this.#used === this.entriesMax
  }

  /**
   * A clean entry in front of a list whose head was `next`; the pool must not be full. Places that
   * were used before come first, so that memory never used stays so.
   */
  take(origin: number, next: number): number {
    assert(!this.isFull, 'an entry is taken only where there is one')
    let entry = this.#free
    if (entry >= 0) this.#free = this.next[entry] as number
    else entry = this.#fresh++
    this.#used++
    this.next[entry] = next
    this.origin[entry] = origin
    this.epoch[entry] = 0
    this.consumed[entry] = 0
    this.returned[entry] = 0
    this.offered[entry] = 0
    this.mark[entry] = 0
    this.tail[entry] = 0
    this.publishedAt[entry] = Number.NEGATIVE_INFINITY
    this.demand[entry] = 0
    this.log[entry] = -1
    this.relay[entry] = 0
    return entry
  }

  release(entry: number): void {
    assert(this.#used > 0, 'only a taken entry is released')
    this.#used--
    this.next[entry] = this.#free
    this.#free = entry
  }

  find(head: number, origin: number): number {
    let entry = head
    while (entry >= 0 && this.origin[entry] !== origin) entry = this.next[entry] as number
    return entry
  }
}
