import { describe, expect, it } from 'vitest'
import { readBundle, writeBundle } from '../../../src/counters/state-bundle.js'
import { CounterFleet } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

const hour = 3_600_000

function remaining(fleet: CounterFleet, pod: number, key: string): number {
  const { limiter } = fleet.pods[pod]!
  return limiter.check('api', [key], 0, 'check', fleet.nowMs, fleet.wallMs)!.remaining
}

describe('a push/pull', () => {
  it('charges a pod nothing for its own consumption that comes back to it, however often', () => {
    const fleet = new CounterFleet({
      pods: 2,
      rules: rulesOf(ruleOf('api', { limit: limitOf(100, hour) })),
    })
    for (let n = 0; n < 60; n++) fleet.request(0, 'api', ['k'])
    fleet.run(2000)
    for (let n = 0; n < 5; n++) fleet.exchange(0, 1)
    expect([remaining(fleet, 0, 'k'), remaining(fleet, 1, 'k')]).toEqual([40, 40])
  })

  it('adds own consumption that the other has not heard of to what it tells', () => {
    const fleet = new CounterFleet({
      pods: 3,
      rules: rulesOf(ruleOf('api', { limit: limitOf(100, hour) })),
    })
    fleet.cut = () => true
    for (let n = 0; n < 30; n++) fleet.request(0, 'api', ['k'])
    for (let n = 0; n < 20; n++) fleet.request(1, 'api', ['k'])
    fleet.exchange(0, 1)
    expect([remaining(fleet, 0, 'k'), remaining(fleet, 1, 'k')]).toEqual([50, 50])
    fleet.exchange(1, 2)
    fleet.exchange(0, 2)
    expect(remaining(fleet, 2, 'k')).toBe(50)
  })

  it('brings over a table of thousands of keys part by part, the scarce ones first', () => {
    const rules = rulesOf(ruleOf('api', { limit: limitOf(10, hour) }))
    const fleet = new CounterFleet({ pods: 2, rules, keysMax: 8192 })
    fleet.cut = () => true
    for (let n = 0; n < 5000; n++) fleet.request(0, 'api', [`key-${n}`], 1 + (n % 10))
    fleet.run(10_000)
    fleet.cut = () => false
    const state = fleet.pods[0]!.replicator.localState(true, fleet.nowMs, fleet.wallMs, 1 << 22)
    expect(readBundle(state)?.parts.length).toBeGreaterThan(10)
    fleet.pods[1]!.replicator.mergeRemoteState(state, true, fleet.nowMs, fleet.wallMs)
    expect(fleet.pods[1]!.table.slots.used).toBeLessThan(1000)
    fleet.wake(1)
    fleet.run(11_000)
    for (let n = 0; n < 5000; n++) {
      expect([n, remaining(fleet, 1, `key-${n}`)]).toEqual([n, remaining(fleet, 0, `key-${n}`)])
    }
    fleet.pods[1]!.table.assertInvariants()
  })

  it('never grows beyond its bound, and comes to everything in turn', () => {
    const rules = rulesOf(ruleOf('api', { limit: limitOf(10, hour) }))
    const fleet = new CounterFleet({ pods: 2, rules, keysMax: 8192 })
    fleet.cut = () => true
    for (let n = 0; n < 4000; n++) fleet.request(0, 'api', [`key-${n}`])
    fleet.run(10_000)
    const bytesMax = 40_000
    for (let round = 0; round < 30; round++) {
      const { replicator } = fleet.pods[0]!
      const state = replicator.localState(false, fleet.nowMs, fleet.wallMs, bytesMax)
      expect(state.length).toBeLessThanOrEqual(bytesMax)
      fleet.pods[1]!.replicator.mergeRemoteState(state, false, fleet.nowMs, fleet.wallMs)
      fleet.wake(1)
      fleet.run(fleet.nowMs + 500)
    }
    expect(fleet.pods[1]!.table.slots.used).toBe(4000)
  })
})

describe('a young pod', () => {
  const rules = rulesOf(ruleOf('api', { limit: limitOf(10, hour) }))
  const bytesMax = 40_000

  /** Pulls as the core does, for `lengthMs`; how often. */
  function pull(fleet: CounterFleet, from: number, to: number, lengthMs: number): number {
    const { replicator } = fleet.pods[to]!
    let pulls = 0
    for (const untilMs = fleet.nowMs + lengthMs; fleet.nowMs < untilMs; ) {
      fleet.run(fleet.nowMs + 10)
      if (!replicator.takePull(fleet.nowMs)) continue
      pulls++
      const state = fleet.pods[from]!.replicator.localState(
        false,
        fleet.nowMs,
        fleet.wallMs,
        bytesMax,
      )
      replicator.mergeRemoteState(state, false, fleet.nowMs, fleet.wallMs)
      fleet.wake(to)
    }
    return pulls
  }

  it('asks on until it knows a table that is too large for one state, and no longer', () => {
    const fleet = new CounterFleet({ pods: 2, rules, keysMax: 8192 })
    fleet.cut = () => true
    for (let n = 0; n < 4000; n++) fleet.request(0, 'api', [`key-${n}`])
    fleet.run(10_000)
    const { replicator, table } = fleet.pods[1]!
    const first = fleet.pods[0]!.replicator.localState(true, fleet.nowMs, fleet.wallMs, bytesMax)
    replicator.mergeRemoteState(first, true, fleet.nowMs, fleet.wallMs)
    fleet.wake(1)
    const pulls = pull(fleet, 0, 1, 9000)
    expect(table.slots.used).toBe(4000)
    expect(pulls).toBeGreaterThan(2)
    expect(pulls).toBeLessThan(20)
    expect(pull(fleet, 0, 1, 9000)).toBe(0)
  })

  it('gives up when nobody answers', () => {
    const fleet = new CounterFleet({ pods: 2, rules, keysMax: 8192 })
    fleet.cut = () => true
    for (let n = 0; n < 4000; n++) fleet.request(0, 'api', [`key-${n}`])
    fleet.run(10_000)
    const { replicator } = fleet.pods[1]!
    const first = fleet.pods[0]!.replicator.localState(true, fleet.nowMs, fleet.wallMs, bytesMax)
    replicator.mergeRemoteState(first, true, fleet.nowMs, fleet.wallMs)
    fleet.wake(1)
    let asked = 0
    for (let n = 0; n < 10_000; n++) {
      fleet.run(fleet.nowMs + 10)
      if (replicator.takePull(fleet.nowMs)) asked++
    }
    expect(asked).toBe(32)
  })
})

describe('a bundle', () => {
  it('gives back the parts it was made of, and leaves a cut one out', () => {
    const parts = [
      { bytes: Uint8Array.of(1, 2, 3), heldMs: 0 },
      { bytes: Uint8Array.of(), heldMs: 7.5 },
      { bytes: Uint8Array.of(9), heldMs: 1000 },
    ]
    const bytes = writeBundle(parts, 1000, 2)
    const read = readBundle(bytes)
    expect(read?.parts.map(part => ({ ...part, bytes: Uint8Array.from(part.bytes) }))).toEqual(
      parts,
    )
    expect(read?.ends).toBe(2)
    expect(readBundle(writeBundle(parts, 1000, 0))?.ends).toBe(0)
    expect(readBundle(bytes.subarray(0, bytes.length - 1))?.parts).toHaveLength(2)
    expect(readBundle(Uint8Array.of(1, 2, 3))).toBeNull()
  })
})
