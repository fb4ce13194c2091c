import { describe, expect, it } from 'vitest'
import { exponentialMs, SeededRandom } from '../../../src/simulator/seeded-random.js'

function take(count: number, next: () => number): number[] {
  return Array.from({ length: count }, next)
}

describe('SeededRandom', () => {
  it('repeats itself for the same seed and path', () => {
    const first = take(20, new SeededRandom(7).fork('a').fork('b').stream())
    const second = take(20, new SeededRandom(7).fork('a').fork('b').stream())
    expect(second).toEqual(first)
  })

  it('gives other numbers to another seed and to another fork', () => {
    const one = take(5, new SeededRandom(7).fork('a').stream())
    expect(take(5, new SeededRandom(8).fork('a').stream())).not.toEqual(one)
    expect(take(5, new SeededRandom(7).fork('b').stream())).not.toEqual(one)
  })

  it('is uniform in [0, 1)', () => {
    const numbers = take(100_000, new SeededRandom(1).stream())
    const tenths = new Array<number>(10).fill(0)
    for (const number of numbers) tenths[Math.floor(number * 10)]!++
    // Ten cells of 10,000 with a standard deviation of 95: five of them.
    for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(475)
  })

  it('makes bytes of any length', () => {
    const entropy = new SeededRandom(1).entropy()
    expect(entropy(8)).toHaveLength(8)
    expect(entropy(8)).not.toEqual(entropy(8))
  })
})

describe('exponentialMs', () => {
  it('has the mean and the memoryless spread of a Poisson process', () => {
    const random = new SeededRandom(3).stream()
    const gaps = take(50_000, () => exponentialMs(random, 0.5))
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
    const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length
    expect(mean).toBeCloseTo(2, 1)
    expect(Math.sqrt(variance)).toBeCloseTo(2, 1)
  })
})
