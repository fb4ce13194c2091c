/** Every algorithm over a fleet under five times its limit: what one limiter admits that sees it all. */
import { expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { scenarioOf } from './fleet.js'

const rules = [
  'limit: 1000/10s, algorithm: fixed-window',
  'limit: 1000/10s, algorithm: sliding-window',
  'limit: 1000/10s, algorithm: sliding-log',
  'limit: 100/10s, algorithm: sliding-log',
  'limit: 1000/10s, algorithm: leaky-bucket, queue: 20, maxWait: 2s',
]

it.each(rules)('%s', rule => {
  const scenario = scenarioOf(`
pods: 5
duration: 31s
rule: { ${rule} }
traffic: [{ pods: all, rate: 100 }]
network: { latency: 2ms, jitter: 1ms }
`)
  const { ratio, jain } = runScenario(scenario, { seed: 1 })
  expect(Math.abs(ratio - 1)).toBeLessThanOrEqual(0.03)
  expect(jain).toBeGreaterThanOrEqual(0.95)
})
