import { expect, it } from 'vitest'
import { CounterFleet } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** The threshold of GrapevineOvershootHigh in deploy/prometheus/alerts.yaml. */
const alertAbove = 1.2

function fleetOf() {
  const rules = rulesOf(ruleOf('api', { limit: limitOf(100, 60_000) }))
  return new CounterFleet({ pods: 2, rules })
}

it('the overshoot ratio of a rule within its limit is 1', () => {
  const fleet = fleetOf()
  for (let asked = 0; asked < 50; asked++) fleet.request(0, 'api', ['k'])
  fleet.run(2000)
  expect(fleet.pods[1]!.limiter.overshootRatios(fleet.nowMs)).toEqual([1])
})

it('two pods that each gave out the whole limit are far above what alerts', () => {
  const fleet = fleetOf()
  for (const pod of [0, 1]) {
    for (let asked = 0; asked < 100; asked++) fleet.request(pod, 'api', ['k'])
  }
  fleet.run(2000)
  expect(fleet.pods[0]!.limiter.overshootRatios(fleet.nowMs)[0]).toBeGreaterThan(alertAbove)
})
