import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { check, ensureBuilt, Fleet, metric } from '../helpers/sidecars.js'
import { sleep, until } from '../helpers/until.js'

beforeAll(ensureBuilt)

let fleet: Fleet

afterEach(() => fleet.stop())

/** New rules must apply within 2 s; the margin is for a loaded machine. */
const applyWithinMs = 10_000

const rules = (count: number) => `version: 1
rules:
  - { name: api, key: [global], limit: ${count}/24h }
`

async function untilLimit(pod: SidecarProcess, limit: number): Promise<number> {
  const answer = await until(
    `limit ${limit}`,
    async () => {
      const now = await check(pod, { rule: 'api', cost: 0 })
      return now.limit === limit && now
    },
    applyWithinMs,
  )
  return answer.remaining
}

test('a rules file rewritten in place or replaced by rename applies, and counts survive', async () => {
  fleet = await Fleet.create(rules(100))
  const pod = await fleet.start({ name: 'pod-1' })
  await check(pod, { rule: 'api', cost: 30 })

  writeFileSync(fleet.rulesFile, rules(200))
  expect(await untilLimit(pod, 200)).toBe(170)

  const draft = join(fleet.directory, 'draft.yaml')
  writeFileSync(draft, rules(300))
  renameSync(draft, fleet.rulesFile)
  expect(await untilLimit(pod, 300)).toBe(270)

  // A limit below what is used: nothing left, never negative.
  writeFileSync(fleet.rulesFile, rules(20))
  expect(await untilLimit(pod, 20)).toBe(0)
  expect(await metric(pod, 'grapevine_config_last_reload_successful')).toBe(1)
})

test('a mounted ConfigMap whose ..data link is swapped applies, and counts survive', async () => {
  fleet = await Fleet.create(rules(100))
  const mount = join(fleet.directory, 'mount')
  const version = (name: string, count: number) => {
    mkdirSync(join(mount, name), { recursive: true })
    writeFileSync(join(mount, name, 'rules.yaml'), rules(count))
  }
  version('..2026_1', 100)
  symlinkSync('..2026_1', join(mount, '..data'))
  symlinkSync(join('..data', 'rules.yaml'), join(mount, 'rules.yaml'))
  const pod = await fleet.start({ name: 'pod-1', rules: mount })
  await check(pod, { rule: 'api', cost: 30 })

  for (const [index, count] of [200, 300].entries()) {
    const name = `..2026_${index + 2}`
    version(name, count)
    symlinkSync(name, join(mount, '..data_tmp'))
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
    expect(await untilLimit(pod, count)).toBe(count - 30)
    rmSync(join(mount, `..2026_${index + 1}`), { recursive: true })
  }
  await sleep(500)
  expect(await metric(pod, 'grapevine_config_last_reload_successful')).toBe(1)
})

test('an invalid file changes nothing, and says where it is wrong', async () => {
  fleet = await Fleet.create(rules(100))
  const pod = await fleet.start({ name: 'pod-1' })
  await check(pod, { rule: 'api', cost: 30 })
  writeFileSync(fleet.rulesFile, 'version: 1\nrules:\n  - name: api\n    limitt: 5/1s\n')
  await until(
    'the metric says so',
    async () => (await metric(pod, 'grapevine_config_last_reload_successful')) === 0,
    applyWithinMs,
  )
  const where = `${fleet.rulesFile}:4:5`
  await until('a log line says where', () => pod.log.some(line => line.includes(where)))
  expect(await check(pod, { rule: 'api', cost: 0 })).toMatchObject({ limit: 100, remaining: 70 })

  writeFileSync(fleet.rulesFile, rules(40))
  expect(await untilLimit(pod, 40)).toBe(10)
  expect(await metric(pod, 'grapevine_config_last_reload_successful')).toBe(1)
})

test('SIGHUP and POST /-/reload read the rules at once', async () => {
  fleet = await Fleet.create(rules(100))
  const pod = await fleet.start({ name: 'pod-1' })
  const before = await metric(pod, 'grapevine_config_last_reload_success_timestamp_seconds')
  await sleep(1_100)
  pod.signal('SIGHUP')
  await until('a newer time of success', async () => {
    const now = await metric(pod, 'grapevine_config_last_reload_success_timestamp_seconds')
    return now > before
  })
  const response = await fetch(`http://${pod.addresses.admin}/-/reload`, { method: 'POST' })
  expect(response.status).toBe(200)
})
