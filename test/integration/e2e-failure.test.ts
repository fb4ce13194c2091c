/** Failures of a fleet of processes that traffic must outlive, as each rule's `failureMode` says. */
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { check, ensureBuilt, Fleet, freePort, metric, readiness } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

const rules = `version: 1
rules:
  - { name: open, match: { path: "/open/**" }, key: ["header:x-key"], limit: 20/1h }
  - { name: shut, match: { path: "/shut/**" }, key: ["header:x-key"], limit: 20/1h, failureMode: closed }
`

const through = (pod: SidecarProcess, path: string, key: string): Promise<Response> =>
  fetch(`http://${pod.addresses.proxy}${path}`, { headers: { 'x-key': key } })

async function admitted(pod: SidecarProcess, path: string, key: string, asks: number) {
  let count = 0
  for (let n = 0; n < asks; n++) if ((await through(pod, path, key)).status === 200) count++
  return count
}

test('gossip that reaches nobody: ready all the same, and limited by what this pod sees', async () => {
  fleet = await Fleet.create(rules)
  const nowhere = await freePort()
  const pod = await fleet.start({ name: 'alone', seeds: [`127.0.0.1:${nowhere}`] })
  await until('ready without a peer', async () => (await readiness(pod)) === 200)
  expect(await admitted(pod, '/open/a', 'client', 30)).toBe(20)
  expect(await admitted(pod, '/shut/a', 'client', 30)).toBe(20)
  expect(await metric(pod, 'grapevine_degraded_decisions_total')).toBe(0)
})

test('a peer that stands still: traffic goes on, the limit holds, and the peer hears of it later', async () => {
  fleet = await Fleet.create(rules)
  const [one, two] = (await fleet.startMany(2)) as [SidecarProcess, SidecarProcess]
  two.signal('SIGSTOP')
  let used = 0
  try {
    // In one request: a dozen may take longer here than the peer needs to be suspected.
    const first = { rule: 'open', key: 'client', cost: 15 }
    expect(await check(one, first)).toMatchObject({ allowed: true })
    used += 15
    await until(
      'the peer is noticed',
      async () =>
        (await metric(one, 'grapevine_peers{state="suspect"}')) +
          (await metric(one, 'grapevine_peers{state="dead"}')) >
        0,
    )
    // While the fleet is split this pod has a part of the limit only; never more than is left.
    used += await admitted(one, '/open/a', 'client', 15)
    expect(used).toBeLessThanOrEqual(20)
    expect(await admitted(one, '/shut/a', 'other', 5)).toBe(5)
    expect(await metric(one, 'grapevine_degraded_decisions_total')).toBe(0)
  } finally {
    two.signal('SIGCONT')
  }
  for (const pod of [one, two]) {
    await until(
      `${pod.name} knows what was used`,
      async () =>
        (await check(pod, { rule: 'open', key: 'client', cost: 0 })).remaining === 20 - used,
    )
  }
})

test('a full table: open goes on, closed stops, the known client notices nothing', async () => {
  fleet = await Fleet.create(rules)
  const pod = await fleet.start({ name: 'small', extra: 'counters: { keys: 1000 }\n' })
  const batch = (rule: string, from: number, count: number) =>
    check(
      pod,
      Array.from({ length: count }, (_, n) => ({ rule, key: `key-${from + n}` })),
    ) as unknown as Promise<{ allowed: boolean; reason: string }[]>
  await check(pod, { rule: 'open', key: 'tenant' })
  for (let n = 0; n < 21; n++) await batch('open', n * 500, 500)

  const stranger = await through(pod, '/open/a', 'stranger')
  expect([stranger.status, stranger.headers.get('x-ratelimit-degraded')]).toEqual([200, '1'])
  expect(await admitted(pod, '/open/a', 'stranger', 40)).toBe(19)
  const stopped = await through(pod, '/shut/a', 'stranger')
  expect([stopped.status, stopped.headers.get('x-ratelimit-degraded')]).toEqual([503, '1'])
  const tenant = await through(pod, '/open/a', 'tenant')
  expect([tenant.status, tenant.headers.get('x-ratelimit-degraded')]).toEqual([200, null])
  expect(tenant.headers.get('ratelimit')).toMatch(/^"open";r=18;/)

  const asked = await fetch(`http://${pod.addresses.api}/v1/auth/shut/a`, {
    headers: { 'x-key': 'stranger' },
  })
  expect([asked.status, asked.headers.get('x-ratelimit-degraded')]).toEqual([503, '1'])
  expect(await metric(pod, 'grapevine_key_table_full_total')).toBeGreaterThan(9_000)
  expect(await metric(pod, 'grapevine_degraded_decisions_total')).toBeGreaterThan(9_000)
  const degraded = 'grapevine_requests_total{interface="proxy",reason="degraded"}'
  expect(await metric(pod, degraded)).toBeGreaterThanOrEqual(2)
  const keys = ['open', 'shut'].map(rule => metric(pod, `grapevine_keys{rule="${rule}"}`))
  expect((await Promise.all(keys)).reduce((sum, one) => sum + one, 0)).toBe(1000)
})
