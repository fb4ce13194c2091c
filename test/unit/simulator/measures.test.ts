import { describe, expect, it } from 'vitest'
import { jain, Measures } from '../../../src/simulator/measures.js'
import { parseScenario } from '../../../src/simulator/parse-scenario.js'
import { epochWallMs } from '../../../src/simulator/pod-clock.js'
import type { Scenario } from '../../../src/simulator/scenario.js'

function scenario(limit: string, burst: number, seconds: number): Scenario {
  const parsed = parseScenario(`
pods: 2
duration: ${seconds}s
rule: { limit: ${limit}, burst: ${burst} }
traffic: [{ pods: all, rate: 1 }]
`)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return parsed.scenario
}

/** [time, pod, admitted] of each request, the key always the same. */
function measure(of: Scenario, trace: readonly (readonly [number, number, boolean])[]) {
  const measures = new Measures(of, 2)
  for (const [atMs, pod, admitted] of trace) {
    measures.observe(atMs, epochWallMs + atMs, pod, 0, admitted)
  }
  return { ...measures.finish(), series: measures.chart() }
}

/** `count` requests at once. */
function at(atMs: number, pod: number, count: number, admitted: number) {
  return Array.from({ length: count }, (_, i) => [atMs, pod, i < admitted] as const)
}

describe('Measures', () => {
  it('compares what was admitted with one ideal bucket over all pods', () => {
    const result = measure(scenario('10/1s', 10, 3), [
      ...at(0, 0, 10, 8),
      ...at(500, 1, 10, 6),
      ...at(2400, 0, 5, 5),
    ])
    expect(result).toMatchObject({
      offered: 25,
      admitted: 19,
      // 10 at once, 5 refilled after half a second, and by then enough for the last five.
      ideal: 20,
      ratio: 0.95,
      falseDenials: 1,
      perPod: [
        { offered: 15, admitted: 13 },
        { offered: 10, admitted: 6 },
      ],
    })
    expect(result.series.admitted).toEqual([14, 0, 5])
    expect(result.series.ideal).toEqual([15, 0, 5])
    expect(result.series.podAdmitted).toEqual([
      [8, 0, 5],
      [6, 0, 0],
    ])
  })

  it('gives the worst second as a share of what the ideal admits in that second', () => {
    const result = measure(scenario('10/1s', 10, 3), [
      ...at(100, 0, 10, 7),
      ...at(1100, 0, 20, 12),
      ...at(2100, 0, 10, 10),
    ])
    expect(result.worstSecondBelow).toBeCloseTo(0.3, 6)
    expect(result.worstSecondAbove).toBeCloseTo(0.2, 6)
  })

  it('does not compare a second that the run cuts short', () => {
    const half = { ...scenario('10/1s', 10, 2), durationMs: 1500 }
    const result = measure(half, [...at(100, 0, 10, 10), ...at(1400, 0, 10, 0)])
    expect(result.worstSecondBelow).toBe(0)
  })

  it('has no false denial when more was admitted than ideal', () => {
    const result = measure(scenario('10/1s', 10, 1), at(0, 0, 20, 15))
    expect(result.falseDenials).toBe(0)
    expect(result.excessOverBurst).toBeCloseTo(0.5, 6)
  })

  it('keeps an ideal bucket and an excess per client', () => {
    const measures = new Measures(scenario('10/1s', 10, 1), 2)
    for (let i = 0; i < 12; i++) measures.observe(0, epochWallMs, 0, i % 2, true)
    const result = measures.finish()
    expect(result).toMatchObject({ ideal: 12, excessOverBurst: -0.4 })
  })

  it('of nothing is a ratio of 1 and full fairness', () => {
    expect(measure(scenario('10/1s', 10, 1), [])).toMatchObject({
      offered: 0,
      ratio: 1,
      jain: 1,
      settleMs: 0,
      excessOverBurst: -1,
    })
  })

  it('charts a long run in at most 600 slices', () => {
    const long = scenario('10/1s', 10, 7200)
    const result = measure(long, [...at(0, 0, 1, 1), ...at(7_199_999, 1, 1, 1)])
    expect(result.series.sliceMs).toBe(12_000)
    expect(result.series.admitted).toHaveLength(600)
    expect(result.series.admitted.at(-1)).toBe(1)
  })
})

describe('jain', () => {
  it('is 1 for equal shares and 1/n when one pod has everything', () => {
    expect(jain([10, 100, 20], [5, 50, 10])).toBeCloseTo(1, 12)
    expect(jain([100, 100, 100, 100], [40, 0, 0, 0])).toBeCloseTo(0.25, 12)
  })

  it('leaves pods out that asked five times or less', () => {
    expect(jain([100, 5, 100], [50, 0, 50])).toBeCloseTo(1, 12)
    expect(jain([100, 6, 100], [50, 0, 50])).toBeCloseTo(2 / 3, 12)
  })
})
