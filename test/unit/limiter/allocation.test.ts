/** What a decision leaves for the collector: it must not depend on how many pods report. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { CounterFleet } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const decisions = 2000

/** Bytes per decision of a pod that `pods - 1` others told of the same key; the least of some rounds. */
function bytesPerDecision(pods: number): number {
  const rules = rulesOf(ruleOf('api', { limit: limitOf(1000, 1000) }))
  const fleet = new CounterFleet({ pods, rules })
  for (let pod = 0; pod < pods; pod++) {
    for (let asked = 0; asked < 30; asked++) fleet.request(pod, 'api', ['client'])
    fleet.flush(pod)
  }
  fleet.run(50)
  const { limiter } = fleet.pods[0]!
  expect(limiter.key('api', ['client'], 50, fleet.wallMs)?.parts).toHaveLength(pods)
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    collect()
    const before = process.memoryUsage().heapUsed
    for (let asked = 0; asked < decisions; asked++) {
      limiter.check('api', ['client'], 1, 'check', 50, fleet.wallMs)
    }
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / decisions)
  }
  return least
}

it('a decision on a known key allocates as much beside fifty pods as beside one', () => {
  const beside1 = bytesPerDecision(2)
  const beside49 = bytesPerDecision(50)
  expect(beside49).toBeLessThan(beside1 + 64)
  expect(beside49).toBeLessThan(1024)
})
