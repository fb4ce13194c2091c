/** A process that stood still (counters.md §3): what it does before it has read what came meanwhile. */
import { expect, it } from 'vitest'
import type { Core } from '../../src/core.js'
import { simulatedRule } from '../../src/simulator/core-node.js'
import type { SimProcess } from '../../src/simulator/sim-process.js'
import { fleetOf, scenarioOf } from './fleet.js'

const resumedMs = 6000

/** Two pods of which the second stands still from 3 s on; `others` is the traffic of the first. */
function stalled(others: string): { core: Core; process: SimProcess } {
  const scenario = scenarioOf(`
pods: 2
duration: 10s
rule: { limit: 100/1s, burst: 100 }
traffic: [{ pods: [0], ${others} }, { pods: [1], rate: 40 }]
network: { latency: 2ms, jitter: 1ms }
events: [{ at: 3s, pause: [1], until: 9s }]`)
  const { world, cores } = fleetOf(scenario, 1)
  world.runUntil(resumedMs)
  const process = world.cluster.of(1)
  const core = cores[1]
  if (process === undefined || core === undefined) throw new Error('pod 1 does not run')
  return { core, process }
}

/** What of 100 requests passes that are handled before the first packet, `afterMs` later. */
function admittedAtOnce({ core, process }: ReturnType<typeof stalled>, afterMs = 0): number {
  const monotonicMs = process.monotonicMs() + afterMs
  let admitted = 0
  for (let request = 0; request < 100; request++) {
    const decision = core.check(simulatedRule, [], 1, monotonicMs, resumedMs + afterMs)
    if (decision?.allowed) admitted++
  }
  return admitted
}

// At 100/s an even part is 50/s; 200 ms of it is what a pod may have in hand.
it('takes no more than its part of the rate out of a bucket that looks full', () => {
  const admitted = admittedAtOnce(stalled('rate: 40'))
  expect(admitted).toBeGreaterThan(5)
  expect(admitted).toBeLessThan(15)
})

it('is in plenty again after one round in which it heard of no use', () => {
  const pod = stalled('rate: 40')
  expect(admittedAtOnce(pod) + admittedAtOnce(pod, 101)).toBeGreaterThanOrEqual(99)
})

it('loses nothing when nobody else had asked for the key', () => {
  expect(admittedAtOnce(stalled('rate: 1, from: 8s, to: 9s'))).toBe(100)
})
