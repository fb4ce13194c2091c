import { expect, test } from 'vitest'
import { SlotColumns } from '../../../src/counters/slot-columns.js'
import { divideUsage, undividedUsed } from '../../../src/counters/split.js'

/** 100 units, one refilled every 10 ms. */
const whole = { wholeRate: 0.1, wholeCapacity: 100 }

function split(used: number, after: number) {
  const slots = new SlotColumns(4)
  const own = divideUsage(slots, 0, { ...whole, used, before: 1, after, nowMs: 1_000 })
  slots.capacity[0] = whole.wholeCapacity * after
  return { slots, own }
}

test.each([
  [90, 2 / 3],
  [100, 1 / 3],
  [0, 0.5],
])('of %i used, a side of %d of the fleet still knows the whole', (used, fraction) => {
  const { slots, own } = split(used, fraction)
  expect(own).toBeCloseTo(used * fraction)
  expect(undividedUsed(slots, 0, { ...whole, used: own }, 1_000)).toBeCloseTo(used)
})

test('the part that the others are taken to have used refills at their part of the rate', () => {
  const { slots, own } = split(90, 2 / 3)
  // 300 ms refill 30 units of the whole: 10 of the others' 30.
  expect(undividedUsed(slots, 0, { ...whole, used: own }, 1_300)).toBeCloseTo(own + 20)
  expect(undividedUsed(slots, 0, { ...whole, used: own }, 60_000)).toBeCloseTo(own)
})

test('a bucket that is not divided is told as it is', () => {
  const slots = new SlotColumns(4)
  slots.capacity[0] = whole.wholeCapacity
  slots.splitUsed[0] = 40
  slots.splitCapacity[0] = 50
  expect(undividedUsed(slots, 0, { ...whole, used: 7 }, 1_000)).toBe(7)
})
