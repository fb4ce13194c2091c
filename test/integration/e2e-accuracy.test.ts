/** The laws of the simulator over real processes: five sidecars on loopback under four kinds of load. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deviation, IdealRange } from '../../src/cli/demo/ideal-bucket.js'
import { LoadGenerator, type LoadTarget } from '../../src/cli/demo/load-generator.js'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { jain } from '../../src/simulator/measures.js'
import { ensureBuilt, Fleet } from '../helpers/sidecars.js'
import { sleep } from '../helpers/until.js'

const podCount = 5
/** Per second, and in the bucket. Low enough that a busy machine with two cores keeps up. */
const limit = 200
const seconds = 8
const secondsOfWarmUp = 2

let fleet: Fleet
let pods: SidecarProcess[]

beforeAll(async () => {
  ensureBuilt()
  fleet = await Fleet.create(`version: 1
rules:
  - { name: load, key: ["header:x-load"], limit: ${limit}/1s, burst: ${limit} }
`)
  pods = await fleet.startMany(podCount)
  // The first requests of a process take a second on a busy machine, in which a bucket that is full
  // already gains nothing: that would be a loss of the start, on a key that nobody used before.
  await offer('warm-up', secondsOfWarmUp, () => fill(2 / podCount))
})

afterAll(() => fleet?.stop())

interface Outcome {
  /** Admitted against what one bucket admits; 0 is exact. */
  readonly off: number
  readonly fairness: number
  readonly offered: number
}

/** Rates of each pod, as parts of the limit, at a time in milliseconds since the start of the load. */
type Load = (elapsedMs: number) => readonly number[]

/** A load on a key of its own, and so on a bucket that is full at its start. */
async function offer(key: string, durationS: number, load: Load): Promise<Outcome> {
  const ideal = new IdealRange(limit, limit)
  const targets: LoadTarget[] = pods.map(pod => ({
    name: pod.name,
    url: `http://${pod.addresses.proxy}/`,
    rate: 0,
    headers: { 'x-load': key },
  }))
  const generator = new LoadGenerator(targets, {
    onOffered: (_, nowMs) => ideal.left(nowMs),
    onAnswered: () => ideal.answered(performance.now()),
  })
  const startMs = performance.now()
  generator.start()
  for (let elapsedMs = 0; elapsedMs < durationS * 1000; ) {
    const parts = load(elapsedMs)
    targets.forEach((target, index) => {
      target.rate = limit * (parts[index] ?? 0)
    })
    await sleep(20)
    elapsedMs = performance.now() - startMs
  }
  await generator.stop()
  const total = generator.total()
  expect(total).toMatchObject({ offered: total.allowed + total.denied, failed: 0 })
  const counts = pods.map(pod => generator.counts(pod.name))
  const fairness = jain(
    counts.map(({ offered }) => offered),
    counts.map(({ allowed }) => allowed),
  )
  const nearest = ideal.nearest(total.allowed)
  const off = deviation(total.allowed, nearest)
  console.log(
    `${key}: ${total.allowed} of ${total.offered}, one bucket ${nearest}: ` +
      `${(100 * off).toFixed(2)} % off, Jain ${fairness.toFixed(4)}`,
  )
  return { off, fairness, offered: total.offered }
}

const fill = (part: number) => new Array<number>(podCount).fill(part)

/** Zipf with exponent 1.2: the first pod has half of the load. */
const weights = Array.from({ length: podCount }, (_, rank) => (rank + 1) ** -1.2)
const weightSum = weights.reduce((sum, weight) => sum + weight, 0)

test('even load of twice the limit: one bucket’s worth, fairly', async () => {
  const { off, fairness, offered } = await offer('even', seconds, () => fill(2 / podCount))
  expect(offered).toBeGreaterThan(1.2 * limit * seconds)
  expect(Math.abs(off)).toBeLessThanOrEqual(0.03)
  expect(fairness).toBeGreaterThanOrEqual(0.95)
})

test('skewed load of twice the limit: one bucket’s worth, each pod by its demand', async () => {
  const parts = weights.map(weight => (2 * weight) / weightSum)
  const { off, fairness, offered } = await offer('skewed', seconds, () => parts)
  expect(offered).toBeGreaterThan(1.2 * limit * seconds)
  expect(Math.abs(off)).toBeLessThanOrEqual(0.03)
  expect(fairness).toBeGreaterThanOrEqual(0.95)
})

test('a hot pod that is another one every two seconds: one bucket’s worth', async () => {
  const { off, offered } = await offer('moving', seconds, elapsedMs => {
    const hot = Math.floor(elapsedMs / 2000) % podCount
    return Array.from({ length: podCount }, (_, pod) => (pod === hot ? 1.5 : 0))
  })
  expect(offered).toBeGreaterThan(limit * seconds)
  expect(Math.abs(off)).toBeLessThanOrEqual(0.03)
})

test('bursts of five times the limit on all pods at once: one bucket’s worth', async () => {
  const { off, offered } = await offer('bursts', seconds, elapsedMs =>
    fill((elapsedMs % 4000 < 1000 ? 5 : 0.1) / podCount),
  )
  expect(offered).toBeGreaterThan(0.7 * limit * seconds)
  expect(Math.abs(off)).toBeLessThanOrEqual(0.03)
})
