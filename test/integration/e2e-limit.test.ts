import { afterEach, beforeAll, expect, test } from 'vitest'
import { deviation, IdealRange } from '../../src/cli/demo/ideal-bucket.js'
import { LoadGenerator } from '../../src/cli/demo/load-generator.js'
import { ensureBuilt, Fleet, metric } from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

const rules = (limit: string, burst: number) => `version: 1
rules:
  - { name: all, key: [global], limit: ${limit}, burst: ${burst} }
`

test('three sidecars under three times their limit admit what one bucket would', async () => {
  fleet = await Fleet.create(rules('100/1s', 100))
  const pods = await fleet.startMany(3)
  const ideal = new IdealRange(100, 100)
  const load = new LoadGenerator(
    pods.map(pod => ({ name: pod.name, url: `http://${pod.addresses.proxy}/`, rate: 100 })),
    {
      onOffered: (_, nowMs) => ideal.left(nowMs),
      onAnswered: () => ideal.answered(performance.now()),
    },
  )
  load.start()
  await sleep(8_000)
  await load.stop()
  const total = load.total()
  expect(total.failed).toBe(0)
  expect(total.offered).toBeGreaterThan(1_500)
  expect(total.allowed + total.denied).toBe(total.offered)
  const off = deviation(total.allowed, ideal.nearest(total.allowed))
  expect(Math.abs(off)).toBeLessThanOrEqual(0.05)
  expect(fleet.upstream.requests()).toBe(total.allowed)
  const counted = await Promise.all(
    pods.map(pod =>
      metric(pod, 'grapevine_decisions_total{rule="all",result="allowed",interface="proxy"}'),
    ),
  )
  expect(counted.reduce((sum, one) => sum + one, 0)).toBe(total.allowed)
  await until('all see all', async () => {
    const peers = await Promise.all(pods.map(pod => metric(pod, 'grapevine_peers{state="alive"}')))
    return peers.every(count => count === 2)
  })
})

test('four sidecars, all traffic on one below the limit: nobody is denied', async () => {
  fleet = await Fleet.create(rules('200/1s', 200))
  const [first] = await fleet.startMany(4)
  const url = `http://${first!.addresses.proxy}/`
  const load = new LoadGenerator([{ name: 'pod-1', url, rate: 150 }])
  load.start()
  await sleep(5_000)
  await load.stop()
  const total = load.total()
  expect(total.offered).toBeGreaterThan(400)
  expect(total).toMatchObject({ allowed: total.offered, denied: 0, failed: 0 })
})
