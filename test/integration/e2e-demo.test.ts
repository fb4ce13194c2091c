import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt, program, runProgram } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

beforeAll(ensureBuilt)

test('the demo ends by itself with status 0 once the fleet held its limit', async () => {
  const result = await runProgram(['demo', '--duration', '8s'])
  expect({ status: result.status, stderr: result.stderr }).toMatchObject({ status: 0 })
  expect(result.stdout).toContain('the fleet held its limit')
  expect(result.stdout).toMatch(/pod-3 +http:\/\/127\.0\.0\.1:\d+\//)
  expect(result.stdout).toMatch(/curl -i http:\/\/127\.0\.0\.1:\d+\//)
  expect(result.stdout).toMatch(/metrics http:\/\/127\.0\.0\.1:\d+\/metrics/)
})

test('sidecars do not outlive a demo that is killed', async () => {
  // A killed demo cannot tidy up after itself, so its directory is made inside of one that we remove.
  const directory = mkdtempSync(join(tmpdir(), 'grapevine-e2e-'))
  const env = { ...process.env, TMPDIR: directory }
  const demo = spawn(process.execPath, [program, 'demo', '--pods', '2'], { env })
  let stdout = ''
  demo.stdout.setEncoding('utf8').on('data', chunk => {
    stdout += chunk
  })
  await until('the fleet is up', () => stdout.includes('Ctrl-C'), 30_000)
  const proxies = [...stdout.matchAll(/proxy (http:\S+)/g)].map(match => match[1]!)
  expect(proxies).toHaveLength(2)
  demo.kill('SIGKILL')
  await until('both are gone', async () => {
    const answers = await Promise.allSettled(proxies.map(proxy => fetch(proxy)))
    return answers.every(answer => answer.status === 'rejected')
  })
  rmSync(directory, { recursive: true, force: true })
})

test('Ctrl-C ends the demo with a summary', async () => {
  const demo = spawn(process.execPath, [program, 'demo', '--pods', '1'])
  let stdout = ''
  demo.stdout.setEncoding('utf8').on('data', chunk => {
    stdout += chunk
  })
  // After the last of its output, which may come later than its end.
  const closed = new Promise(resolve => demo.once('close', resolve))
  await until('traffic', () => stdout.includes('fleet after'), 30_000)
  demo.kill('SIGINT')
  expect(await closed).toBe(0)
  expect(stdout).toContain('summary after')
})
