import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Rejoiner, refreshEveryMs } from '../../../src/discovery/rejoiner.js'
import type { Address } from '../../../src/vocabulary.js'

const self = { host: '10.0.0.1', port: 7946 }
const other = (last: number): Address => ({ host: `10.0.0.${last}`, port: 7946 })

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function rejoiner(alive: () => readonly Address[]) {
  const joined: Address[] = []
  const one = new Rejoiner(self, {
    random: () => 0.5,
    alive,
    join: addresses => joined.push(...addresses),
  })
  one.start()
  return { one, joined }
}

test('the list is knocked at as soon as it is known, oneself left out', () => {
  const { one, joined } = rejoiner(() => [])
  one.setSeeds([self, other(2), other(3)])
  expect(joined).toHaveLength(2)
  expect(joined).toEqual(expect.arrayContaining([other(2), other(3)]))
})

test('a silent address is tried about once a second, a live one is left alone', () => {
  const { one, joined } = rejoiner(() => [other(2)])
  one.setSeeds([other(2), other(3)])
  for (let second = 0; second < 10; second += 1) {
    one.settled(other(3))
    vi.advanceTimersByTime(1_000)
  }
  expect(joined.every(address => address.host === '10.0.0.3')).toBe(true)
  expect(joined.length).toBeGreaterThanOrEqual(10)
  expect(joined.length).toBeLessThanOrEqual(12)
})

test('live addresses are asked again every half minute, a few of many', () => {
  const seeds = Array.from({ length: 50 }, (_, index) => other(index + 2))
  const { one, joined } = rejoiner(() => seeds)
  one.setSeeds(seeds)
  vi.advanceTimersByTime(refreshEveryMs + 1)
  expect(joined).toHaveLength(3)
})

test('no more than two exchanges per address are under way', () => {
  const { one, joined } = rejoiner(() => [])
  one.setSeeds([other(2)])
  vi.advanceTimersByTime(10_000)
  expect(joined).toHaveLength(2)
  one.settled(other(2))
  vi.advanceTimersByTime(1_500)
  expect(joined).toHaveLength(3)
})

test('a list of a thousand silent addresses costs eight exchanges a round', () => {
  const { one, joined } = rejoiner(() => [])
  const seeds = Array.from({ length: 1000 }, (_, index) => ({ host: '10.1.0.1', port: index + 1 }))
  one.setSeeds(seeds)
  expect(joined).toHaveLength(8)
})

test('after stop nothing is asked any more', () => {
  const { one, joined } = rejoiner(() => [])
  one.stop()
  vi.advanceTimersByTime(100_000)
  expect(joined).toEqual([])
})
