import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'vitest'
import {
  check,
  ensureBuilt,
  Fleet,
  freePort,
  membersOf,
  readiness,
  runProgram,
} from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet
let slow: Server | null = null
let slowRequests = 0

afterEach(async () => {
  slow?.close()
  slow?.closeAllConnections()
  slow = null
  slowRequests = 0
  await fleet.stop()
})

const rules = `version: 1
rules:
  - { name: quota, key: [global], limit: 100/24h }
`

/** An upstream that answers after `delayMs`. */
async function startSlowUpstream(delayMs: number): Promise<string> {
  const server = createServer((_, response) => {
    slowRequests += 1
    setTimeout(() => response.end('late'), delayMs)
  })
  slow = server
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('drain turns readiness to 503 while everything is still served', async () => {
  fleet = await Fleet.create(rules)
  const pod = await fleet.start({ name: 'pod-1' })
  await until('it is ready', async () => (await readiness(pod)) === 200)
  const result = await runProgram(['drain', '--admin', `http://${pod.addresses.admin}`])
  expect(result.status).toBe(0)
  expect(await readiness(pod)).toBe(503)
  expect((await fetch(`http://${pod.addresses.proxy}/`)).status).toBe(200)
  expect(await check(pod, { rule: 'quota' })).toMatchObject({ allowed: true, remaining: 98 })
  await until('the log says so', async () => pod.log.some(line => line.includes('draining')))
})

test('SIGTERM finishes running requests, flushes the last totals, and leaves the ring', async () => {
  fleet = await Fleet.create(rules)
  const [one, two] = await fleet.startMany(2)
  const upstream = await startSlowUpstream(1_500)
  const three = await fleet.start({
    name: 'pod-3',
    seeds: [one!.addresses.gossip],
    listeners: { proxy: `{ listen: "127.0.0.1:0", upstream: "${upstream}" }` },
    extra: 'drainTimeout: 3s',
  })
  const alive = async () => (await membersOf(two!)).filter(one => one.state === 'alive').length
  await until('it joined', async () => (await alive()) === 3)

  const running = fetch(`http://${three.addresses.proxy}/`)
  await until('the request runs', () => slowRequests === 1)
  await check(three, { rule: 'quota', cost: 40 })
  const stoppedMs = performance.now()
  three.signal('SIGTERM')
  const response = await running
  expect(await response.text()).toBe('late')
  expect(await three.exited).toBe(0)
  expect(performance.now() - stoppedMs).toBeLessThan(4_000)

  await until('the others heard that it left', async () => {
    const views = await Promise.all([one!, two!].map(membersOf))
    return views.every(view => view.find(member => member.name === 'pod-3')?.state === 'left')
  })
  await until(
    'its last totals are there',
    async () => (await check(one!, { rule: 'quota', cost: 0 })).remaining === 59,
  )
})

test('a request longer than drainTimeout does not keep the process alive', async () => {
  fleet = await Fleet.create(rules)
  const upstream = await startSlowUpstream(20_000)
  const pod = await fleet.start({
    name: 'pod-1',
    listeners: { proxy: `{ listen: "127.0.0.1:0", upstream: "${upstream}" }` },
    extra: 'drainTimeout: 1s',
  })
  const running = fetch(`http://${pod.addresses.proxy}/`).catch(() => null)
  await until('the request runs', () => slowRequests === 1)
  const stoppedMs = performance.now()
  pod.signal('SIGTERM')
  expect(await pod.exited).toBe(0)
  // One second to drain and one to leave; the rest is for the machine. The request takes 20 s.
  expect(performance.now() - stoppedMs).toBeLessThan(6_000)
  await running
})

test('peers that do not answer are named in the log, and the pod serves without them', async () => {
  fleet = await Fleet.create(rules)
  const seed = `127.0.0.1:${await freePort()}`
  const pod = await fleet.start({ name: 'pod-1', seeds: [seed] })
  const warned = (line: string) => line.includes('no peer answers yet') && line.includes(seed)
  await until('it says so', async () => pod.log.some(warned))
  await until('it is ready', async () => (await readiness(pod)) === 200)
})

test('a second signal ends the process at once', async () => {
  fleet = await Fleet.create(rules)
  const upstream = await startSlowUpstream(20_000)
  const pod = await fleet.start({
    name: 'pod-1',
    listeners: { proxy: `{ listen: "127.0.0.1:0", upstream: "${upstream}" }` },
    extra: 'drainTimeout: 10s',
  })
  const running = fetch(`http://${pod.addresses.proxy}/`).catch(() => null)
  await until('the request runs', () => slowRequests === 1)
  pod.signal('SIGTERM')
  // Two signals of a kind that come close together are one.
  await until('it drains', () => pod.log.some(line => line.includes('"stopping"')))
  const secondMs = performance.now()
  pod.signal('SIGTERM')
  expect(await pod.exited).not.toBe(0)
  expect(performance.now() - secondMs).toBeLessThan(5_000)
  await running
})

test('invalid rules at start: open serves without limits and says so, fail ends with the reason', async () => {
  fleet = await Fleet.create('version: 1\nrules:\n  - { name: api, limit: soon }\n')
  const failing = await runProgram([
    'run',
    ...fleet.runArgs({ name: 'pod-1', extra: 'onStartupError: fail' }),
  ])
  expect(failing.status).toBe(1)
  expect(failing.stderr).toContain(`${fleet.rulesFile}:3:`)
  const pod = await fleet.start({ name: 'pod-1', extra: 'onStartupError: open' })
  for (const words of [`${fleet.rulesFile}:3:`, 'nothing is limited until'])
    await until(`the log says ${words}`, () => pod.log.some(line => line.includes(words)))
  await until('it is ready', async () => (await readiness(pod)) === 200)
  expect((await fetch(`http://${pod.addresses.proxy}/`)).status).toBe(200)
})
