import { describe, expect, it } from 'vitest'
import { runScenario, type SimResult } from '../../src/simulator/run-scenario.js'
import { admittedIn, fleetOf, scenarioOf } from './fleet.js'
import { loadScenario } from './scenario-files.js'

/** A stated bound and what was measured; the message of a failure and of a verbose run. */
function expectAtMost(what: string, measured: number, bound: number): void {
  console.log(`${what}: ${measured.toFixed(3)}, at most ${bound}`)
  expect(measured, what).toBeLessThanOrEqual(bound)
}

describe('a 3/2 split at twice the limit of 1000/s', () => {
  const minority = [3, 4]
  const all = [0, 1, 2, 3, 4]

  /** Per second of the end of the split, when it was noticed, and from 2 s after it on. */
  function rates(result: SimResult) {
    const pods = result.series.podAdmitted
    return {
      minority: admittedIn(pods, minority, 11, 14) / 3,
      all: admittedIn(pods, all, 11, 14) / 3,
      after: admittedIn(pods, all, 16, 24) / 8,
    }
  }

  it('share: each side pools its part of the limit, and nothing is lost afterwards', () => {
    const result = runScenario(loadScenario('split-share'), { seed: 1 })
    const { minority: small, all: both, after } = rates(result)
    expect(Math.abs(small / 400 - 1)).toBeLessThan(0.1)
    expect(Math.abs(both / 1000 - 1)).toBeLessThan(0.05)
    expect(Math.abs(after / 1000 - 1)).toBeLessThan(0.03)
    expect(result.series.podAdmitted).toHaveLength(5)
  })

  it('open: the full limit on every side, and no long outage after healing', () => {
    const result = runScenario(loadScenario('split-open'), { seed: 1 })
    const { minority: small, all: both, after } = rates(result)
    // The small side is offered 800 requests a second, less than the limit.
    expect(small).toBeGreaterThan(760)
    expect(both).toBeGreaterThan(1700)
    // Debt is bounded by one burst, so at most two seconds of the limit are paid back.
    expect(after).toBeGreaterThan(800)
    expect(after).toBeLessThan(1030)
  })

  it('closed: at most the safe part of each pod', () => {
    const result = runScenario(loadScenario('split-closed'), { seed: 1 })
    const { minority: small, after } = rates(result)
    expectAtMost('minority of a closed split, requests/s', small, 400 * 1.02)
    expect(Math.abs(after / 1000 - 1)).toBeLessThan(0.03)
  })
})

describe('single faults', () => {
  it('scaling 5 -> 8 while exhausted costs at most a fleet burst in the second after the join', () => {
    const result = runScenario(loadScenario('scale-5-to-8'), { seed: 1 })
    const second = result.series.admitted[8]!
    expectAtMost('admitted in the second after the join', second, 1000 + 1000)
    expectAtMost('excess over burst', result.excessOverBurst, 0.2)
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.03)
    for (const joined of [5, 6, 7]) {
      expect(result.perPod[joined]!.admitted / result.perPod[joined]!.offered).toBeGreaterThan(0.2)
    }
  })

  it('a pod that stood still does not spend what the others spent meanwhile', () => {
    const result = runScenario(loadScenario('paused-pod'), { seed: 1 })
    // Two thousand requests waited; the bucket of a pod that heard nothing would pass half of them.
    expectAtMost('excess over burst after a pause', result.excessOverBurst, 0.35)
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.05)
  })

  it('a one-way link hides nothing for long', () => {
    const result = runScenario(loadScenario('one-way-link'), { seed: 1 })
    expectAtMost('excess over burst with a one-way link', result.excessOverBurst, 1)
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.05)
  })

  it('a rolling restart neither doubles nor forgets what was used', () => {
    const result = runScenario(loadScenario('rolling-restart'), { seed: 1 })
    expectAtMost('excess over burst in a rolling restart', result.excessOverBurst, 0.2)
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.03)
  })
})

describe('a bad network', () => {
  const bad = scenarioOf(`
pods: 5
duration: 31s
rule: { limit: 500/1s, burst: 500 }
traffic: [{ pods: all, rate: 200, to: 30s }]
network: { latency: 2ms, jitter: 1ms, loss: 0.3, duplicate: 0.2, reorder: 0.2 }
`)

  it('of 30 % loss, 20 % duplicates and reordering leaves the rate right and the totals equal', () => {
    const { world, cores } = fleetOf(bad, 3)
    world.runUntil(30_000)
    const { ratio } = world.measures.finish()
    expect(Math.abs(ratio - 1)).toBeLessThan(0.01)
    world.runUntil(31_000)
    const totals = cores.map((core, i) => {
      const [key] = core.top('simulated', 'hits', 1, world.cluster.processes[i]!.monotonicMs(), 0)
      const parts = (key?.parts ?? []).map(({ node, consumed, returned, offered }) => ({
        node,
        consumed,
        returned,
        offered,
      }))
      return parts.sort((a, b) => ((a.node ?? '') < (b.node ?? '') ? -1 : 1))
    })
    expect(totals[0]).toHaveLength(5)
    for (const other of totals) expect(other).toEqual(totals[0])
  })
})
