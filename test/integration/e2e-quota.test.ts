/** `counters.checkpoint` with real processes: a quota that outlives the end of the whole fleet. */
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import {
  check,
  ensureBuilt,
  Fleet,
  freePort,
  readiness,
  untilConverged,
} from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

const rules = `version: 1
rules:
  - { name: daily, key: ["header:x-client"], limit: 10000/day }
  - { name: monthly, key: ["header:x-client"], limit: 1000000/month }
`

const quotas = [
  { rule: 'daily', count: 10_000 },
  { rule: 'monthly', count: 1_000_000 },
]

test('quotas outlive a stop and start of every pod at once, and are still one for the fleet', async () => {
  fleet = await Fleet.create(rules)
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const seeds = ports.map(port => `127.0.0.1:${port}`)
  const startAll = async () => {
    const pods = await Promise.all(
      ports.map((gossipPort, index) => {
        const checkpoint = join(fleet.directory, `totals-${index}`)
        const extra = `counters: { checkpoint: "${checkpoint}" }\n`
        return fleet.start({ name: `pod-${index}`, gossipPort, seeds, extra })
      }),
    )
    await untilConverged(pods)
    await until('every pod is ready', async () => {
      return (await Promise.all(pods.map(readiness))).every(status => status === 200)
    })
    return pods
  }
  const ask = (pod: SidecarProcess, rule: string, cost: number) =>
    check(pod, { rule, key: 'client-7', cost })

  const before = await startAll()
  for (const { rule, count } of quotas) {
    for (const [index, pod] of before.entries()) {
      const cost = ((index + 1) * count) / 10
      expect(await ask(pod, rule, cost)).toMatchObject({ allowed: true })
    }
  }
  await Promise.all(before.map(pod => pod.stop()))

  const after = await startAll()
  for (const { rule, count } of quotas) {
    await until(`every pod knows what is left of ${rule}`, async () => {
      const answers = await Promise.all(after.map(pod => ask(pod, rule, 0)))
      return answers.every(({ remaining }) => remaining === 0.4 * count)
    })
    // And charged on: most of it at one pod leaves little at all.
    expect(await ask(after[1]!, rule, 0.3 * count)).toMatchObject({ allowed: true })
    await until(`little is left of ${rule} everywhere`, async () => {
      const answers = await Promise.all(after.map(pod => ask(pod, rule, 0)))
      return answers.every(({ remaining }) => remaining <= 0.1 * count)
    })
    for (const pod of after) {
      expect(await ask(pod, rule, 0.1 * count + 1)).toMatchObject({ allowed: false })
    }
  }
})
