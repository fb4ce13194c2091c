/**
 * Gives every origin a small number, and knows which of them still speak. Bounded; refusals
 * counted.
 */
import type { OriginId } from '../vocabulary.js'

/** Origin not heard of by membership: an earlier start, or one that membership will bring. */
export const originUnknown = 0
export const originLive = 1
/** Known to be there and not answering: a split. */
export const originSilent = 2
export const originDeparted = 3

const originsMax = 8192

export class OriginRegistry {
  readonly #numbers = new Map<number, Map<number, number>>()
  readonly hi = new Uint32Array(originsMax)
  readonly lo = new Uint32Array(originsMax)
  readonly state = new Uint8Array(originsMax)
  /** When a silent origin was last heard again, own clock. */
  readonly backAt = new Float64Array(originsMax)
  /** How many entries speak of it. */
  readonly entries = new Int32Array(originsMax)
  /** Origins that could not be numbered. */
  refused = 0
  #count = 0
  readonly #free: number[] = []

  get count(): number {
    return this.#count - this.#free.length
  }

  /** The number of an origin, given out at first sight; -1 when there is no room. */
  numberOf(hi: number, lo: number): number {
    const known = this.find(hi, lo)
    if (known >= 0) return known
    const number = this.#free.pop() ?? (this.#count < originsMax ? this.#count++ : this.#reclaim())
    if (number < 0) {
      this.refused++
      return -1
    }
    this.hi[number] = hi
    this.lo[number] = lo
    this.state[number] = originUnknown
    this.entries[number] = 0
    this.backAt[number] = Number.NEGATIVE_INFINITY
    let row = this.#numbers.get(hi)
    if (row === undefined) {
      row = new Map()
      this.#numbers.set(hi, row)
    }
    row.set(lo, number)
    return number
  }

  find(hi: number, lo: number): number {
    return this.#numbers.get(hi)?.get(lo) ?? -1
  }

  numberOfText(origin: OriginId): number {
    const hi = Number.parseInt(origin.slice(0, 8), 16) >>> 0
    const lo = Number.parseInt(origin.slice(8, 16), 16) >>> 0
    return this.numberOf(hi, lo)
  }

  text(number: number): OriginId {
    const hex = (word: number) => word.toString(16).padStart(8, '0')
    return (hex(this.hi[number] as number) + hex(this.lo[number] as number)) as OriginId
  }

  /** Takes back numbers of origins that neither speak nor are spoken of; one of them, or -1. */
  #reclaim(): number {
    for (let number = 1; number < this.#count; number++) {
      const state = this.state[number] as number
      if (state === originLive || state === originSilent || this.entries[number] !== 0) continue
      const row = this.#numbers.get(this.hi[number] as number)
      if (row?.delete(this.lo[number] as number)) {
        if (row.size === 0) this.#numbers.delete(this.hi[number] as number)
        this.#free.push(number)
      }
    }
    return this.#free.pop() ?? -1
  }
}
