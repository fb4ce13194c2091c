/**
 * The oracle: one limiter that sees every request of the fleet in order and holds the limit
 * exactly. Written straight from the definition of each algorithm and independent of `limiter/`, so
 * that a mistake there cannot hide here. One instance per key; times never go back.
 */
import { assert } from '../lib/assert.js'
import { burstOf, type ScenarioRule } from './scenario.js'

export interface IdealLimiter {
  /** Asks for one unit at a virtual time; `wallMs` is the true wall clock of that moment. */
  admit(atMs: number, wallMs: number): boolean
}

export function idealLimiter(rule: ScenarioRule): IdealLimiter {
  switch (rule.algorithm) {
    case 'token-bucket':
      return new IdealTokenBucket(rule.limit.count / rule.limit.windowMs, burstOf(rule))
    case 'leaky-bucket':
      return new IdealLeakyBucket(rule)
    case 'fixed-window':
      return new IdealFixedWindow(rule)
    case 'sliding-window':
      return new IdealSlidingWindow(rule.limit.count, rule.limit.windowMs)
    case 'sliding-log':
      return new IdealSlidingLog(rule.limit.count, rule.limit.windowMs)
  }
}

/** Tolerance for sums of doubles, in units: far below one request, far above rounding. */
const rounding = 1e-9

class IdealTokenBucket implements IdealLimiter {
  private tokens: number
  private filledAtMs = 0

  constructor(
    private readonly ratePerMs: number,
    private readonly burst: number,
  ) {
    this.tokens = burst
  }

  admit(atMs: number): boolean {
    this.tokens = Math.min(this.burst, this.tokens + (atMs - this.filledAtMs) * this.ratePerMs)
    this.filledAtMs = atMs
    if (this.tokens + rounding < 1) return false
    this.tokens -= 1
    return true
  }
}

/** Delays instead of denying, up to `queue` requests and `maxWait`. */
class IdealLeakyBucket implements IdealLimiter {
  private freeAtMs = 0
  private readonly intervalMs: number
  private readonly delayMaxMs: number

  constructor(rule: ScenarioRule) {
    this.intervalMs = rule.limit.windowMs / rule.limit.count
    const queueMs = rule.queue === null ? Number.POSITIVE_INFINITY : rule.queue * this.intervalMs
    this.delayMaxMs = Math.min(rule.maxWaitMs ?? Number.POSITIVE_INFINITY, queueMs)
  }

  admit(atMs: number): boolean {
    const delayMs = Math.max(0, this.freeAtMs - atMs)
    if (delayMs > this.delayMaxMs + rounding) return false
    this.freeAtMs = Math.max(atMs, this.freeAtMs) + this.intervalMs
    return true
  }
}

/** Windows aligned to the epoch; calendar ones in UTC. */
class IdealFixedWindow implements IdealLimiter {
  private window = Number.NaN
  private used = 0

  constructor(private readonly rule: ScenarioRule) {}

  admit(_atMs: number, wallMs: number): boolean {
    const window = this.windowOf(wallMs)
    if (window !== this.window) {
      this.window = window
      this.used = 0
    }
    if (this.used + 1 > this.rule.limit.count + rounding) return false
    this.used += 1
    return true
  }

  private windowOf(wallMs: number): number {
    const { calendar, windowMs } = this.rule.limit
    if (calendar === 'month') {
      const date = new Date(wallMs)
      return date.getUTCFullYear() * 12 + date.getUTCMonth()
    }
    // 1970-01-01 was a Thursday: weeks begin on the Monday three days before it.
    const shiftMs = calendar === 'week' ? 3 * 86_400_000 : 0
    return Math.floor((wallMs + shiftMs) / windowMs)
  }
}

/** Two aligned windows, the previous one weighted by how much of it is still in view. */
class IdealSlidingWindow implements IdealLimiter {
  private window = Number.NaN
  private current = 0
  private previous = 0

  constructor(
    private readonly count: number,
    private readonly windowMs: number,
  ) {}

  admit(_atMs: number, wallMs: number): boolean {
    const window = Math.floor(wallMs / this.windowMs)
    if (window !== this.window) {
      this.previous = window === this.window + 1 ? this.current : 0
      this.current = 0
      this.window = window
    }
    const elapsed = wallMs / this.windowMs - window
    const estimate = this.previous * (1 - elapsed) + this.current
    if (estimate + 1 > this.count + rounding) return false
    this.current += 1
    return true
  }
}

/** More admissions than this in one window are not remembered one by one. */
const logMax = 1 << 22

/** Exactly the admissions of the last window: a ring of their times. */
class IdealSlidingLog implements IdealLimiter {
  private readonly times: Float64Array
  private oldest = 0
  private length = 0

  constructor(
    count: number,
    private readonly windowMs: number,
  ) {
    assert(count <= logMax, 'an ideal sliding log holds at most 4194304 admissions')
    this.times = new Float64Array(Math.max(1, Math.floor(count + rounding)))
    this.capacity = Math.floor(count + rounding)
  }

  private readonly capacity: number

  admit(atMs: number): boolean {
    while (this.length > 0 && this.times[this.oldest]! <= atMs - this.windowMs) {
      this.oldest = (this.oldest + 1) % this.times.length
      this.length--
    }
    if (this.length >= this.capacity) return false
    this.times[(this.oldest + this.length) % this.times.length] = atMs
    this.length++
    return true
  }
}
