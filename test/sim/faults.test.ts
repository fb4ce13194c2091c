import { describe, expect, it } from 'vitest'
import { runScenario, type SimResult } from '../../src/simulator/run-scenario.js'
import { admittedIn, fleetOf, scenarioOf } from './fleet.js'
import { loadScenario } from './scenario-files.js'

/** A stated bound and what was measured; the message of a failure and of a verbose run. */
function expectAtMost(what: string, measured: number, bound: number): void {
  console.log(`${what}: ${measured.toFixed(3)}, at most ${bound}`)
  expect(measured, what).toBeLessThanOrEqual(bound)
}

describe('a 3/2 split of eight seconds at twice the limit of 1000/s', () => {
  const minority = [3, 4]
  const all = [0, 1, 2, 3, 4]

  /** Per second of the split, from one second after it began, and from 2 s after its end on. */
  function rates(result: SimResult) {
    const pods = result.series.podAdmitted
    return {
      minority: admittedIn(pods, minority, 7, 14) / 7,
      all: admittedIn(pods, all, 7, 14) / 7,
      after: admittedIn(pods, all, 16, 24) / 8,
    }
  }

  it('share: each side pools its part of the limit, and nothing is lost afterwards', () => {
    const result = runScenario(loadScenario('split-share'), { seed: 1 })
    const { minority: small, all: both, after } = rates(result)
    expectAtMost('minority of a shared split, requests/s', small, 400 * 1.05)
    expect(small).toBeGreaterThan(400 * 0.95)
    expectAtMost('both sides of a shared split, requests/s', both, 1000 * 1.02)
    expect(Math.abs(after / 1000 - 1)).toBeLessThan(0.02)
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
    expect(Math.abs(after / 1000 - 1)).toBeLessThan(0.02)
  })
})

describe.each([1, 2, 3])('a 3/2 split of three seconds, seed %i', seed => {
  const majority = [0, 1, 2]
  const minority = [3, 4]

  function split(policy: string) {
    const result = runScenario(loadScenario(`split-3s-${policy}`), { seed })
    const { admitted, podAdmitted } = result.series
    /** From one second after the beginning to the end; the split is noticed by then. */
    const during = (pods: readonly number[]) => admittedIn(podAdmitted, pods, 7, 9) / 2
    return { result, admitted, podAdmitted, during }
  }

  /** Two seconds after healing everybody draws on one bucket again. */
  function expectOneFleet({ admitted, podAdmitted }: ReturnType<typeof split>): void {
    for (const second of admitted.slice(11)) expect(Math.abs(second / 1000 - 1)).toBeLessThan(0.03)
    for (const pod of podAdmitted) {
      const perSecond = admittedIn([pod], [0], 11, 20) / 9
      expect(perSecond).toBeGreaterThan(150)
      expect(perSecond).toBeLessThan(260)
    }
  }

  it('share: noticed within a second, two fifths for the minority, no outage after it', () => {
    const run = split('share')
    expectAtMost('3 s split, share: minority, requests/s', run.during(minority), 400 * 1.05)
    expectAtMost('3 s split, share: majority, requests/s', run.during(majority), 600 * 1.05)
    expectAtMost('3 s split, share: excess over burst', run.result.excessOverBurst, 0.65)
    // Both sides had the whole rate for 600 ms: no more than that is paid back.
    expect(Math.min(...run.admitted.slice(9))).toBeGreaterThan(300)
    expectOneFleet(run)
  })

  it('closed: noticed within a second, the safe part for each pod, no outage after it', () => {
    const run = split('closed')
    expectAtMost('3 s split, closed: minority, requests/s', run.during(minority), 400 * 1.02)
    expectAtMost('3 s split, closed: majority, requests/s', run.during(majority), 600 * 1.02)
    expectAtMost('3 s split, closed: excess over burst', run.result.excessOverBurst, 0.6)
    expect(Math.min(...run.admitted.slice(9))).toBeGreaterThan(900)
    expectOneFleet(run)
  })

  it('open: the full limit on either side, and a debt of one burst after it', () => {
    const run = split('open')
    expectAtMost('3 s split, open: majority, requests/s', run.during(majority), 1000 * 1.05)
    // The small side is offered 800 requests a second, less than the limit.
    expect(run.during(minority)).toBeGreaterThan(760)
    // Three seconds of 800 requests/s that the one bucket would not have passed.
    expectAtMost('3 s split, open: excess over burst', run.result.excessOverBurst, 3 * 0.83)
    const missing = 2 * 1000 - admittedIn([run.admitted], [0], 9, 11)
    expectAtMost('3 s split, open: paid back after it, requests', missing, 1000 + 50)
    expectOneFleet(run)
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

  it.each([1, 2, 3])(
    'a pod that stood still neither spends what the others spent meanwhile nor pays for it, seed %i',
    seed => {
      const result = runScenario(loadScenario('paused-pod'), { seed })
      const { podAdmitted } = result.series
      // Two thousand requests waited; the bucket of a pod that heard nothing would pass half of them.
      expectAtMost('excess over burst after a pause', result.excessOverBurst, 0.05)
      expectAtMost('|1 - ratio| with a pause of five seconds', Math.abs(result.ratio - 1), 0.01)
      expectAtMost('false denials of 40,000', result.falseDenials, 150)
      // It is denied its rate while it is silent, and has its part of it again at once.
      expect(admittedIn(podAdmitted, [1], 12, 20) / 8).toBeGreaterThan(160)
      expect(admittedIn(podAdmitted, [1], 13, 20) / 7).toBeLessThan(240)
    },
  )

  it('a one-way link hides nothing for long, and leaves nothing behind', () => {
    const result = runScenario(loadScenario('one-way-link'), { seed: 1 })
    expectAtMost('excess over burst with a one-way link', result.excessOverBurst, 0.35)
    expectAtMost('|1 - ratio| with a one-way link', Math.abs(result.ratio - 1), 0.005)
    const { podAdmitted } = result.series
    for (const pod of podAdmitted) {
      expect(admittedIn([pod], [0], 16, 20) / 4).toBeGreaterThan(140)
    }
  })

  it('a rolling restart neither doubles nor forgets what was used', () => {
    const result = runScenario(loadScenario('rolling-restart'), { seed: 1 })
    expectAtMost('excess over burst in a rolling restart', result.excessOverBurst, 0.05)
    expectAtMost('|1 - ratio| in a rolling restart', Math.abs(result.ratio - 1), 0.005)
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

  it.each([
    [5, 1],
    [20, 2],
  ])(
    'that loses three packets in ten leaves a slow limit right too, %i pods, seed %i',
    (pods, seed) => {
      const slow = scenarioOf(`
pods: ${pods}
duration: 150s
rule: { limit: 100/1m, burst: 100 }
traffic: [{ pods: all, rate: ${10 / 3 / pods} }]
network: { latency: 2ms, jitter: 1ms, loss: 0.3 }
`)
      const { ratio, excessOverBurst } = runScenario(slow, { seed })
      expectAtMost('|1 - ratio| of a slow limit at 30 % loss', Math.abs(ratio - 1), 0.01)
      expectAtMost('excess over burst of a slow limit at 30 % loss', excessOverBurst, 0.03)
    },
  )
})
