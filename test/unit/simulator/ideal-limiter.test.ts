import { describe, expect, it } from 'vitest'
import { type IdealLimiter, idealLimiter } from '../../../src/simulator/ideal-limiter.js'
import { epochWallMs } from '../../../src/simulator/pod-clock.js'
import type { ScenarioRule } from '../../../src/simulator/scenario.js'
import { parseLimit } from '../../../src/simulator/scenario-values.js'

function rule(limit: string, more: Partial<ScenarioRule> = {}): ScenarioRule {
  return {
    limit: parseLimit(limit)!,
    burst: null,
    algorithm: 'token-bucket',
    onPartition: 'share',
    key: [[{ kind: 'global' }]],
    queue: null,
    maxWaitMs: null,
    ...more,
  }
}

function ask(limiter: IdealLimiter, atMs: number, count: number): number {
  let admitted = 0
  for (let i = 0; i < count; i++) if (limiter.admit(atMs, epochWallMs + atMs)) admitted++
  return admitted
}

describe('idealLimiter', () => {
  it('token bucket: 5 of 8 at once, three more after 1.5 s, and no fourth', () => {
    const limiter = idealLimiter(rule('2/1s', { burst: 5 }))
    expect(ask(limiter, 0, 8)).toBe(5)
    expect(ask(limiter, 1500, 4)).toBe(3)
  })

  it('token bucket: never holds more than the burst', () => {
    const limiter = idealLimiter(rule('10/1s', { burst: 3 }))
    expect(ask(limiter, 100_000, 10)).toBe(3)
  })

  it('leaky bucket: one at once and as many as may wait, then one per interval', () => {
    const limiter = idealLimiter(rule('10/1s', { algorithm: 'leaky-bucket', queue: 4 }))
    expect(ask(limiter, 0, 10)).toBe(5)
    expect(ask(limiter, 100, 10)).toBe(1)
    const patient = idealLimiter(rule('10/1s', { algorithm: 'leaky-bucket', maxWaitMs: 200 }))
    expect(ask(patient, 0, 10)).toBe(3)
  })

  it('fixed window: the limit in each aligned window', () => {
    const limiter = idealLimiter(rule('7/1s', { algorithm: 'fixed-window' }))
    expect(ask(limiter, 999, 10)).toBe(7)
    expect(ask(limiter, 1000, 10)).toBe(7)
    expect(ask(limiter, 1999, 10)).toBe(0)
  })

  it('fixed window: calendar months and weeks begin where they do', () => {
    const month = idealLimiter(rule('3/month', { algorithm: 'fixed-window' }))
    const februaryMs = Date.UTC(2026, 1, 1) - epochWallMs
    expect(ask(month, februaryMs - 1, 5)).toBe(3)
    expect(ask(month, februaryMs, 5)).toBe(3)
    const week = idealLimiter(rule('3/week', { algorithm: 'fixed-window' }))
    const mondayMs = Date.UTC(2026, 0, 12) - epochWallMs
    expect(ask(week, mondayMs - 1, 5)).toBe(3)
    expect(ask(week, mondayMs, 5)).toBe(3)
  })

  it('sliding window: 90 before, 70 now, 40 s in: 100 of 100 are used', () => {
    const limiter = idealLimiter(rule('100/1m', { algorithm: 'sliding-window' }))
    expect(ask(limiter, 0, 90)).toBe(90)
    expect(ask(limiter, 60_000 + 39_999, 69)).toBe(69)
    // 90 * 20/60 + 69 = 99, so one more passes and the next one does not.
    expect(ask(limiter, 60_000 + 40_000, 2)).toBe(1)
  })

  it('sliding window: a window without requests is empty', () => {
    const limiter = idealLimiter(rule('10/1s', { algorithm: 'sliding-window' }))
    expect(ask(limiter, 0, 10)).toBe(10)
    expect(ask(limiter, 2500, 20)).toBe(10)
  })

  it('sliding log: a slot is free exactly one window after it was taken', () => {
    const limiter = idealLimiter(rule('2/1s', { algorithm: 'sliding-log' }))
    expect(ask(limiter, 0, 1)).toBe(1)
    expect(ask(limiter, 600, 2)).toBe(1)
    expect(ask(limiter, 999, 1)).toBe(0)
    expect(ask(limiter, 1000, 2)).toBe(1)
    expect(ask(limiter, 1600, 2)).toBe(1)
  })
})
