/** `grapevine explain` against a fleet of processes: the whole answer, and nothing consumed by asking. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { check, ensureBuilt, Fleet, runProgram } from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'

const rules = `version: 1
deny: [{ path: /secret }]
allow: [{ path: /healthz }]
rules:
  - { name: api, match: { path: "/api/**" }, key: ["header:x-api-key"], limit: 10/1h }
  - { name: writes, match: { path: "/api/**", method: POST }, key: [ip], limit: 2/1h }
  - { name: trial, match: { path: "/api/**" }, key: [global], limit: 3/1h, mode: shadow }
`

let fleet: Fleet
let one: SidecarProcess
let two: SidecarProcess

beforeAll(async () => {
  ensureBuilt()
  fleet = await Fleet.create(rules)
  const pods = await fleet.startMany(2)
  one = pods[0] as SidecarProcess
  two = pods[1] as SidecarProcess
})

afterAll(() => fleet?.stop())

const request = (key: string, method = 'GET') => ({
  request: { method, path: '/api/x', headers: { 'x-api-key': key }, ip: '192.0.2.7' },
})

async function explain(pod: SidecarProcess, ...words: string[]): Promise<string> {
  const args = [
    'explain',
    ...words,
    '--ip',
    '192.0.2.7',
    '--admin',
    `http://${pod.addresses.admin}`,
  ]
  const { status, stdout, stderr } = await runProgram(args)
  if (status !== 0) throw new Error(`status ${status}: ${stderr}`)
  return stdout
}

/** Everything that a decision could change: every key's numbers and parts, and every counter. */
async function counters(pod: SidecarProcess): Promise<unknown> {
  const json = async (path: string): Promise<unknown> =>
    (await fetch(`http://${pod.addresses.admin}${path}`)).json()
  const { keys } = (await json('/limits/top?by=hits&n=1000')) as { keys: object[] }
  const text = await (await fetch(`http://${pod.addresses.telemetry}/metrics`)).text()
  const counted = /^grapevine_(decisions|requests|key_|keys|degraded|debt)/
  const stripped = JSON.stringify(keys, (name, value: unknown) =>
    name === 'ageMs' || name === 'resetAfterMs' ? undefined : value,
  )
  return { keys: stripped, metrics: text.split('\n').filter(line => counted.test(line)) }
}

/** The counters once nothing has changed for a while: the last news of what was asked travels late. */
async function settled(pods: readonly SidecarProcess[]): Promise<unknown[]> {
  let seen = await Promise.all(pods.map(counters))
  return until('no news for a second and a half', async () => {
    await sleep(1500)
    const now = await Promise.all(pods.map(counters))
    const quiet = JSON.stringify(now) === JSON.stringify(seen)
    seen = now
    return quiet && now
  })
}

test('rules that match and why others do not, keys, each pod’s part, the verdict; nothing consumed', async () => {
  for (let n = 0; n < 3; n++) await check(one, request('alpha'))
  for (let n = 0; n < 4; n++) await check(two, request('alpha'))
  const partsAt = async (pod: SidecarProcess) => {
    const url = `http://${pod.addresses.admin}/limits/api/keys/alpha`
    const view = (await (await fetch(url)).json()) as {
      own: { consumed: number } | null
      peers: { consumed: number }[]
    }
    return [view.own?.consumed, ...view.peers.map(({ consumed }) => consumed)]
  }
  await until('pod-1 heard of everything', async () => String(await partsAt(one)) === '3,4')
  const before = await settled([one, two])

  const text = await explain(one, '/api/x', '-H', 'X-Api-Key: alpha')
  const lines = text.trimEnd().split('\n')
  expect(lines[0]).toBe('would be allowed (allowed)')
  expect(lines.slice(1, 4)).toEqual([
    '+ api: key from header:x-api-key',
    '    allows: 3 of 10 left',
    expect.stringMatching(/^ {4}key: [0-9a-f]{16}$/),
  ])
  expect(lines[4]).toBe('    this pod: used 3, offered 3')
  expect(lines[5]).toMatch(/^ {4}pod-2: used 4, offered 4, heard of \d+ ms ago$/)
  expect(lines[6]).toMatch(/^- writes: .*method/)
  expect(lines[7]).toMatch(/^\+ trial: key from global/)
  expect(lines[8]).toMatch(/^ {4}denies: 0 of 3 left, retry after \d+ s$/)

  for (let n = 0; n < 5; n++) {
    await explain(one, '/api/x', '-H', 'X-Api-Key: alpha')
    await explain(one, '/api/x', '-X', 'POST', '-H', 'X-Api-Key: never-seen')
    await explain(two, '/secret')
  }
  expect(await Promise.all([counters(one), counters(two)])).toEqual(before)
  expect(await check(one, request('alpha'))).toMatchObject({ allowed: true, remaining: 2 })
})

test('a pod that never saw the key explains it by what it heard', async () => {
  for (let n = 0; n < 10; n++) await check(two, request('beta'))
  const told = await until('pod-1 heard that the key is spent', async () => {
    const text = await explain(one, '/api/x', '-H', 'X-Api-Key: beta')
    return /denies: 0 of 10 left.*offered 10/s.test(text) ? text : null
  })
  expect(told).toMatch(/^would be denied \(limited by api\)/)
  expect(told).toMatch(/denies: 0 of 10 left, retry after \d+ s/)
  expect(told).toMatch(/pod-2: used 10, offered 10/)
  expect(told).not.toContain('this pod: used 0, offered 1')
  expect(await check(one, request('beta'))).toMatchObject({ allowed: false, rule: 'api' })
})

test('as JSON: the same facts, for machines', async () => {
  const text = await explain(one, '/api/x', '-X', 'POST', '-H', 'X-Api-Key: gamma', '-o', 'json')
  const answer = JSON.parse(text) as { rules: { rule: string; matched: boolean; key: unknown }[] }
  expect(answer).toMatchObject({ allowed: true, reason: 'allowed' })
  expect(answer.rules.map(({ rule, matched }) => [rule, matched])).toEqual([
    ['api', true],
    ['writes', true],
    ['trial', true],
  ])
  expect(answer.rules[0]).toMatchObject({
    key: null,
    verdict: { allowed: true, limit: 10, windowMs: 3_600_000, remaining: 10, retryAfterMs: 0 },
  })
})

test('the lists answer before the rules', async () => {
  expect(await explain(one, '/secret')).toMatch(/^would be denied \(deny entry: .*secret/)
  expect(await explain(one, '/healthz')).toMatch(/^would be allowed \(allow entry: .*healthz/)
  expect(await explain(one, '/elsewhere')).toMatch(/^would be allowed \(no rule matches\)/)
})
