/** Packs entries into as few messages as fit, telling shape and counter only when they change. */
import { forwardFlag, MessageWriter, newsKind, type WireEntry } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { wireShapeOf } from './publish.js'

export class NewsBatch {
  readonly #table: CounterTable
  readonly #flags: number
  readonly #bytesMax: number
  readonly #done: Uint8Array[] = []
  #writer: MessageWriter | null = null
  #shape = -1
  #slot = -1
  #entries = 0
  /** Entries packed so far. */
  entries = 0

  constructor(table: CounterTable, forward: boolean, bytesMax: number) {
    this.#table = table
    this.#flags = forward ? forwardFlag : 0
    this.#bytesMax = bytesMax
  }

  add(slot: number, wire: WireEntry): void {
    if (this.#try(slot, wire)) return
    this.#close()
    // An entry that fits no message of its own is dropped; a log keeps its newest slices for that.
    if (this.#try(slot, wire)) return
    wire.sliceCount = Math.min(wire.sliceCount, 16)
    this.#try(slot, wire)
  }

  /** Messages so far, the unfinished one not included. */
  get full(): number {
    return this.#done.length
  }

  finish(): readonly Uint8Array[] {
    this.#close()
    return this.#done
  }

  #try(slot: number, wire: WireEntry): boolean {
    const { slots } = this.#table
    this.#writer ??= new MessageWriter(newsKind, this.#flags, this.#bytesMax)
    const writer = this.#writer
    const shape = slots.shape[slot] as number
    if (shape !== this.#shape && !writer.shape(wireShapeOf(this.#table, shape))) return false
    this.#shape = shape
    if (slot !== this.#slot) {
      if (!writer.counter(slots.idHi[slot] as number, slots.idLo[slot] as number, null))
        return false
      this.#slot = slot
    }
    if (!writer.entry(wire)) return false
    this.#entries++
    this.entries++
    return true
  }

  #close(): void {
    if (this.#writer !== null && this.#entries > 0) this.#done.push(this.#writer.take())
    this.#writer = null
    this.#shape = -1
    this.#slot = -1
    this.#entries = 0
  }
}
