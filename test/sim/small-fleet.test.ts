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

/** Three processes on one machine, unevenly loaded, as the demo runs them. */
function uneven(events: string) {
  return scenarioOf(`
pods: 3
duration: 10s
rule: { limit: 100/1s, burst: 100 }
traffic: [{ pods: [0], rate: 163.6 }, { pods: [1], rate: 81.8 }, { pods: [2], rate: 54.5 }]
network: { latency: 0.5ms, jitter: 0.4ms }
${events}`)
}

describe.each([
  ['from the start', ''],
  ['after a restart', 'events: [{ at: 1.5s, restart: [0] }]'],
])('three uneven pods on one machine, %s', (_, events) => {
  it.each([3, 6, 9])('admit the same part of what each is asked for, seed %i', seed => {
    const { perPod, ratio } = runScenario(uneven(events), { seed })
    const parts = perPod.map(pod => pod.admitted / pod.offered)
    expect(Math.min(...parts) / Math.max(...parts)).toBeGreaterThan(0.88)
    expect(Math.abs(ratio - 1)).toBeLessThan(0.01)
  })
})

it('bursts from all pods at once exceed a small bucket by little', () => {
  const text = `
pods: 10
duration: 8s
rule: { limit: 100/1s, burst: 10 }
traffic: [{ pods: all, rate: 1 }, { pods: all, rate: 49, period: 2s, on: 500ms }]
network: { latency: 2ms, jitter: 1ms }`
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8]
  const found = seeds.map(seed => runScenario(scenarioOf(text), { seed }).excessOverBurst)
  // 0.47 and 0.76 where nothing is kept back for what others take unseen.
  expect(found.reduce((sum, excess) => sum + excess, 0) / found.length).toBeLessThan(0.35)
  expect(Math.max(...found)).toBeLessThan(0.5)
})

it('views that differ starve nobody while the demand is just over the limit', () => {
  const text = `
pods: 5
duration: 10s
rule: { limit: 100/1s, burst: 10 }
traffic: [{ pods: all, rate: 26 }]
network: { latency: 2ms, jitter: 1ms }`
  const { jain, ratio } = runScenario(scenarioOf(text), { seed: 6 })
  expect(jain).toBeGreaterThan(0.994)
  expect(ratio).toBeGreaterThan(0.99)
})
