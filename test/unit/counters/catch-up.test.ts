/** A pod that stood still reads what the others used meanwhile (counters.md §3). */
import { describe, expect, it } from 'vitest'
import { writeSnapshot } from '../../../src/counters/snapshot.js'
import { CounterFleet } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** A bucket of 1000 at 1000/s that was empty at 2000; the process stood still until 7000. */
function stalledBucket() {
  const rules = rulesOf(ruleOf('api', { limit: limitOf(1000, 1000) }))
  const { table, limiter } = new CounterFleet({ pods: 1, rules }).pods[0]!
  const wallMs = 1_700_000_000_000
  expect(limiter.check('api', ['k'], 1000, 'check', 2000, wallMs)?.allowed).toBe(true)
  const { levels, slots } = table
  const slot = [...Array(64).keys()].find(one => slots.isTaken(one)) ?? -1
  const used = (atMs: number) => levels.published(slot, atMs, wallMs)
  const consume = (units: number, atMs: number) => levels.consume(slot, units, atMs, wallMs)
  levels.stalled(2000, 7000)
  return { levels, slot, used, consume }
}

describe('after a stall of five seconds', () => {
  it('what others used at the rate leaves the bucket as it was', () => {
    const { levels, slot, used } = stalledBucket()
    for (let packet = 0; packet < 10; packet++) levels.chargeNews(slot, 500, 7000, 7001)
    expect(used(7001)).toBeCloseTo(999, 0)
    expect(levels.debtForgiven).toBe(0)
  })

  it('own consumption that comes first does not lose the refill which the news paid for', () => {
    const { levels, slot, used, consume } = stalledBucket()
    consume(30, 7000)
    expect(used(7000)).toBeCloseTo(30, 5)
    for (let packet = 0; packet < 10; packet++) levels.chargeNews(slot, 500, 7001, 7001)
    expect(used(7001)).toBeCloseTo(1029, 0)
  })

  it('own consumption counts as of now, however long the stall', () => {
    const { used, consume } = stalledBucket()
    for (let request = 0; request < 10; request++) consume(100, 7000)
    expect(used(7000)).toBeCloseTo(1000, 5)
  })

  it('news is charged as of its own time again as soon as everybody has sent again', () => {
    const { levels, slot, used } = stalledBucket()
    levels.chargeNews(slot, 500, 7300, 7301)
    expect(used(7301)).toBeCloseTo(499, 0)
  })
})

describe('views that lie far apart', () => {
  it('come together within two seconds after a pod heard nothing of another', () => {
    const rules = rulesOf(ruleOf('api', { limit: limitOf(1000, 1000), burst: 100 }))
    const fleet = new CounterFleet({ pods: 5, rules })
    const admitted = [0, 0, 0, 0, 0]
    const gapMs = () => -Math.log(1 - fleet.random()) * 2.5
    admitted.forEach((_, pod) => {
      for (let atMs = gapMs(); atMs < 10_000; atMs += gapMs()) {
        fleet.at(atMs, () => {
          const allowed = fleet.request(pod, 'api', ['k'])
          if (allowed && fleet.nowMs >= 8000) admitted[pod]! += 1
        })
      }
    })
    fleet.at(2000, () => {
      fleet.cut = (from, to) => from === 0 && to === 1
    })
    fleet.at(6000, () => {
      fleet.cut = () => false
    })
    fleet.run(10_000)
    for (const one of admitted) expect(one).toBeGreaterThan(2 * 130)
    expect(admitted.reduce((sum, one) => sum + one, 0)).toBeLessThan(2000 + 100)
  })

  it('do not follow one that has never heard of what others use', () => {
    const rules = rulesOf(ruleOf('api', { limit: limitOf(1000, 1000), burst: 100 }))
    const fleet = new CounterFleet({ pods: 3, rules })
    const [, hears, misses] = fleet.pods
    const { slots, levels } = hears!.table
    const room = () => {
      const slot = [...Array(64).keys()].find(one => slots.isTaken(one)) ?? -1
      return 100 - levels.published(slot, fleet.nowMs, fleet.wallMs)
    }
    for (let atMs = 0; atMs < 4985; atMs += 20) {
      fleet.at(atMs, () => void fleet.request(atMs < 2000 ? 1 : 2, 'api', ['k']))
    }
    // Just before it is told, so that the bucket is not full again.
    for (let n = 0; n < 10; n++) fleet.at(4980, () => void fleet.request(2, 'api', ['k']))
    // The third pod begins when nothing reaches pod 2 any more, and empties the bucket.
    fleet.at(3000, () => {
      fleet.cut = (_from, to) => to === 2
    })
    for (let atMs = 3000; atMs < 5000; atMs += 0.25) {
      fleet.at(atMs, () => void fleet.request(0, 'api', ['k']))
    }
    fleet.run(4990)
    expect(room()).toBeLessThan(30)
    const { origin, table } = misses!
    const half = (from: number) => Number.parseInt(origin.slice(from, from + 8), 16)
    const balance = writeSnapshot({
      table,
      self: { hi: half(0), lo: half(8) },
      from: 0,
      count: table.slots.slotsMax,
      bytesMax: 1300,
      monotonicMs: fleet.nowMs,
      wallMs: fleet.wallMs,
      isCheckpoint: false,
    })
    expect(balance).not.toBeNull()
    hears!.replicator.handleMessage(balance!, fleet.nowMs, fleet.wallMs)
    expect(room()).toBeLessThan(30)
  })
})
