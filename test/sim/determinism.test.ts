import { describe, expect, it } from 'vitest'
import { resultJson, runScenario } from '../../src/simulator/run-scenario.js'
import { scenarioOf } from './fleet.js'

const eventful = scenarioOf(`
pods: 6
duration: 8s
rule: { limit: 500/1s, burst: 200 }
traffic:
  - { pods: all, rate: 150 }
  - { pods: [0], rate: 400, period: 2s, on: 500ms }
network: { latency: 2ms, jitter: 1ms, loss: 0.1, duplicate: 0.1, reorder: 0.1 }
events:
  - { at: 1s, partition: [[0, 1], [2, 3]], until: 2s }
  - { at: 2s, pause: [4], until: 3s }
  - { at: 3s, join: 1 }
  - { at: 4s, kill: [5] }
  - { at: 5s, leave: [1] }
  - { at: 6s, restart: [2] }
`)

describe('a simulation', () => {
  it('gives the same output byte for byte for the same seed', () => {
    const first = runScenario(eventful, { seed: 42 })
    const second = runScenario(eventful, { seed: 42 })
    expect(resultJson(second)).toBe(resultJson(first))
    expect(second.series).toEqual(first.series)
    expect(second.gossip).toEqual(first.gossip)
  })

  it('gives another output for another seed', () => {
    const first = runScenario(eventful, { seed: 42 })
    const second = runScenario(eventful, { seed: 43 })
    expect(resultJson(second)).not.toBe(resultJson(first))
  })
})
