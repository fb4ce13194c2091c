import { describe, expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import { fleetOf, scenarioOf } from './fleet.js'

function fleet(pods: number, parts: { network?: string; events?: string; rate: number }) {
  return scenarioOf(`
pods: ${pods}
duration: 8s
rule: { limit: 300/1s, burst: 300 }
traffic: [{ pods: all, rate: ${parts.rate} }]
network: { latency: 2ms, jitter: 1ms${parts.network ?? ''} }
${parts.events ?? ''}`)
}

describe.each([3, 10])('a fleet of %i pods', pods => {
  const twice = 600 / pods

  it('admits what one bucket would, within 1 %', () => {
    const result = runScenario(fleet(pods, { rate: twice }), { seed: 1 })
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.01)
    expect(result.jain).toBeGreaterThan(0.98)
  })

  it('denies nobody below the limit', () => {
    const result = runScenario(fleet(pods, { rate: twice * 0.4 }), { seed: 2 })
    expect(result.admitted).toBe(result.offered)
  })

  it('holds the limit while every fifth packet is lost, within 2 %', () => {
    const result = runScenario(fleet(pods, { rate: twice, network: ', loss: 0.2' }), { seed: 3 })
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.02)
  })

  it('gives no fresh bucket to a restarted pod, and forgets nothing of the old one', () => {
    const events = 'events: [{ at: 3s, restart: [0] }, { at: 5s, restart: [1] }]'
    const result = runScenario(fleet(pods, { rate: twice, events }), { seed: 4 })
    expect(Math.abs(result.ratio - 1)).toBeLessThan(0.02)
    // The two restarts cost at most what a pod consumed and could not send: far below a burst.
    expect(result.excessOverBurst).toBeLessThan(0.1)
  })

  it('sees a restarted pod again within three seconds, once', () => {
    const events = 'events: [{ at: 3s, restart: [0] }]'
    const { world, cores } = fleetOf(fleet(pods, { rate: twice, events }), 5)
    world.runUntil(6000)
    const alive = cores[1]!.members().filter(member => member.state === 'alive')
    expect(alive.filter(member => member.name === 'pod-0')).toHaveLength(1)
    expect(alive).toHaveLength(pods)
  })
})
