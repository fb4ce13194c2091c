import { describe, expect, it } from 'vitest'
import { CounterFleet, type FleetOptions, startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

const key = ['k']

function fleetOf(
  pods: number,
  rule: Parameters<typeof ruleOf>[1],
  more: Partial<FleetOptions> = {},
) {
  return new CounterFleet({ pods, rules: rulesOf(ruleOf('api', rule)), ...more })
}

/** Poisson arrivals of `perSecond` at each of `pods` between two moments; counts what is admitted. */
function load(
  fleet: CounterFleet,
  pods: readonly number[],
  perSecond: number,
  fromMs: number,
  untilMs: number,
) {
  const tally = { offered: 0, admitted: 0 }
  for (const pod of pods) {
    const gapMs = () => (-Math.log(1 - fleet.random()) * 1000) / perSecond
    for (let atMs = fromMs + gapMs(); atMs < untilMs; atMs += gapMs()) {
      fleet.at(atMs, () => {
        tally.offered++
        if (fleet.request(pod, 'api', key)) tally.admitted++
      })
    }
  }
  return tally
}

function remaining(fleet: CounterFleet, pod: number): number {
  const { limiter } = fleet.pods[pod]!
  return limiter.check('api', key, 0, 'check', fleet.nowMs, fleet.wallMs)!.remaining
}

/** The totals of every origin as each pod knows them, by pod. */
function totals(fleet: CounterFleet): string[] {
  return fleet.pods.map(pod => {
    const view = pod.limiter.key('api', key, fleet.nowMs, fleet.wallMs)
    const parts = view?.parts ?? []
    const lines = parts.map(({ origin, consumed, returned }) => `${origin} ${consumed} ${returned}`)
    return lines.sort().join('\n')
  })
}

describe('a fleet of limiters', () => {
  it('admits what one bucket would', () => {
    const fleet = fleetOf(3, { limit: limitOf(100, 1000) })
    const tally = load(fleet, [0, 1, 2], 100, 0, 8000)
    fleet.run(8000)
    expect(tally.admitted).toBeGreaterThan(900 * 0.98)
    expect(tally.admitted).toBeLessThanOrEqual(900)
  })

  it('denies nobody below the limit, wherever the traffic comes in', () => {
    const fleet = fleetOf(4, { limit: limitOf(200, 1000) })
    const tally = load(fleet, [2], 150, 0, 8000)
    fleet.run(8000)
    expect(tally.admitted).toBe(tally.offered)
  })

  it('knows the same totals everywhere a second after the last request, whatever the network does', () => {
    const fleet = fleetOf(
      5,
      { limit: limitOf(100, 1000) },
      { loss: 0.3, duplicate: 0.2, jitterMs: 8, latencyMs: 10 },
    )
    const tally = load(fleet, [0, 1, 2, 3, 4], 50, 0, 20_000)
    fleet.run(21_000)
    expect(new Set(totals(fleet)).size).toBe(1)
    expect(tally.admitted).toBeGreaterThan(2100 * 0.97)
    expect(tally.admitted).toBeLessThan(2100 * 1.03)
    for (const pod of fleet.pods) pod.table.assertInvariants()
  })

  it('gives a late-comer its part of a limit that another pod had to itself', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 1000) })
    const hog = load(fleet, [0], 200, 0, 3000)
    fleet.run(3000)
    const before = hog.admitted
    const both = [load(fleet, [0], 200, 3000, 8000), load(fleet, [1], 200, 3000, 8000)]
    fleet.run(8000)
    expect(before).toBeGreaterThan(380)
    expect(both[1]!.admitted / both[0]!.admitted).toBeGreaterThan(0.85)
    expect(both[1]!.admitted / both[0]!.admitted).toBeLessThan(1.18)
  })

  it('takes the first requests after a quiet time for the burst that they are', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 1000), burst: 10 })
    for (const atMs of [0, 3000]) {
      fleet.at(atMs, () => {
        for (let n = 0; n < 6; n++) fleet.request(0, 'api', key)
        fleet.request(1, 'api', key)
      })
    }
    fleet.run(2990)
    const { demand } = fleet.pods[1]!.table
    expect(demand.surge(0, fleet.nowMs)).toBe(0)
    fleet.run(3010)
    expect(demand.surge(0, fleet.nowMs)).toBeGreaterThan(0.05)
  })

  it('sees no emptier bucket where packets of a busy pod were lost', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 1000), burst: 10 })
    load(fleet, [0], 400, 0, 2000)
    fleet.cut = () => fleet.nowMs > 1000 && fleet.nowMs < 1150
    fleet.run(1170)
    const used = fleet.pods.map(pod => pod.table.levels.published(0, fleet.nowMs, fleet.wallMs))
    expect(used[0]).toBeGreaterThan(8)
    expect(Math.abs(used[0]! - used[1]!)).toBeLessThan(1)
  })

  it('works with a limit of less than a request per pod', () => {
    const slow = fleetOf(2, { limit: limitOf(1, 30_000) })
    const two = load(slow, [0, 1], 1, 0, 300_000)
    slow.run(300_000)
    expect(two.admitted).toBeGreaterThanOrEqual(9)
    expect(two.admitted).toBeLessThanOrEqual(11)
    const few = fleetOf(5, { limit: limitOf(3, 1000) })
    const five = load(few, [0, 1, 2, 3, 4], 3, 0, 20_000)
    few.run(20_000)
    expect(five.admitted).toBeGreaterThan(63 * 0.9)
    expect(five.admitted).toBeLessThanOrEqual(64)
  })

  it('tells 50 pods everything while each sends at most 600 packets a second', () => {
    const fleet = fleetOf(50, { limit: limitOf(1000, 1000), burst: 100 })
    load(
      fleet,
      Array.from({ length: 50 }, (_, pod) => pod),
      40,
      0,
      3000,
    )
    fleet.run(1000)
    const before = fleet.pods.map(({ packets, bytes }) => ({ packets, bytes }))
    fleet.run(3000)
    fleet.pods.forEach((pod, index) => {
      expect((pod.packets - before[index]!.packets) / 2).toBeLessThan(600)
      expect((pod.bytes - before[index]!.bytes) / 2).toBeLessThan(300_000)
    })
    fleet.run(4000)
    expect(new Set(totals(fleet)).size).toBe(1)
  })
})

describe('what is sent, and when', () => {
  it('says nothing of a key far from its limit', () => {
    const fleet = fleetOf(3, { limit: limitOf(1000, 1000) })
    fleet.request(0, 'api', key)
    fleet.run(1000)
    expect(fleet.pods[0]!.packets).toBe(0)
  })

  it('tells of a long window within a second, however far the limit is', () => {
    const fleet = fleetOf(3, { limit: limitOf(100, 3_600_000) })
    fleet.request(0, 'api', key)
    fleet.run(1100)
    expect(remaining(fleet, 1)).toBe(99)
  })

  it('tells thousands of keys bit by bit, what matters most before the rest', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 3_600_000) }, { keysMax: 4096 })
    for (let n = 0; n < 3000; n++) fleet.request(0, 'api', [`slow ${n}`])
    fleet.run(1020)
    const { replicator } = fleet.pods[0]!
    expect(replicator.entriesOut).toBeGreaterThan(300)
    expect(replicator.entriesOut).toBeLessThan(3000)
    fleet.request(0, 'api', ['urgent'], 90)
    const seen = () =>
      fleet.pods[1]!.limiter.check('api', ['urgent'], 0, 'check', fleet.nowMs, fleet.wallMs)!
    fleet.run(1034)
    expect(seen().remaining).toBe(10)
    expect(fleet.pods[1]!.table.slots.used).toBeLessThan(3001)
    fleet.run(2000)
    expect(fleet.pods[1]!.table.slots.used).toBe(3001)
  })

  it('tells everything at once when a pod leaves', () => {
    const fleet = fleetOf(3, { limit: limitOf(100_000, 3_600_000) })
    fleet.request(0, 'api', key, 7)
    fleet.flush(0)
    fleet.run(10)
    expect(remaining(fleet, 2)).toBe(99_993)
  })

  it('does nothing on its own when there is nobody to tell', () => {
    const fleet = fleetOf(1, { limit: limitOf(10, 1000) })
    fleet.request(0, 'api', key)
    expect(fleet.pods[0]!.replicator.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('pods that come and go', () => {
  it('gives a joiner no full bucket for an exhausted key', () => {
    const fleet = fleetOf(3, { limit: limitOf(100, 60_000) })
    fleet.cut = (_from, to) => to === 2
    for (let n = 0; n < 100; n++) fleet.request(n % 2, 'api', key)
    fleet.run(500)
    fleet.cut = () => false
    fleet.exchange(0, 2)
    expect(fleet.pods[2]!.replicator.synced).toBe(true)
    expect(remaining(fleet, 2)).toBe(0)
    expect(fleet.request(2, 'api', key)).toBe(false)
  })

  it('charges a joiner nothing twice when news follows the state it pulled', () => {
    const fleet = fleetOf(3, { limit: limitOf(100, 60_000) })
    fleet.cut = (_from, to) => to === 2
    for (let n = 0; n < 40; n++) fleet.request(n % 2, 'api', key)
    fleet.run(500)
    fleet.cut = () => false
    fleet.exchange(0, 2)
    fleet.exchange(1, 2)
    for (let n = 0; n < 20; n++) fleet.request(n % 2, 'api', key)
    fleet.run(2000)
    expect(remaining(fleet, 2)).toBe(remaining(fleet, 0))
    expect(remaining(fleet, 2)).toBeGreaterThanOrEqual(40)
    expect(remaining(fleet, 2)).toBeLessThanOrEqual(44)
  })

  it('still counts what a departed pod consumed, and forgets its demand at once', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 60_000) })
    load(fleet, [0], 100, 0, 500)
    fleet.run(600)
    const left = remaining(fleet, 1)
    const [gone, stays] = [fleet.pods[0]!, fleet.pods[1]!]
    stays.replicator.originDeparted(gone.origin, fleet.nowMs)
    stays.replicator.setPeers([], 1, fleet.nowMs)
    expect(left).toBeLessThan(70)
    expect(remaining(fleet, 1)).toBe(left)
    expect(stays.table.demand.others(0, fleet.nowMs)).toBe(0)
  })

  it('takes the demand of a departed pod out of thousands of counters bit by bit', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 3_600_000) }, { keysMax: 4096 })
    for (let n = 0; n < 3000; n++) fleet.request(0, 'api', [`key ${n}`], 20)
    fleet.run(1000)
    const { replicator, table } = fleet.pods[1]!
    const asked = () => {
      let count = 0
      for (let slot = 0; slot < 4096; slot++)
        if (table.slots.isTaken(slot) && (table.slots.othersDemand[slot] as number) > 0) count++
      return count
    }
    expect(asked()).toBe(3000)
    replicator.originDeparted(fleet.pods[0]!.origin, fleet.nowMs)
    expect(asked()).toBeGreaterThan(2000)
    fleet.wake(1)
    fleet.run(1100)
    expect(asked()).toBe(0)
  })

  it('frees what a departed pod had in flight', () => {
    const fleet = fleetOf(2, { limit: null, concurrency: 10 })
    for (let n = 0; n < 10; n++) fleet.request(0, 'api', key)
    fleet.run(500)
    expect(fleet.request(1, 'api', key)).toBe(false)
    fleet.pods[1]!.replicator.originDeparted(fleet.pods[0]!.origin, fleet.nowMs)
    expect(fleet.request(1, 'api', key)).toBe(true)
  })

  it('survives the restart of every pod with a checkpoint', () => {
    const rules = { limit: limitOf(100, 3_600_000) }
    const fleet = fleetOf(1, rules)
    for (let n = 0; n < 60; n++) fleet.request(0, 'api', key)
    fleet.run(1000)
    const saved = fleet.pods[0]!.replicator.exportTotals(fleet.nowMs, fleet.wallMs)
    const next = fleetOf(1, rules, { seed: 9 })
    next.nowMs = 5
    const later = startWallMs + 61_000
    const pod = next.pods[0]!
    expect(pod.replicator.importTotals(saved, 5, later)).toBe(true)
    const decision = pod.limiter.check('api', key, 0, 'check', 5, later)!
    // 60 s refill 1.67 of the 60 units used.
    expect(decision.remaining).toBe(41)
    expect(pod.replicator.importTotals(Uint8Array.of(1, 2, 3), 5, later)).toBe(false)
  })
})

describe('a split fleet', () => {
  const sides = (from: number, to: number) => from < 3 === to < 3

  /** 3/2 split from 2 s to 6 s under three times the limit; admitted by each side during 3..6 s. */
  function split(onPartition: 'open' | 'share' | 'closed') {
    const fleet = fleetOf(5, { limit: limitOf(100, 1000), onPartition })
    load(fleet, [0, 1, 2, 3, 4], 60, 0, 2000)
    fleet.run(2000)
    fleet.cut = (from, to) => !sides(from, to)
    fleet.setPeers(sides)
    load(fleet, [0, 1, 2, 3, 4], 60, 2000, 3000)
    fleet.run(3000)
    const major = load(fleet, [0, 1, 2], 60, 3000, 6000)
    const minor = load(fleet, [3, 4], 60, 3000, 6000)
    fleet.run(6000)
    fleet.cut = () => false
    fleet.setPeers(() => true)
    fleet.exchange(0, 4)
    fleet.exchange(1, 3)
    load(fleet, [0, 1, 2, 3, 4], 60, 6000, 8000)
    fleet.run(8000)
    const healed = load(fleet, [0, 1, 2, 3, 4], 60, 8000, 10_000)
    fleet.run(10_000)
    const views = [0, 1, 2, 3, 4].map(pod => {
      const { table } = fleet.pods[pod]!
      return table.used(0, fleet.nowMs, fleet.wallMs)
    })
    return { major: major.admitted, minor: minor.admitted, healed: healed.admitted, views }
  }

  it('pools each side its part under `share`', () => {
    const { major, minor, healed, views } = split('share')
    expect(major).toBeGreaterThan(170)
    expect(major).toBeLessThan(190)
    expect(minor).toBeGreaterThan(112)
    expect(minor).toBeLessThan(128)
    expect(healed).toBeGreaterThan(190)
    expect(healed).toBeLessThan(210)
    expect(Math.max(...views) - Math.min(...views)).toBeLessThan(8)
  })

  it('gives each side the full limit under `open`, and nobody an outage afterwards', () => {
    const { major, minor, healed, views } = split('open')
    expect(major).toBeGreaterThan(285)
    expect(minor).toBeGreaterThan(285)
    expect(healed).toBeGreaterThan(185)
    expect(healed).toBeLessThan(210)
    expect(Math.max(...views) - Math.min(...views)).toBeLessThan(8)
  })

  it('gives each pod its own part only under `closed`', () => {
    const { major, minor, healed } = split('closed')
    expect(major).toBeLessThanOrEqual(190)
    expect(minor).toBeLessThanOrEqual(124)
    expect(minor).toBeGreaterThan(90)
    expect(healed).toBeGreaterThan(185)
    expect(healed).toBeLessThan(215)
  })

  it('gives nothing to keys first seen during a split under `closed`', () => {
    const fleet = fleetOf(5, { limit: limitOf(100, 1000), onPartition: 'closed' })
    fleet.run(1000)
    fleet.setPeers(sides)
    expect(fleet.request(0, 'api', ['new'])).toBe(false)
  })
})

describe('windows and logs over a fleet', () => {
  for (const algorithm of ['fixed-window', 'sliding-window', 'sliding-log'] as const)
    it(`${algorithm}: holds one limit over five pods`, () => {
      const fleet = fleetOf(5, { limit: limitOf(100, 2000), algorithm })
      const tally = load(fleet, [0, 1, 2, 3, 4], 20, 0, 20_000)
      fleet.run(20_000)
      expect(tally.admitted).toBeLessThanOrEqual(1000 * 1.03)
      expect(tally.admitted).toBeGreaterThan(1000 * 0.9)
      for (const pod of fleet.pods) pod.table.assertInvariants()
    })

  it('a refund at one pod is room at another', () => {
    const fleet = fleetOf(2, { limit: limitOf(10, 60_000), algorithm: 'fixed-window' })
    for (let n = 0; n < 10; n++) fleet.request(0, 'api', key)
    fleet.run(1000)
    expect(remaining(fleet, 1)).toBe(0)
    fleet.request(0, 'api', key, -4)
    fleet.run(3000)
    expect(remaining(fleet, 1)).toBe(4)
  })

  it('a leaky bucket drains at the rate, however many pods fill it', () => {
    const rule = {
      limit: limitOf(50, 1000),
      algorithm: 'leaky-bucket' as const,
      queue: 20,
      maxWaitMs: 2000,
    }
    const fleet = fleetOf(3, rule)
    const tally = load(fleet, [0, 1, 2], 50, 0, 10_000)
    fleet.run(10_000)
    expect(tally.admitted).toBeGreaterThan(500 * 0.97)
    expect(tally.admitted).toBeLessThan(530 * 1.02)
  })
})

describe('hostile and foreign messages', () => {
  it('are ignored and counted', () => {
    const fleet = fleetOf(2, { limit: limitOf(10, 1000) })
    const { replicator } = fleet.pods[0]!
    for (const bytes of [[], [1], [0x67, 0x76], [0x67, 0x76, 9, 1, 0], [0x67, 0x76, 1, 1, 0, 77]]) {
      replicator.handleMessage(Uint8Array.from(bytes), 0, startWallMs)
    }
    expect(replicator.messagesIgnored).toBe(5)
  })

  it('cannot put a key further into debt than one burst', () => {
    const fleet = fleetOf(2, { limit: limitOf(10, 1000) })
    fleet.request(0, 'api', key)
    fleet.request(1, 'api', key)
    fleet.run(1000)
    const liar = fleet.pods[1]!.table
    liar.slots.consumed[0] = 1e12
    fleet.request(1, 'api', key)
    fleet.run(1100)
    const honest = fleet.pods[0]!.table
    expect(honest.used(0, fleet.nowMs, fleet.wallMs)).toBeLessThanOrEqual(20)
    expect(honest.used(0, fleet.nowMs, fleet.wallMs)).toBeGreaterThan(10)
    expect(fleet.pods[0]!.replicator.messagesIgnored).toBeGreaterThan(0)
  })
})

describe('a pod that stood still', () => {
  it('does not spend a bucket that only looks full before it has read its news', () => {
    const fleet = fleetOf(2, { limit: limitOf(100, 1000) })
    load(fleet, [0, 1], 100, 0, 2000)
    fleet.run(2000)
    const stalled = fleet.pods[1]!
    const ask = (atMs: number) =>
      stalled.limiter.check('api', key, 1, 'check', atMs, startWallMs + atMs)!.allowed
    // Three seconds pass unnoticed; then a hundred requests that waited come first.
    stalled.limiter.stalled(2000, 5000)
    const allowed = Array.from({ length: 100 }, () => ask(5000)).filter(Boolean).length
    // Its even part of the rate over the last 200 ms.
    expect(allowed).toBeLessThanOrEqual(12)
    const later = Array.from({ length: 100 }, () => ask(5200)).filter(Boolean).length
    expect(later).toBeGreaterThan(50)
  })
})
