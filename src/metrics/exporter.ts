/** Every metric once, in one registry, beside Node's own. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { ReflectorStats } from '../discovery/reflector.js'
import type { Engine } from '../engine.js'
import type { ProxyStats } from '../proxy/proxy-stats.js'
import { version } from '../version.js'
import {
  gossipMetrics,
  memberlistMetrics,
  swimMetrics,
  transportMetrics,
} from './gossip-metrics.js'
import { kubernetesMetrics } from './kubernetes-metrics.js'
import { configMetrics, limiterMetrics } from './limiter-metrics.js'
import { type MetricDefinition, one, registerScraped } from './scraped-metric.js'
import { proxyMetrics, tokenMetrics } from './shell-metrics.js'
import type { ConfigStatus, Snapshot, SocketStats, TokenStats } from './snapshot.js'

export interface ExporterSources {
  readonly engine: Pick<Engine, 'stats' | 'rules' | 'durations' | 'reasons' | 'failures'>
  readonly config: () => ConfigStatus
  readonly denialsUnlogged: () => number
  /** Null: that shell does not run, and has no series. */
  readonly sockets: (() => SocketStats) | null
  readonly proxy: (() => ProxyStats) | null
  readonly tokens: (() => TokenStats) | null
  readonly kubernetes?: () => readonly ReflectorStats[]
}

/** Gauges that prom-client names like counters; `promtool check metrics` refuses them. */
const refusedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

const buildInfo: MetricDefinition<Snapshot> = {
  name: 'build_info',
  type: 'gauge',
  labels: ['version', 'node_version'],
  help: 'What runs here; always 1.',
  read: () => [{ ...one(1)[0]!, labels: { version, node_version: process.version } }],
}

/** All definitions, for the registry and for the table in docs/metrics.md. */
export const metricDefinitions: readonly MetricDefinition<Snapshot>[] = [
  ...limiterMetrics,
  ...configMetrics,
  ...gossipMetrics,
  ...swimMetrics,
  ...memberlistMetrics,
  ...transportMetrics,
  ...proxyMetrics,
  ...tokenMetrics,
  ...kubernetesMetrics,
  buildInfo,
]

export class Exporter {
  readonly #sources: ExporterSources
  readonly #registry = new Registry()
  #snapshot: Snapshot | null = null

  constructor(sources: ExporterSources) {
    this.#sources = sources
    collectDefaultMetrics({ register: this.#registry })
    for (const name of refusedByPromtool) this.#registry.removeSingleMetric(name)
    for (const definition of metricDefinitions) {
      registerScraped(this.#registry, definition, () => this.#snapshot ?? this.#take())
    }
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** The text of one scrape; all numbers of it are of one moment. */
  async scrape(): Promise<string> {
    this.#snapshot = this.#take()
    return await this.#registry.metrics()
  }

  #take(): Snapshot {
    const { engine, config, sockets, proxy, tokens, kubernetes, denialsUnlogged } = this.#sources
    const rules = engine.rules()
    return {
      core: engine.stats(),
      rules: rules.rules.map(rule => rule.name),
      configHash: rules.hash,
      durations: engine.durations,
      reasons: engine.reasons,
      coreFailures: engine.failures,
      config: config(),
      sockets: sockets?.() ?? null,
      proxy: proxy?.() ?? null,
      tokens: tokens?.() ?? null,
      kubernetes: kubernetes?.() ?? [],
      denialsUnlogged: denialsUnlogged(),
    }
  }
}
