import { expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { scenarioOf } from './fleet.js'

// A fifth of the scenario `thousand-keys`, until every bucket has been empty for two seconds.
it('fifty pods hold the limits of two hundred keys that all of them touch', {
  timeout: 180_000,
}, () => {
  const scenario = scenarioOf(`
pods: 50
duration: 4s
rule: { limit: 20/1s, burst: 20, key: ["header:x-client"] }
traffic: [{ pods: all, rate: 120, keys: 200 }]
network: { latency: 2ms, jitter: 1ms }
`)
  const result = runScenario(scenario, { seed: 1 })
  expect(Math.abs(result.ratio - 1)).toBeLessThan(0.005)
  expect(result.excessOverBurst).toBeLessThan(0.35)
  expect(result.jain).toBeGreaterThan(0.98)
  expect(result.packetsPerPodPerSecond).toBeLessThan(1800)
  expect(result.bytesPerPodPerSecond).toBeLessThan(900_000)
})
