import { describe, expect, test } from 'vitest'
import {
  type FleetRow,
  holds,
  liveLine,
  liveTable,
  summary,
} from '../../../src/cli/demo/demo-table.js'
import { deviation, IdealBucket, IdealRange } from '../../../src/cli/demo/ideal-bucket.js'
import { parseDurationMs, parseWholeNumber } from '../../../src/cli/duration.js'
import { textTable } from '../../../src/cli/text-table.js'

describe('the ideal bucket', () => {
  test('admits the burst, then the rate, and never more than the burst at once', () => {
    const bucket = new IdealBucket(2, 5)
    const at = (nowMs: number, count: number) =>
      Array.from({ length: count }, () => bucket.offer(nowMs)).filter(Boolean).length
    expect(at(0, 8)).toBe(5)
    expect(at(1_500, 4)).toBe(3)
    expect(at(1_500, 1)).toBe(0)
    expect(at(60_000, 9)).toBe(5)
    expect(bucket.admitted).toBe(13)
  })

  test('of a client that sees no decision lies between leaving and answer', () => {
    const range = new IdealRange(10, 10)
    for (let n = 0; n < 30; n += 1) range.left(n * 10)
    for (let n = 0; n < 30; n += 1) range.answered(n * 10 + (n < 15 ? 0 : 500))
    expect([0, 12, 15, 17, 40].map(actual => range.nearest(actual))).toEqual([12, 12, 15, 17, 17])
  })

  test('deviation is signed, and nothing of nothing is none', () => {
    expect(deviation(105, 100)).toBeCloseTo(0.05)
    expect(deviation(90, 100)).toBeCloseTo(-0.1)
    expect(deviation(0, 0)).toBe(0)
    expect(deviation(1, 0)).toBe(Number.POSITIVE_INFINITY)
  })
})

const counts = (offered: number, allowed: number, failed = 0) => ({
  offered,
  allowed,
  denied: offered - allowed - failed,
  failed,
})

const fleet = (allowed: number, failed = 0): FleetRow => ({
  elapsedS: 10,
  limitPerS: 100,
  burst: 100,
  total: counts(3_000, allowed, failed),
  last: counts(300, 100),
  ideal: 1_000,
})

const pods = [
  { name: 'pod-1', url: 'http://a/', total: counts(2, 1), last: counts(1, 1), peers: 2 },
  { name: 'pod-2', url: 'http://b/', total: counts(2, 1), last: counts(1, 1), peers: null },
]

describe('the demo’s verdict', () => {
  test.each([
    [1_000, 0, true],
    [1_050, 0, true],
    [950, 0, true],
    [1_051, 0, false],
    [949, 0, false],
    [1_000, 1, false],
  ])('%i of an ideal 1000 with %i errors: %s', (allowed, failed, held) => {
    expect(holds(fleet(allowed, failed), 0.05)).toBe(held)
    const text = summary(pods, fleet(allowed, failed), 0.05).join('\n')
    expect(text).toContain(held ? 'held its limit' : 'did NOT hold its limit')
  })

  test('a run without traffic proves nothing', () => {
    expect(holds({ ...fleet(0), total: counts(0, 0), ideal: 0 }, 0.05)).toBe(false)
  })
})

test('the live views name every pod, its peers and the fleet against the limit', () => {
  const table = liveTable(pods, fleet(1_010)).join('\n')
  expect(table).toContain('pod-1  http://a/')
  expect(table).toContain('100/s allowed of 300/s offered, limit 100/s')
  expect(table).toContain('(+1.0 %)')
  expect(liveLine(pods, fleet(1_000))).toContain('pod-2 1/1 (peers -)')
})

test('tables align numbers right and words left', () => {
  const rows = [
    { name: 'a', count: 5 },
    { name: 'bcd', count: 1_234 },
  ]
  const lines = textTable(
    [
      { title: 'NAME', align: 'left', value: (row: (typeof rows)[0]) => row.name },
      { title: 'N', align: 'right', value: row => String(row.count) },
    ],
    rows,
  )
  expect(lines).toEqual(['NAME     N', 'a        5', 'bcd   1234'])
})

test('durations and whole numbers are read strictly', () => {
  expect(['500ms', '10s', '2m', '1.5h'].map(parseDurationMs)).toEqual([
    500, 10_000, 120_000, 5_400_000,
  ])
  for (const text of ['', '10', '-1s', '0s', '1d', '1e3s', '25h']) {
    expect(() => parseDurationMs(text), text).toThrow('expected a duration')
  }
  expect(parseWholeNumber(1, 20)('3')).toBe(3)
  for (const text of ['0', '21', '1.5', 'x', '']) {
    expect(() => parseWholeNumber(1, 20)(text), text).toThrow('whole number from 1 to 20')
  }
})
