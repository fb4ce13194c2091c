import { expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { scenarioOf } from './fleet.js'

it('two hundred pods hold one limit', { timeout: 180_000 }, () => {
  const scenario = scenarioOf(`
pods: 200
duration: 1500ms
rule: { limit: 1000/1s, burst: 1000 }
traffic: [{ pods: all, rate: 10 }]
network: { latency: 2ms, jitter: 1ms }
`)
  const result = runScenario(scenario, { seed: 1 })
  expect(result.perPod).toHaveLength(200)
  expect(Math.abs(result.ratio - 1)).toBeLessThan(0.06)
})
