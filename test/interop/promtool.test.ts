import { spawnSync } from 'node:child_process'
import { describe, expect, inject, it } from 'vitest'
import { Exporter } from '../../src/metrics/exporter.js'
import { ProxyCounters } from '../../src/proxy/proxy-stats.js'
import { fakeEngine } from '../helpers/fake-core.js'
import { openHttpWorld } from '../helpers/http-world.js'

const program = inject('peers').promtool

function promtool(metrics: string): { status: number | null; output: string } {
  const result = spawnSync(program ?? '', ['check', 'metrics'], {
    input: metrics,
    encoding: 'utf8',
  })
  if (result.error) throw new Error(`promtool does not run: ${result.error.message}`)
  return { status: result.status, output: result.stdout + result.stderr }
}

describe.skipIf(program === null)('promtool check metrics', () => {
  it('accepts everything that is exported, every shell running', async () => {
    const exporter = new Exporter({
      engine: fakeEngine().engine,
      config: () => ({
        lastReloadSuccessful: true,
        lastSuccessSeconds: 1_700_000_000,
        reloadsSucceeded: 1,
        reloadsFailed: 0,
      }),
      denialsUnlogged: () => 0,
      sockets: () => ({ sendErrors: 0, sendQueueFull: 0 }),
      proxy: () => ({ ...new ProxyCounters(), inflight: 0, clients: 0, upstreams: 0 }),
      tokens: () => ({ verified: 0, rejected: 0, throttled: 0, cacheHits: 0, keySetFailures: 0 }),
    })
    expect(promtool(await exporter.scrape())).toEqual({ status: 0, output: '' })
  })

  it('accepts what a real core exports after some traffic', async () => {
    const world = await openHttpWorld('rules: [{ name: api, key: [ip], limit: 1/1s }]')
    for (let index = 0; index < 3; index++) await world.check({ rule: 'api', key: '192.0.2.1' })
    const text = await (await fetch(`${world.telemetry}/metrics`)).text()
    await world.close()
    expect(promtool(text)).toEqual({ status: 0, output: '' })
  })

  it('would refuse what Node’s defaults name like counters', () => {
    const refused =
      '# HELP nodejs_active_handles_total x\n# TYPE nodejs_active_handles_total gauge\n'
    expect(promtool(`${refused}nodejs_active_handles_total 1\n`).status).toBe(3)
  })
})
