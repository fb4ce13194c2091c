/** What a decision leaves for the collector: nothing, however many pods report. */
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { RuleSpec } from '../../../src/limiter/rule.js'
import { heapGrowth } from '../../helpers/heap-growth.js'
import { factsOf, limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** A number on the heap takes so many bytes: one fraction in the wrong place, and each decision does. */
const heapNumberBytes = 16

/** Bytes per decision of a pod that `pods - 1` others told of the same key; the least of many looks. */
async function bytesPerDecision(
  pods: number,
  count: number,
  more: Partial<RuleSpec> = {},
): Promise<{ bytes: number; denied: number }> {
  const { CounterFleet } = await import('../../helpers/counter-fleet.js')
  const rules = rulesOf(ruleOf('api', { limit: limitOf(count, 1000), ...more }))
  const fleet = new CounterFleet({ pods, rules })
  for (let pod = 0; pod < pods; pod++) {
    for (let asked = 0; asked < 3; asked++) fleet.request(pod, 'api', ['client'], count / 500)
    fleet.flush(pod)
  }
  // Later the burst has been forgotten, but the demand of the others is still remembered.
  fleet.run(250)
  const { limiter } = fleet.pods[0]!
  expect(limiter.key('api', ['client'], 250, fleet.wallMs)?.parts).toHaveLength(pods)
  const facts = factsOf('client')
  let denied = 0
  const growth = heapGrowth(60, 250, fleet.wallMs - 250, (monotonicMs, wallMs) => {
    if (!limiter.decide(facts, 'proxy', monotonicMs, wallMs).allowed) denied++
  })
  // Before V8 has translated the path, and when it does so anew, numbers are everywhere on the heap.
  return { bytes: Math.min(...growth.filter(bytes => bytes >= 0)), denied }
}

it.each([
  { pods: 1, count: 1000, denies: true, told: 'alone, and denied' },
  { pods: 1, count: 10_000_000, denies: false, told: 'alone, and admitted' },
  { pods: 50, count: 1000, denies: true, told: 'beside 49 pods, and denied' },
  { pods: 50, count: 10_000_000, denies: false, told: 'beside 49 pods, and admitted' },
])('a decision on a known key allocates nothing: $told', async ({ pods, count, denies }) => {
  const { bytes, denied } = await bytesPerDecision(pods, count)
  expect(denied > 0).toBe(denies)
  expect(bytes).toBeLessThan(heapNumberBytes / 2)
})

/**
 * What V8 learned of one kind of rule is forgotten before the next: most processes serve one. How
 * it merges the functions of a window varies from run to run, and so whether a number or two stay.
 */
describe.each<[string, number, (count: number) => Partial<RuleSpec>]>([
  ['a small bucket', 0, count => ({ burst: count / 10 })],
  ['a leaky bucket', 0, count => ({ algorithm: 'leaky-bucket', queue: count / 10 })],
  ['a fixed window', 2, () => ({ algorithm: 'fixed-window' })],
  ['a sliding window', 2, () => ({ algorithm: 'sliding-window' })],
  ['a sliding log', 2, () => ({ algorithm: 'sliding-log' })],
])('%s', (_, numbersMax, more) => {
  beforeAll(() => {
    vi.resetModules()
  })

  it.each([
    { pods: 1, count: 1000, told: 'denied' },
    { pods: 50, count: 1000, told: 'denied beside 49 pods' },
    { pods: 1, count: 10_000_000, told: 'admitted' },
    { pods: 50, count: 10_000_000, told: 'admitted beside 49 pods' },
  ])('leaves no object: $told', async ({ pods, count }) => {
    const { bytes, denied } = await bytesPerDecision(pods, count, more(count))
    expect(denied > 0).toBe(count === 1000)
    expect(bytes).toBeLessThan((numbersMax + 0.5) * heapNumberBytes)
  })
})
