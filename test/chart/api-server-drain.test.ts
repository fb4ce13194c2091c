/** A pod that ends under load, as Kubernetes ends it: preStop, endpoints taken away, SIGTERM. */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { ensureBuilt, program } from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'
import { podAddress, TestCluster, whyNoCluster } from './cluster.js'
import {
  account,
  aliveAt,
  ask,
  bindingOf,
  discoveryRole,
  Load,
  namespace,
  PodFleet,
  readinessOf,
  serviceAccount,
} from './pods.js'

const peers = inject('peers')
const reason = whyNoCluster(peers)

const quota = 1_000_000
const drainTimeoutMs = 3_000
const leavingAdmin = `${podAddress(3)}:7991`
// A window of thirty days, so that nothing flows back while the test counts.
const lines = `discovery: { kubernetes: { service: grapevine-gossip } }
drainTimeout: ${drainTimeoutMs / 1_000}s
rules: [{ name: quota, key: [global], limit: ${quota}/30d, algorithm: fixed-window }]`

describe.skipIf(reason !== null)(`the end of a pod${reason ? ` (${reason})` : ''}`, () => {
  let cluster: TestCluster
  let fleet: PodFleet
  let load: Load
  let pods: SidecarProcess[]

  beforeAll(async () => {
    ensureBuilt()
    cluster = await TestCluster.start(peers)
    await cluster.makeNamespace(namespace)
    await cluster.apply(serviceAccount(account), discoveryRole)
    await cluster.apply(bindingOf('grapevine-discovery', account))
    const accountFiles = await cluster.serviceAccountFiles(namespace, account)
    fleet = await PodFleet.create(cluster)
    load = new Load(cluster)
    pods = await Promise.all([
      fleet.start(1, { accountFiles, lines }),
      fleet.start(2, { accountFiles, lines }),
      fleet.start(3, { accountFiles, lines, admin: leavingAdmin }),
    ])
    await fleet.publish({ ready: pods })
    await until('they see each other', async () =>
      (await Promise.all(pods.slice(0, 2).map(aliveAt))).every(view => view.length === 3),
    )
    await until('they are ready', async () =>
      (await Promise.all(pods.map(readinessOf))).every(status => status === 200),
    )
  })

  afterAll(async () => {
    await load?.stop()
    await fleet?.stop()
    await cluster?.stop()
  })

  const direct = (rate: number) =>
    load.direct({ targets: pods.map(pod => fleet.proxyOf(pod)), rate })

  async function consumedAt(pod: SidecarProcess): Promise<number> {
    const { text } = await ask(pod.addresses.api, '/v1/check', { rule: 'quota', cost: 0 })
    return quota - (JSON.parse(text) as { remaining: number }).remaining
  }

  it('turns readiness off first, loses no request, and leaves its last totals to its peers', async () => {
    fleet.upstreamDelayMs = 300
    direct(200)
    await until('requests flow', () => load.allowed > 500, 60_000)
    const leaving = pods[2]!

    const admin = `http://${leavingAdmin}`
    const drained = cluster.inside(process.execPath, [program, 'drain', '--admin', admin])
    await until('it is not ready', async () => (await readinessOf(leaving)) === 503, 20_000, 10)
    await drained
    // Endpoints follow readiness; until then requests still come, and are served.
    await sleep(1_000)
    pods = pods.slice(0, 2)
    direct(200)
    await load.followed()
    await fleet.publish({ ready: pods, terminating: [leaving] })
    const { status, durationMs } = await fleet.end(leaving)
    expect(status).toBe(0)
    expect(durationMs).toBeLessThan(drainTimeoutMs + 1_000)
    await fleet.publish({ ready: pods })

    await load.quiet()
    expect(load.failed).toEqual([])
    // Every unit that all three let through.
    for (const pod of pods)
      await expect.poll(() => consumedAt(pod), { timeout: 20_000 }).toBe(load.allowed)
    for (const pod of pods)
      await expect.poll(() => aliveAt(pod), { timeout: 20_000 }).toEqual(['pod-1', 'pod-2'])
  })

  it('finishes what runs when SIGTERM comes without a warning', async () => {
    fleet.upstreamDelayMs = 1_500
    const before = load.allowed
    direct(60)
    await until('some are answered', () => load.allowed > before + 50, 60_000)
    const leaving = pods[1]!
    pods = pods.slice(0, 1)
    const directedMs = performance.now()
    direct(60)
    await sleep(100)
    const sinceMs = performance.now() - directedMs
    const ended = fleet.end(leaving)
    await until('it is not ready', async () => (await readinessOf(leaving)) === 503, 3_000, 10)
    // A pod that is listed and does not answer would be a split, and half the quota kept back.
    await fleet.publish({ ready: pods })
    const { status, durationMs } = await ended
    expect(status).toBe(0)
    // Some forty requests were under way, the youngest sent just before the load went elsewhere.
    expect(durationMs).toBeGreaterThan(fleet.upstreamDelayMs - sinceMs - 300)
    expect(durationMs).toBeLessThan(drainTimeoutMs + 1_000)
    await load.quiet()
    expect(load.failed).toEqual([])
    expect(load.allowed).toBeGreaterThan(before + 100)
    await expect.poll(() => consumedAt(pods[0]!), { timeout: 20_000 }).toBe(load.allowed)
  })
})
