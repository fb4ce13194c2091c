import { expect, it } from 'vitest'
import { KeyIndex, TextHash } from '../../../src/counters/key-index.js'

it('finds what was inserted and not what was removed, with every hash in one chain', () => {
  const hashes = new Uint32Array(64)
  for (let slot = 0; slot < 64; slot++) hashes[slot] = 7 + (slot % 3)
  const index = new KeyIndex(64, hashes)
  const find = (slot: number) => {
    for (let place = index.first(hashes[slot]!); ; place = index.next(place)) {
      const at = index.at(place)
      if (at < 0 || at === slot) return at
    }
  }
  for (let slot = 0; slot < 64; slot++) index.insert(slot)
  for (let slot = 0; slot < 64; slot += 2) index.remove(slot)
  for (let slot = 0; slot < 64; slot++) expect(find(slot)).toBe(slot % 2 === 0 ? -1 : slot)
  for (let slot = 0; slot < 64; slot += 2) index.insert(slot)
  for (let slot = 0; slot < 64; slot++) expect(find(slot)).toBe(slot)
})

it('hashes the same text differently under another seed or identity', () => {
  const one = new TextHash(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))
  const other = new TextHash(Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1))
  expect(one.of(0, 'key')).toBe(one.of(0, 'key'))
  expect(one.of(0, 'key')).not.toBe(one.of(1, 'key'))
  expect(one.of(0, 'key')).not.toBe(other.of(0, 'key'))
})

it('spreads similar keys evenly over the low bits', () => {
  const hash = new TextHash(Uint8Array.of(9, 2, 3, 4, 5, 6, 7, 8))
  const buckets = new Array<number>(64).fill(0)
  for (let n = 0; n < 6400; n++) buckets[hash.of(0, `client-${n}`) & 63]!++
  expect(Math.min(...buckets)).toBeGreaterThan(50)
  expect(Math.max(...buckets)).toBeLessThan(160)
})
