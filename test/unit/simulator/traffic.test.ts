import { describe, expect, it } from 'vitest'
import type { TrafficEntry } from '../../../src/simulator/scenario.js'
import { SeededRandom } from '../../../src/simulator/seeded-random.js'
import { nextArrivalMs, Traffic } from '../../../src/simulator/traffic.js'

function entry(parts: Partial<TrafficEntry>): TrafficEntry {
  return {
    pods: 'all',
    ratePerSecond: 100,
    fromMs: 0,
    toMs: 60_000,
    periodMs: null,
    onMs: 0,
    keys: 1,
    ...parts,
  }
}

function arrivals(of: TrafficEntry, seed = 1): number[] {
  const gaps = new SeededRandom(seed).stream()
  const times: number[] = []
  for (let at = nextArrivalMs(of, gaps, 0); at < of.toMs; at = nextArrivalMs(of, gaps, at)) {
    times.push(at)
  }
  return times
}

describe('nextArrivalMs', () => {
  it('brings as many requests as the rate says', () => {
    // 6,000 expected with a standard deviation of 77: four of them.
    expect(Math.abs(arrivals(entry({})).length - 6000)).toBeLessThan(310)
  })

  it('stays within from and to', () => {
    const times = arrivals(entry({ fromMs: 5000, toMs: 10_000 }))
    expect(times[0]).toBeGreaterThan(5000)
    expect(times.at(-1)).toBeLessThan(10_000)
    expect(Math.abs(times.length - 500)).toBeLessThan(90)
  })

  it('comes in bursts that begin at multiples of the period', () => {
    const times = arrivals(entry({ periodMs: 4000, onMs: 1000, fromMs: 6000, ratePerSecond: 200 }))
    for (const time of times) expect(time % 4000).toBeLessThan(1000)
    expect(times[0]).toBeGreaterThan(8000)
    // Fourteen bursts of 200, from 8 s to 57 s - the one at 60 s is outside.
    expect(Math.abs(times.length - 13 * 200)).toBeLessThan(210)
  })

  it('is over for good after its end', () => {
    const gaps = new SeededRandom(1).stream()
    expect(nextArrivalMs(entry({ toMs: 100 }), gaps, 100)).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('Traffic', () => {
  it('gives every pod its own arrivals, of all entries that name it', () => {
    const planned: [number, number][] = []
    const traffic = new Traffic(
      [entry({}), entry({ pods: [1] })],
      new SeededRandom(1),
      (at, stream) => planned.push([stream, at]),
    )
    traffic.open(0, 0)
    traffic.open(1, 0)
    expect(planned.map(([stream]) => traffic.podOf(stream))).toEqual([0, 1, 1])
    expect(new Set(planned.map(([, at]) => at)).size).toBe(3)
  })

  it('names no pod for a stream that was closed, and new streams when it opens again', () => {
    const planned: number[] = []
    const traffic = new Traffic([entry({})], new SeededRandom(1), (_at, stream) =>
      planned.push(stream),
    )
    traffic.open(4, 0)
    traffic.close(4)
    traffic.open(4, 1000)
    expect(planned.map(stream => traffic.podOf(stream))).toEqual([-1, 4])
  })

  it('draws clients evenly from as many as the entry has', () => {
    const traffic = new Traffic([entry({ keys: 3 })], new SeededRandom(1), () => undefined)
    traffic.open(0, 0)
    const counts = [0, 0, 0]
    for (let i = 0; i < 3000; i++) counts[traffic.clientOf(0)]!++
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(130)
  })
})
