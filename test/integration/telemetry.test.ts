import { afterEach, describe, expect, it } from 'vitest'
import { type HttpWorld, openHttpWorld, rulesOf } from '../helpers/http-world.js'

let world: HttpWorld

afterEach(() => world.close())

const metrics = async (): Promise<string[]> =>
  (await (await fetch(`${world.telemetry}/metrics`)).text()).split('\n')

const probe = async (path: string): Promise<number> => (await fetch(world.telemetry + path)).status

describe('telemetry against the real core', () => {
  it('series of known rules are there at 0, count, and go with their rule', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 1/1h }]')
    const series = (result: string, value: number): string =>
      `grapevine_decisions_total{rule="api",result="${result}",interface="check"} ${value}`
    expect(await metrics()).toEqual(
      expect.arrayContaining([series('allowed', 0), series('denied', 0), series('delayed', 0)]),
    )
    for (let index = 0; index < 3; index++) await world.check({ rule: 'api' })
    expect(await metrics()).toEqual(
      expect.arrayContaining([
        series('allowed', 1),
        series('denied', 2),
        'grapevine_keys{rule="api"} 1',
        'grapevine_requests_total{interface="check",reason="limited"} 2',
      ]),
    )
    world.engine.applyRules(rulesOf('rules: [{ name: other, key: [global], limit: 1/1h }]'))
    const after = (await metrics()).join('\n')
    expect(after).not.toContain('rule="api"')
    expect(after).toContain('rule="other"')
  })

  it('shadow denials are counted as such', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 1/1h, mode: shadow }]')
    for (let index = 0; index < 3; index++) {
      expect(await world.check({ rule: 'api' })).toMatchObject({ allowed: true })
    }
    expect(await metrics()).toContain(
      'grapevine_decisions_total{rule="api",result="shadow_denied",interface="check"} 2',
    )
  })

  it('no client key is anywhere in the metrics', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: ["header:x-key"], limit: 1/1h }]')
    for (let index = 0; index < 3; index++) {
      await world.check({ rule: 'api', key: 'very-secret-client' })
    }
    expect((await metrics()).join('\n')).not.toContain('very-secret-client')
  })

  it('the config hash is the one that the member list shows', async () => {
    world = await openHttpWorld('rules: [{ name: api, key: [global], limit: 1/1h }]')
    const members = (await (await fetch(`${world.admin}/members`)).json()) as {
      members: { meta: { configHash: number } }[]
    }
    expect(await metrics()).toContain(
      `grapevine_config_hash ${members.members[0]?.meta.configHash}`,
    )
  })

  it('probes follow the life of the process', async () => {
    world = await openHttpWorld('rules: []')
    expect(await Promise.all(['/startupz', '/readyz', '/livez'].map(probe))).toEqual([
      503, 503, 200,
    ])
    world.readiness.listenersUp()
    world.readiness.rulesSettled()
    expect(await Promise.all(['/startupz', '/readyz', '/livez'].map(probe))).toEqual([
      200, 503, 200,
    ])
    world.clock.nowMs += 2_000
    expect(await probe('/readyz')).toBe(200)
    world.readiness.startDraining()
    expect(await Promise.all(['/startupz', '/readyz', '/livez'].map(probe))).toEqual([
      200, 503, 200,
    ])
  })
})
