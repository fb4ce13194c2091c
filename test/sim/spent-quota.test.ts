/** The end of a quota: what the limit grants is given out, whatever was asked for on the way. */
import { describe, expect, it } from 'vitest'
import { simulatedRule } from '../../src/simulator/core-node.js'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { fleetOf, scenarioOf } from './fleet.js'

const network = 'network: { latency: 2ms, jitter: 1ms }'

// From the first second on: at midnight pods whose clocks are late still count the day before.
describe.each([
  { limit: '1000/day', pods: 5, rate: 200, above: 0.001 },
  { limit: '1000/day', pods: 5, rate: 1000, above: 0.001 },
  { limit: '1000/day', pods: 20, rate: 25, above: 0.001 },
  { limit: '100/day', pods: 5, rate: 40, above: 0 },
  { limit: '100/day', pods: 5, rate: 4, above: 0 },
  // A tenth of the quota is asked for within the first news lag.
  { limit: '100/day', pods: 5, rate: 200, above: 0.05 },
])('$limit, $pods pods at $rate/s each', ({ limit, pods, rate, above }) => {
  const scenario = (traffic: string) =>
    scenarioOf(`
pods: ${pods}
duration: 12s
rule: { limit: ${limit} }
traffic: [${traffic}]
${network}
`)

  it('give all of it and no more, in even parts', () => {
    const { ratio, jain } = runScenario(
      scenario(`{ pods: all, rate: ${rate}, from: 1s, to: 8s }`),
      { seed: 1 },
    )
    expect(ratio).toBeGreaterThanOrEqual(0.999)
    expect(ratio).toBeLessThanOrEqual(1 + above)
    expect(jain).toBeGreaterThanOrEqual(0.93)
  })

  it('leave what they could not use to a client that is alone afterwards', () => {
    const { ratio } = runScenario(
      scenario(
        `{ pods: all, rate: ${rate}, from: 1s, to: 1400ms }, { pods: [0], rate: 200, from: 9s }`,
      ),
      { seed: 1 },
    )
    expect(ratio).toBeGreaterThanOrEqual(0.999)
    expect(ratio).toBeLessThanOrEqual(1 + above)
  })
})

it('all that is left goes to one request of a lone client, asked for a second after the others', () => {
  const scenario = scenarioOf(`
pods: 5
duration: 20s
rule: { limit: 10000/day }
traffic: [{ pods: [0], rate: 0.001, from: 19s }]
${network}
`)
  const { world, cores } = fleetOf(scenario, 3)
  const ask = (pod: number, cost: number) => {
    let allowed = false
    world.cluster.running()[pod]!.step((_, monotonicMs, wallMs) => {
      const core = cores[pod]!
      allowed = core.check(simulatedRule, ['global'], cost, monotonicMs, wallMs)?.allowed ?? false
    })
    return allowed
  }
  for (let turn = 0; turn < 60; turn++) {
    world.runUntil(1000 + 20 * turn)
    expect(ask(turn % 5, 100)).toBe(true)
  }
  for (const pod of [1, 2, 3, 4]) expect(ask(pod, 5000)).toBe(false)
  world.runUntil(3200)
  expect(ask(0, 4001)).toBe(false)
  expect(ask(0, 4000)).toBe(true)
  world.runUntil(3400)
  expect([0, 1, 2, 3, 4].filter(pod => ask(pod, 1))).toEqual([])
})
