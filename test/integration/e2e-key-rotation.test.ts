import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { LoadGenerator } from '../../src/cli/demo/load-generator.js'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { ensureBuilt, Fleet, metric, untilConverged } from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

const key = () => randomBytes(32).toString('base64')

interface Part {
  readonly node: string | null
  readonly consumed: number
}

/** What a pod knows each node to have consumed of the one key. */
async function parts(pod: SidecarProcess): Promise<Record<string, number>> {
  const response = await fetch(`http://${pod.addresses.admin}/limits/top?by=hits&n=1`, {
    headers: { accept: 'application/json' },
  })
  const { keys } = (await response.json()) as { keys: { own: Part; peers: Part[] }[] }
  const all = keys.flatMap(({ own, peers }) => [own, ...peers])
  return Object.fromEntries(all.map(part => [part.node, part.consumed]))
}

const readings = (pod: SidecarProcess) => pod.log.filter(line => line.includes('gossip keys read'))
const ringsRead = (pod: SidecarProcess): number => readings(pod).length

/** Number of keys in the ring that a pod has. */
const lastRing = (pod: SidecarProcess): number =>
  (JSON.parse(readings(pod).at(-1) ?? '{"keys":0}') as { keys: number }).keys

const series = (reason: string) => `grapevine_gossip_dropped_total{reason="${reason}"}`

test('a fleet under load moves from key A to key B and loses no message on the way', async () => {
  const [a, b] = [key(), key()]
  fleet = await Fleet.create(`version: 1
rules: [{ name: all, key: [global], limit: 10000/1h, burst: 10000 }]
`)
  const file = join(fleet.directory, 'gossip-keys')
  writeFileSync(file, `${a}\n`)
  const gossip = `encryptionKeys: ["file:${file}"]`
  const first = await fleet.start({ name: 'pod-1', gossip })
  const seeds = [first.addresses.gossip]
  const pods = [
    first,
    await fleet.start({ name: 'pod-2', gossip, seeds }),
    await fleet.start({ name: 'pod-3', gossip, seeds }),
  ]
  await untilConverged(pods)
  const load = new LoadGenerator(
    pods.map(pod => ({ name: pod.name, url: `http://${pod.addresses.proxy}/`, rate: 60 })),
  )
  load.start()
  await sleep(2_500)
  for (const ring of [[a, b], [b, a], [b]]) {
    const before = pods.map(ringsRead)
    writeFileSync(file, `${ring.join('\n')}\n`)
    // Operators wait, too, until every pod has the ring: one that is behind would be cut off.
    await until('every pod has the ring', () =>
      pods.every((pod, index) => ringsRead(pod) > before[index]! && lastRing(pod) === ring.length),
    )
    await sleep(1_500)
  }
  await load.stop()
  const allowed = load.total().allowed
  let views: Record<string, number>[] = []
  await until('every pod knows what every other consumed', async () => {
    views = await Promise.all(pods.map(parts))
    const sums = views.map(view => Object.values(view).reduce((sum, one) => sum + one, 0))
    return sums.every(sum => sum === allowed)
  }).catch((error: Error) => expect.fail(`${error.message}: ${JSON.stringify({ allowed, views })}`))
  expect(load.total()).toMatchObject({ denied: 0, failed: 0 })
  for (const pod of pods) {
    expect(await metric(pod, series('undecryptable')), pod.name).toBe(0)
    expect(await metric(pod, series('not_encrypted')), pod.name).toBe(0)
  }
  const stranger = await fleet.start({
    name: 'stranger',
    gossip: `encryptionKeys: ["${a}"]`,
    seeds,
  })
  await until('packets under the old key are dropped and counted', async () => {
    const dropped = await Promise.all(pods.map(pod => metric(pod, series('undecryptable'))))
    return dropped.some(count => count > 0) || (await metric(stranger, series('undecryptable'))) > 0
  })
  await until(
    'the stranger is no peer',
    async () => (await metric(first, 'grapevine_peers{state="alive"}')) === 2,
  )
})
