/**
 * Finds a counter's slot by hash: open addressing over one typed array, linear probing, deletion by
 * backward shift so that no tombstones pile up. Holds slots only; the caller keeps the keys and
 * compares.
 */
import { assert } from '../lib/assert.js'

export class KeyIndex {
  /** Slot + 1, 0 for a free place. */
  readonly #places: Int32Array
  readonly #mask: number
  /** Hash of each slot, by slot; the caller's column. */
  readonly #hashes: Uint32Array

  /** Sized once, at most half full with `slotsMax` slots, so that no insertion ever rehashes. */
  constructor(slotsMax: number, hashes: Uint32Array) {
    let size = 16
    while (size < slotsMax * 2) size *= 2
    this.#places = new Int32Array(size)
    this.#mask = size - 1
    this.#hashes = hashes
  }

  /** First place to look at for `hash`. */
  first(hash: number): number {
    return hash & this.#mask
  }

  next(place: number): number {
    return (place + 1) & this.#mask
  }

  /** The slot at a place, -1 when it is free and the search is over. */
  at(place: number): number {
    return (this.#places[place] as number) - 1
  }

  insert(slot: number): void {
    let place = this.first(this.#hashes[slot] as number)
    while (this.#places[place] !== 0) place = this.next(place)
    this.#places[place] = slot + 1
  }

  remove(slot: number): void {
    let hole = this.first(this.#hashes[slot] as number)
    while (this.#places[hole] !== slot + 1) {
      assert(this.#places[hole] !== 0, 'a slot that is removed stands in its index')
      hole = this.next(hole)
    }
    let place = hole
    for (;;) {
      place = this.next(place)
      const moved = this.at(place)
      if (moved < 0) break
      const home = this.first(this.#hashes[moved] as number)
      // A slot may move back only if its home does not lie between the hole and its place.
      if (((place - home) & this.#mask) < ((place - hole) & this.#mask)) continue
      this.#places[hole] = moved + 1
      hole = place
    }
    this.#places[hole] = 0
  }
}

/**
 * A seeded 31-bit hash (one bit more would not be a small integer) of a counter's identity and key text, for this process only. Cheap rather
 * than strong: a full comparison follows, and the seeds keep clients from aiming at one probe
 * chain.
 */
export class TextHash {
  readonly #start: number
  readonly #factor: number

  /** `seed`: 8 random bytes. */
  constructor(seed: Uint8Array) {
    const view = new DataView(seed.buffer, seed.byteOffset, 8)
    this.#start = view.getUint32(0)
    this.#factor = view.getUint32(4) | 1
  }

  of(identity: number, text: string): number {
    const factor = this.#factor
    let hash = this.#start ^ Math.imul(identity + 1, 0x9e3779b1)
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(((hash << 5) | (hash >>> 27)) ^ text.charCodeAt(index), factor)
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    return (hash ^ (hash >>> 16)) >>> 1
  }
}
