/** What a decision leaves for the collector: nothing, however many pods report. */
import { expect, it } from 'vitest'
import { CounterFleet } from '../../helpers/counter-fleet.js'
import { heapGrowth } from '../../helpers/heap-growth.js'
import { factsOf, limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** A number on the heap takes so many bytes: one fraction in the wrong place, and each decision does. */
const heapNumberBytes = 16

/** Bytes per decision of a pod that `pods - 1` others told of the same key; the least of many looks. */
function bytesPerDecision(pods: number, count: number): { bytes: number; denied: number } {
  const rules = rulesOf(ruleOf('api', { limit: limitOf(count, 1000) }))
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
])('a decision on a known key allocates nothing: $told', ({ pods, count, denies }) => {
  const { bytes, denied } = bytesPerDecision(pods, count)
  expect(denied > 0).toBe(denies)
  expect(bytes).toBeLessThan(heapNumberBytes / 2)
})
