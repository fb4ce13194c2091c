import { describe, expect, it } from 'vitest'
import { Settling } from '../../../src/simulator/settling.js'

/** One second of 100 requests that the ideal admits, of which the fleet admits `admitted`. */
function second(settling: Settling, fromMs: number, admitted: number, ideal = 100): void {
  const count = Math.max(admitted, ideal)
  for (let i = 0; i < count; i++) {
    settling.observe(fromMs + (i * 1000) / count, i < admitted, i < ideal)
  }
}

function settled(changesMs: number[], seconds: readonly number[]): number | null {
  const settling = new Settling(changesMs, seconds.length * 1000)
  seconds.forEach((admitted, i) => {
    second(settling, i * 1000, admitted)
  })
  return settling.finishMs()
}

describe('Settling', () => {
  it('is 0 when every second is in step, to 5 % exactly', () => {
    expect(settled([0], [100, 105, 95, 100])).toBe(0)
  })

  it('lasts from the change to the end of the last second out of step', () => {
    expect(settled([0], [120, 100, 94, 100, 100])).toBe(3000)
  })

  it('counts from the latest change before the disturbance', () => {
    expect(settled([0, 3000], [100, 100, 100, 110, 100, 100])).toBe(1000)
  })

  it('reports the longest of several disturbances', () => {
    expect(settled([0, 3000], [100, 80, 100, 80, 100, 100])).toBe(2000)
  })

  it('takes a change amid a disturbance for part of it', () => {
    expect(settled([0, 2000], [100, 120, 120, 100, 100])).toBe(3000)
  })

  it('is null when the last second is out of step', () => {
    expect(settled([0], [100, 100, 80])).toBeNull()
  })

  it('forgives three requests where 5 % are less than that', () => {
    const settling = new Settling([0], 2000)
    second(settling, 0, 13, 10)
    second(settling, 1000, 7, 10)
    expect(settling.finishMs()).toBe(0)
    const strict = new Settling([0], 2000)
    second(strict, 0, 14, 10)
    second(strict, 1000, 10, 10)
    expect(strict.finishMs()).toBe(1000)
  })

  it('counts seconds from a change that lies between two of them', () => {
    const settling = new Settling([0, 1500], 3500)
    second(settling, 0, 100)
    // Half a second that belongs to no whole second before the change: not judged.
    for (let i = 0; i < 50; i++) settling.observe(1000 + i * 10, false, true)
    second(settling, 1500, 100)
    second(settling, 2500, 100)
    expect(settling.finishMs()).toBe(0)
  })

  it('judges seconds in which nothing happened', () => {
    const settling = new Settling([0], 5000)
    for (let i = 0; i < 10; i++) settling.observe(i, false, true)
    settling.observe(4500, true, true)
    expect(settling.finishMs()).toBe(1000)
  })
})
