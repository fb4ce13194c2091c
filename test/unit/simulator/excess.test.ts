import { describe, expect, it } from 'vitest'
import { Excess } from '../../../src/simulator/excess.js'
import { SeededRandom } from '../../../src/simulator/seeded-random.js'

describe('Excess', () => {
  it('is nothing for a bucket that is emptied and then kept to its rate', () => {
    const excess = new Excess(0.1, 10)
    for (let i = 0; i < 10; i++) excess.admit(0)
    for (let i = 1; i <= 50; i++) excess.admit(i * 10)
    expect(excess.share()).toBeCloseTo(0, 12)
  })

  it('is what came beyond the burst, as a share of it', () => {
    const excess = new Excess(0.1, 10)
    for (let i = 0; i < 13; i++) excess.admit(5)
    expect(excess.share()).toBeCloseTo(0.3, 12)
  })

  it('finds the worst interval wherever it lies', () => {
    const excess = new Excess(0.1, 10)
    for (let i = 0; i < 4; i++) excess.admit(0)
    for (let i = 0; i < 12; i++) excess.admit(1000)
    for (let i = 0; i < 9; i++) excess.admit(1010)
    for (let i = 0; i < 2; i++) excess.admit(9000)
    // 21 admissions in 10 ms, in which one unit refills: 20 beside a burst of 10.
    expect(excess.share()).toBeCloseTo(1, 12)
  })

  it('is negative when the burst was never used up', () => {
    const excess = new Excess(0.1, 10)
    excess.admit(0)
    excess.admit(1000)
    expect(excess.share()).toBeCloseTo(-0.9, 12)
  })

  it('equals the definition over all pairs of admissions', () => {
    const random = new SeededRandom(11).stream()
    const times = Array.from({ length: 120 }, () => random() * 300).sort((a, b) => a - b)
    const excess = new Excess(0.2, 5)
    for (const time of times) excess.admit(time)
    let worst = Number.NEGATIVE_INFINITY
    for (let i = 0; i < times.length; i++) {
      for (let j = i; j < times.length; j++) {
        worst = Math.max(worst, (j - i + 1 - 0.2 * (times[j]! - times[i]!) - 5) / 5)
      }
    }
    expect(excess.share()).toBeCloseTo(worst, 10)
  })
})
