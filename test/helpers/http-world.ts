/** The real core, one node of it, behind real HTTP listeners on loopback. No gossip sockets. */
import type { FastifyInstance } from 'fastify'
import { type Logger, pino } from 'pino'
import { parseRules } from '../../src/config/parse.js'
import { Core } from '../../src/core.js'
import { Engine } from '../../src/engine.js'
import { systemEntropy, systemRandom } from '../../src/gossip/system-clock.js'
import { type AdminOptions, addAdmin } from '../../src/http/admin.js'
import { addCheckApi } from '../../src/http/check-api.js'
import { trustedNetworks } from '../../src/http/client-address.js'
import { addForwardAuth } from '../../src/http/forward-auth.js'
import { Readiness } from '../../src/http/readiness.js'
import { createServer, listen } from '../../src/http/server.js'
import { addTelemetry } from '../../src/http/telemetry.js'
import type { RuleSet } from '../../src/limiter/rule.js'
import { DenialLog } from '../../src/metrics/denial-log.js'
import { Exporter } from '../../src/metrics/exporter.js'
import { createLogger, setLogLevel } from '../../src/metrics/logger.js'
import { lanDefaults } from '../../src/swim/options.js'
import type { MemberName } from '../../src/vocabulary.js'
import { FakeClock } from './fake-core.js'

export function rulesOf(text: string): RuleSet {
  const result = parseRules([{ name: 'rules.yaml', text: `version: 1\n${text}` }])
  if (!result.ok) throw new Error(result.findings.map(({ message }) => message).join('\n'))
  return result.rules
}

export interface HttpWorld {
  readonly engine: Engine
  readonly core: Core
  /** Time stands still unless a test moves it. */
  readonly clock: FakeClock
  readonly readiness: Readiness
  readonly api: string
  readonly admin: string
  readonly telemetry: string
  readonly log: Logger
  /** Lines of the log, parsed. */
  readonly lines: Record<string, unknown>[]
  check(body: unknown): Promise<Record<string, unknown>>
  close(): Promise<void>
}

export async function openHttpWorld(
  rulesText: string,
  adminParts: Partial<AdminOptions> = {},
): Promise<HttpWorld> {
  const clock = new FakeClock()
  const rules = rulesOf(rulesText)
  const core = new Core(
    {
      node: 'pod-a',
      version: '0.1.0',
      startWallMs: clock.wallMs(),
      swim: {
        ...lanDefaults,
        name: 'pod-a-1' as MemberName,
        advertise: { host: '127.0.0.1', port: 7946 },
      },
      counters: { keysMax: 1000, secret: null },
      rules,
    },
    { random: systemRandom, entropy: systemEntropy },
  )
  core.start(clock.monotonicMs(), clock.wallMs())
  const engine = new Engine({ core, clock, wake: () => void core.takeEffects() })
  const readiness = new Readiness({ clock, synced: () => engine.synced() })
  const lines: Record<string, unknown>[] = []
  const log = createLogger({
    level: 'info',
    node: 'pod-a',
    destination: { write: line => void lines.push(JSON.parse(line)) },
  })
  const denials = new DenialLog(log)
  engine.setDenialListener(denials.denied)
  const trustedProxies = trustedNetworks([])
  const servers = [0, 1, 2].map(() => createServer(pino({ level: 'silent' })))
  const [api, admin, telemetry] = servers as [FastifyInstance, FastifyInstance, FastifyInstance]
  addCheckApi(api, { engine, trustedProxies, jwt: null })
  addForwardAuth(api, {
    engine,
    trustedProxies,
    jwt: null,
    headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'epoch' },
    random: () => 0,
  })
  addAdmin(admin, {
    engine,
    readiness,
    node: 'pod-a',
    version: '0.1.0',
    revealKeys: false,
    trustedProxies,
    jwt: null,
    config: () => ({}),
    reload: async () => ({ ok: true, hash: rules.hash }),
    rulesAccepted: () => true,
    drain: () => {
      readiness.startDraining()
      engine.setDraining()
    },
    setLogLevel: level => setLogLevel(log, level),
    ...adminParts,
  })
  const exporter = new Exporter({
    engine,
    config: () => ({
      lastReloadSuccessful: true,
      lastSuccessSeconds: clock.wallMs() / 1000,
      reloadsSucceeded: 1,
      reloadsFailed: 0,
    }),
    denialsUnlogged: () => denials.unlogged,
    sockets: null,
    proxy: null,
    tokens: null,
  })
  addTelemetry(telemetry, { exporter, readiness })
  const urls = await Promise.all(servers.map(url))
  return {
    engine,
    core,
    clock,
    readiness,
    log,
    lines,
    api: urls[0]!,
    admin: urls[1]!,
    telemetry: urls[2]!,
    check: async body => {
      const response = await fetch(`${urls[0]}/v1/check`, {
        method: 'POST',
        body: JSON.stringify(body),
      })
      return (await response.json()) as Record<string, unknown>
    },
    close: async () => {
      await Promise.all(servers.map(server => server.close()))
    },
  }
}

async function url(app: FastifyInstance): Promise<string> {
  const bound = await listen(app, { kind: 'tcp', host: '127.0.0.1', port: 0 }, 'test')
  return bound.kind === 'tcp' ? `http://127.0.0.1:${bound.port}` : ''
}
