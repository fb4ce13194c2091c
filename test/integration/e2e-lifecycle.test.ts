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
import { sleep, until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet
let slow: Server | null = null

afterEach(async () => {
  slow?.close()
  slow?.closeAllConnections()
  slow = null
  await fleet.stop()
})

const rules = `version: 1
rules:
  - { name: quota, key: [global], limit: 100/1h }
`

/** An upstream that answers after `delayMs`. */
async function startSlowUpstream(delayMs: number): Promise<string> {
  const server = createServer((_, response) => {
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
  const upstream = await startSlowUpstream(800)
  const three = await fleet.start({
    name: 'pod-3',
    seeds: [one!.addresses.gossip],
    listeners: { proxy: `{ listen: "127.0.0.1:0", upstream: "${upstream}" }` },
    extra: 'drainTimeout: 3s',
  })
  const alive = async () => (await membersOf(two!)).filter(one => one.state === 'alive').length
  await until('it joined', async () => (await alive()) === 3)

  const running = fetch(`http://${three.addresses.proxy}/`)
  await sleep(100)
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
  expect(await check(one!, { rule: 'quota', cost: 0 })).toMatchObject({ remaining: 59 })
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
  await sleep(100)
  const stoppedMs = performance.now()
  pod.signal('SIGTERM')
  expect(await pod.exited).toBe(0)
  expect(performance.now() - stoppedMs).toBeLessThan(2_000)
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
  await sleep(100)
  pod.signal('SIGTERM')
  await sleep(200)
  const secondMs = performance.now()
  pod.signal('SIGTERM')
  expect(await pod.exited).not.toBe(0)
  expect(performance.now() - secondMs).toBeLessThan(1_000)
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
  expect(pod.log.some(line => line.includes(`${fleet.rulesFile}:3:`))).toBe(true)
  expect(pod.log.some(line => line.includes('nothing is limited until'))).toBe(true)
  await until('it is ready', async () => (await readiness(pod)) === 200)
  expect((await fetch(`http://${pod.addresses.proxy}/`)).status).toBe(200)
})
