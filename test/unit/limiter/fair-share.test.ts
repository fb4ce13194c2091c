import { expect, test } from 'vitest'
import {
  burstReserveUnits,
  calmLoad,
  driftUnits,
  entitlementRate,
  firstEntitlement,
  guardUnits,
  isBurst,
  plentyUnits,
  reserveUnits,
  restUnits,
  surplusFloor,
} from '../../../src/limiter/fair-share.js'

test.each([
  { capacity: 1000, others: 0, lag: 5, guard: 0, why: 'nobody else asks' },
  { capacity: 1000, others: 0.001, lag: 5, guard: 1, why: 'at least one unit' },
  { capacity: 1000, others: 1, lag: 5, guard: 20, why: 'what they ask for in 20 ms' },
  { capacity: 1000, others: 1, lag: 40, guard: 80, why: 'or in two news lags' },
  { capacity: 10, others: 1, lag: 5, guard: 5, why: 'at most half of the bucket' },
])('guard is $guard of $capacity: $why', ({ capacity, others, lag, guard }) => {
  expect(guardUnits(capacity, others, lag)).toBe(guard)
})

test.each([
  [1000, 20, 250],
  [1000, 200, 600],
  [10, 5, 9],
])('with %i units and a guard of %i scarcity ends above %i', (capacity, guard, plenty) => {
  expect(plentyUnits(capacity, guard)).toBe(plenty)
})

test('the reserve covers what is unseen at the rate, a quarter of the bucket at most', () => {
  const news = { lagMs: 10, pods: 5 }
  expect(reserveUnits(1000, 1, 1, 3, news)).toBeCloseTo(12 + 2)
  expect(reserveUnits(1000, 1, 1, 0.5, news)).toBeCloseTo(6 + 2)
  expect(reserveUnits(20, 1, 1, 3, news)).toBe(5)
})

test('the reserve never makes a cost impossible that the bucket can hold', () => {
  expect(reserveUnits(1, 1, 1, 3, { lagMs: 10, pods: 50 })).toBe(0)
  expect(reserveUnits(10, 9, 1, 3, { lagMs: 10, pods: 50 })).toBe(1)
})

test('a surplus above the floor fills entitlement faster, a lack slows it down, never below nothing', () => {
  expect(entitlementRate(1, 50, true)).toBe(1.5)
  expect(entitlementRate(1, 50, false)).toBe(1)
  expect(entitlementRate(1, -500, true)).toBe(0)
  expect(surplusFloor(1000, 1)).toBe(5)
  expect(surplusFloor(2, 1)).toBe(0.5)
})

test('a few units of surplus do not drown the shares of a slow limit', () => {
  // 100 a minute: one unit above the floor adds a third to the rate, not six times the rate.
  const rate = 100 / 60_000
  expect(entitlementRate(rate, 1, true)).toBeCloseTo((4 / 3) * rate)
})

test('what shares leave in the bucket is not plenty for a pod that comes by', () => {
  const news = { lagMs: 2, pods: 50 }
  const slow = restUnits(100, 1, 100 / 60_000, 0.006, news)
  expect(slow).toBeGreaterThan(3)
  expect(slow).toBeGreaterThan(guardUnits(100, 0.006, 2))
  expect(restUnits(10, 1, 0.1, 0.2, news)).toBe(1.25)
  expect(restUnits(10, 1, 0, 0.2, news)).toBe(0)
  for (const capacity of [1, 10, 100, 1000]) {
    const rest = restUnits(capacity, 1, 1, 2, news)
    expect(rest).toBeLessThan(plentyUnits(capacity, guardUnits(capacity, 2, 2)))
  }
})

test('a pod that has hardly asked yet may go first, a busy one may not', () => {
  expect(firstEntitlement(1, 0)).toBe(1)
  expect(firstEntitlement(1, 1 / 300)).toBe(1)
  expect(firstEntitlement(1, 1)).toBeCloseTo(0.02)
})

test('the fewer requests tell of a demand, the larger it may look before shares decide', () => {
  expect(calmLoad(10, 0.1)).toBeCloseTo(0.8 + 6 / Math.sqrt(60))
  expect(calmLoad(1, 0.001)).toBe(1.6)
  expect(calmLoad(10_000, 10)).toBe(1)
})

test('unused entitlement may draw the reserve of a slow bucket down by what views drift apart', () => {
  const perMinute = 100 / 60_000
  expect(driftUnits(100, perMinute, -1)).toBe(0)
  expect(driftUnits(100, perMinute, 0.5)).toBe(0.5)
  expect(driftUnits(100, perMinute, 30)).toBe(2)
  expect(driftUnits(100, 0.1, 30)).toBe(0)
  expect(driftUnits(10, 0.1, 30)).toBe(0)
})

test('what the others ask for at once is a burst when chance does not explain it', () => {
  const perMs = (units: number) => units / 20
  expect(isBurst(perMs(0.1), perMs(0.5))).toBe(false)
  expect(isBurst(perMs(0.1), perMs(1))).toBe(true)
  expect(isBurst(perMs(1.6), perMs(2.9))).toBe(false)
  expect(isBurst(perMs(1.6), perMs(3))).toBe(true)
  expect(isBurst(0, 0)).toBe(false)
})

test('a sudden burst raises the reserve of a small bucket', () => {
  const news = { lagMs: 2, pods: 50 }
  const kept = (
    surge: number,
    over: { capacity?: number; cost?: number; reserve?: number } = {},
  ) => {
    const { capacity = 10, cost = 1, reserve = 1 } = over
    return burstReserveUnits(capacity, cost, 0.1, reserve, { others: 0.05, surge }, news)
  }
  expect(kept(0)).toBe(0)
  expect(kept(0.05)).toBe(0)
  // 12 ms unseen of 0.1 units per millisecond, one and a half times, in a bucket of 100 ms.
  expect(kept(0.15)).toBeCloseTo(12 * 0.1 * 1.5 * 0.8)
  expect(kept(9)).toBe(3)
  expect(kept(9, { reserve: 4 })).toBe(0)
  expect(kept(9, { cost: 8 })).toBe(1)
  expect(kept(9, { capacity: 1, reserve: 0 })).toBe(0)
  expect(kept(9, { capacity: 50 })).toBe(0)
})
