import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  appendRateLimitHeaders,
  type HeaderOptions,
  type LimitNumbers,
  mergeRateLimitHeaders,
  retryAfterSeconds,
} from '../../../src/http/rate-limit-headers.js'
import { decision, denied } from '../../helpers/fake-core.js'

const wallMs = 1_700_000_000_400
const all: HeaderOptions = { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'epoch' }

function headers(numbers: LimitNumbers, options: HeaderOptions, retrySeconds = 0): object {
  const list: string[] = []
  appendRateLimitHeaders(list, numbers, options, wallMs, retrySeconds)
  const pairs: [string, string][] = []
  for (let index = 0; index < list.length; index += 2) {
    pairs.push([list[index] ?? '', list[index + 1] ?? ''])
  }
  return Object.fromEntries(pairs)
}

describe('appendRateLimitHeaders', () => {
  it('writes draft-11 and X-RateLimit with an epoch reset', () => {
    expect(headers(decision(), all)).toEqual({
      'RateLimit-Policy': '"api";q=100;w=1',
      RateLimit: '"api";r=42;t=1',
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '42',
      'X-RateLimit-Reset': '1700000001',
    })
  })

  it.each([
    [{ ...all, ietf: 'off' }, ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']],
    [{ ...all, legacy: 'off' }, ['RateLimit-Policy', 'RateLimit']],
    [{ ...all, legacy: 'off', ietf: 'off' }, []],
    [{ ...all, ietf: 'off', reset: 'off' }, ['X-RateLimit-Limit', 'X-RateLimit-Remaining']],
  ] as const)('each family may be off: %j', (options, names) => {
    expect(Object.keys(headers(decision(), options))).toEqual(names)
  })

  it('writes the github family with used and resource', () => {
    expect(headers(decision(), { ietf: 'off', legacy: 'github', reset: 'delta' })).toEqual({
      'X-RateLimit-Limit': '100',
      'X-RateLimit-Remaining': '42',
      'X-RateLimit-Reset': '1',
      'X-RateLimit-Used': '58',
      'X-RateLimit-Resource': 'api',
    })
  })

  it('on a denial t is Retry-After, and the reset is never before it', () => {
    const soon = denied({ resetAfterMs: 500, retryAfterMs: 1_200 })
    expect(headers(soon, { ...all, reset: 'delta' }, 2)).toMatchObject({
      RateLimit: '"api";r=0;t=2',
      'X-RateLimit-Reset': '2',
    })
    expect(headers(soon, all, 2)).toMatchObject({ 'X-RateLimit-Reset': '1700000003' })
    expect(headers(denied({ resetAfterMs: 9_000 }), all, 2)).toMatchObject({
      RateLimit: '"api";r=0;t=2',
      'X-RateLimit-Reset': '1700000010',
    })
  })

  it.each([
    ['a limit below one reads as one', { limit: 0.5 }, '"api";q=1;w=1'],
    ['a fraction is rounded down', { limit: 2.5 }, '"api";q=2;w=1'],
    ['a window is rounded up to whole seconds', { windowMs: 1_500 }, '"api";q=100;w=2'],
    ['a window is at least a second', { windowMs: 10 }, '"api";q=100;w=1'],
    ['requests in flight have no window', { windowMs: 0 }, '"api";q=100;qu="concurrent-requests"'],
    ['an integer has at most 15 digits', { limit: 1e30 }, '"api";q=999999999999999;w=1'],
  ])('%s', (_what, parts, policy) => {
    expect(headers(decision(parts), all)).toMatchObject({ 'RateLimit-Policy': policy })
  })

  it('writes nothing when no rule matched', () => {
    expect(headers(decision({ rule: null, reason: 'no-rule' }), all)).toEqual({})
  })
})

describe('retryAfterSeconds', () => {
  it.each([
    [0, 1],
    [1, 1],
    [999, 1],
    [1_000, 1],
    [1_001, 2],
    [9_000, 9],
  ])('%d ms are %d s', (ms, seconds) => {
    expect(retryAfterSeconds(ms, () => 0.999)).toBe(seconds)
  })

  it('is whole, at least 1, never too early, and late by a tenth or 5 s at most', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e10, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (ms, chance) => {
          const seconds = retryAfterSeconds(ms, () => chance)
          expect(Number.isInteger(seconds)).toBe(true)
          expect(seconds).toBeGreaterThanOrEqual(1)
          expect(seconds * 1000).toBeGreaterThanOrEqual(ms)
          const exact = Math.max(1, Math.ceil(ms / 1000))
          expect(seconds - exact).toBeLessThanOrEqual(Math.min(5, exact / 10))
        },
      ),
    )
  })
})

describe('mergeRateLimitHeaders', () => {
  const ours = [
    ...['RateLimit-Policy', '"api";q=100;w=1', 'RateLimit', '"api";r=42;t=1'],
    ...['X-RateLimit-Limit', '100', 'X-RateLimit-Remaining', '42', 'X-RateLimit-Reset', '9'],
  ]

  it('appends to lists that the upstream set', () => {
    const theirs = ['RateLimit', '"app";r=7;t=3', 'Content-Type', 'text/plain']
    expect(mergeRateLimitHeaders(theirs, ours)).toEqual([...theirs, ...ours])
  })

  it('keeps the upstream’s X-RateLimit family when less remains there', () => {
    const theirs = ['x-ratelimit-limit', '10', 'x-ratelimit-remaining', '3']
    expect(mergeRateLimitHeaders(theirs, ours)).toEqual([...theirs, ...ours.slice(0, 4)])
  })

  it('replaces the upstream’s X-RateLimit family when more remains there', () => {
    const theirs = ['x-ratelimit-limit', '1000', 'x-ratelimit-remaining', '900', 'etag', '"1"']
    expect(mergeRateLimitHeaders(theirs, ours)).toEqual(['etag', '"1"', ...ours])
  })

  it('replaces a family that cannot be read', () => {
    const theirs = ['X-RateLimit-Remaining', 'plenty']
    expect(mergeRateLimitHeaders(theirs, ours)).toEqual(ours)
  })

  it('leaves the upstream’s family alone when ours is off', () => {
    const theirs = ['X-RateLimit-Remaining', '5']
    expect(mergeRateLimitHeaders(theirs, ours.slice(0, 4))).toEqual([
      ...theirs,
      ...ours.slice(0, 4),
    ])
  })
})
