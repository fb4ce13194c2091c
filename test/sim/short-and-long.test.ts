/** Limits far below one request per pod and far above: no pod's share is ever rounded to nothing. */
import { expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { scenarioOf } from './fleet.js'

it('3/s over five pods: one bucket’s worth, and every pod has a part in it', () => {
  const result = runScenario(
    scenarioOf(`
pods: 5
duration: 60s
rule: { limit: 3/1s, burst: 3 }
traffic: [{ pods: all, rate: 1.2 }]
network: { latency: 2ms, jitter: 1ms }
`),
    { seed: 1 },
  )
  expect(Math.abs(result.ratio - 1)).toBeLessThan(0.05)
  for (const { admitted, offered } of result.perPod) {
    expect(admitted / offered).toBeGreaterThan(0.2)
  }
})

it('1/30s over two pods: one request each half minute, from either', () => {
  const result = runScenario(
    scenarioOf(`
pods: 2
duration: 900s
rule: { limit: 1/30s, burst: 1 }
traffic: [{ pods: all, rate: 0.2 }]
network: { latency: 2ms, jitter: 1ms }
`),
    { seed: 1 },
  )
  expect(result.admitted).toBeGreaterThanOrEqual(24)
  expect(result.admitted).toBeLessThanOrEqual(31)
  for (const { admitted } of result.perPod) expect(admitted).toBeGreaterThanOrEqual(3)
})

it('100000/s over fifty pods: one bucket’s worth, and every pod has a part in it', () => {
  const result = runScenario(
    scenarioOf(`
pods: 50
duration: 1s
rule: { limit: 100000/1s, burst: 10000 }
traffic: [{ pods: all, rate: 4000 }]
network: { latency: 2ms, jitter: 1ms }
`),
    { seed: 1 },
  )
  expect(Math.abs(result.ratio - 1)).toBeLessThan(0.03)
  expect(result.jain).toBeGreaterThan(0.95)
  for (const { admitted } of result.perPod) expect(admitted).toBeGreaterThan(500)
})
