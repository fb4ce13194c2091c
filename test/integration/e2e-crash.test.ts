import { afterEach, beforeAll, expect, test } from 'vitest'
import { deviation, IdealRange } from '../../src/cli/demo/ideal-bucket.js'
import { LoadGenerator } from '../../src/cli/demo/load-generator.js'
import {
  check,
  ensureBuilt,
  Fleet,
  freePort,
  membersOf,
  readiness,
  untilConverged,
} from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

/**
 * A pod is back within 3 s; a machine that is busy with other things may take as long again. Before
 * names had a part that is new with each start it took a minute.
 */
const rejoinMs = 10_000

const rules = `version: 1
rules:
  - { name: all, match: { path: "/**" }, key: [global], limit: 100/1s, burst: 100 }
  - { name: quota, match: { path: /quota }, key: ["header:x-client"], limit: 50/1h }
`

test('a pod killed under load is missed by nobody, and comes back without a fresh bucket', async () => {
  fleet = await Fleet.create(rules)
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const seeds = ports.map(port => `127.0.0.1:${port}`)
  const start = (index: number) =>
    fleet.start({ name: `pod-${index + 1}`, gossipPort: ports[index]!, seeds })
  const pods = await Promise.all([start(0), start(1), start(2)])
  await untilConverged(pods)
  const [one, two, victim] = pods as [(typeof pods)[0], (typeof pods)[0], (typeof pods)[0]]

  const spent = { rule: 'quota', key: 'client-7' }
  expect(await check(victim, { ...spent, cost: 50 })).toMatchObject({ allowed: true })
  const remaining = async (pod: typeof one) => (await check(pod, { ...spent, cost: 0 })).remaining
  await until('the news reached the others', async () => (await remaining(one)) === 0)

  const ideal = new IdealRange(100, 100)
  const targets = pods.map(pod => ({
    name: pod.name,
    url: `http://${pod.addresses.proxy}/`,
    rate: 100,
  }))
  const load = new LoadGenerator(targets, {
    onOffered: (_, nowMs) => ideal.left(nowMs),
    onAnswered: () => ideal.answered(performance.now()),
  })
  load.start()
  await sleep(2_000)
  victim.signal('SIGKILL')
  targets[2]!.rate = 0
  await victim.exited
  await sleep(2_500)

  // Its consumption still counts with the survivors, and the quota of its client stays spent.
  expect(await remaining(one)).toBe(0)
  expect(await check(two, { ...spent, cost: 1 })).toMatchObject({ allowed: false })

  const oldWireName = (await membersOf(one)).find(member => member.name === 'pod-3')?.wireName
  const again = await start(2)
  const listeningMs = performance.now()
  await until('it is ready', async () => (await readiness(again)) === 200)
  expect(await remaining(again)).toBe(0)
  await until('both others see the new start alive', async () => {
    const views = await Promise.all([one, two].map(membersOf))
    return views.every(view => {
      const member = view.find(entry => entry.name === 'pod-3')
      return member?.state === 'alive' && member.wireName !== oldWireName
    })
  })
  expect(performance.now() - listeningMs).toBeLessThan(rejoinMs)
  load.add({ name: 'again', url: `http://${again.addresses.proxy}/`, rate: 100 })
  await sleep(2_000)
  await load.stop()

  for (const name of ['pod-1', 'pod-2', 'again']) {
    expect({ name, failed: load.counts(name).failed }).toEqual({ name, failed: 0 })
  }
  // Never above the limit. Below it while the victim is suspected, since a side of two out of three
  // gives out two thirds (onPartition: share) until gossip knows a death from a split.
  const { allowed } = load.total()
  const off = deviation(allowed, ideal.nearest(allowed))
  expect(off).toBeLessThanOrEqual(0.05)
  expect(off).toBeGreaterThanOrEqual(-0.2)
})
