import { expect, test } from 'vitest'
import {
  firstWindowEntitlement,
  handOutMs,
  windowFill,
  windowRest,
} from '../../../src/limiter/window-share.js'

test('what is left is handed out over several news lags, a log’s lumps sooner', () => {
  expect(handOutMs(4, false)).toBe(100)
  expect(handOutMs(4, true)).toBe(50)
  expect(handOutMs(80, false)).toBe(480)
  expect(handOutMs(80, true)).toBe(480)
})

test('the rest of a quota is handed out down to the last unit', () => {
  const rest = windowRest(1000, 0, 5)
  expect(rest).toBe(0)
  expect(windowFill(160, 0, rest, 100)).toBeCloseTo(1.6)
  expect(windowFill(1, 0, rest, 100)).toBeCloseTo(0.01)
  expect(windowFill(0, 0, rest, 100)).toBe(0)
})

test('a sliding window hands out what comes back, and its surplus besides', () => {
  const rest = windowRest(1000, 0.1, 50)
  expect(rest).toBeCloseTo(1.6)
  expect(windowFill(rest, 0.1, rest, 100)).toBeCloseTo(0.1)
  expect(windowFill(rest + 50, 0.1, rest, 100)).toBeCloseTo(0.6)
  expect(windowFill(-1, 0.1, rest, 100)).toBe(0)
  expect(windowRest(10, 100, 50)).toBe(1.25)
})

test('pods enter scarcity at their phase, sooner whole the longer the others are quiet', () => {
  expect(firstWindowEntitlement(10, 0.3, 1, 0)).toBe(3)
  expect(firstWindowEntitlement(10, 0.3, 1, 5)).toBe(8)
  expect(firstWindowEntitlement(10, 0.3, 1, 500)).toBe(10)
})
