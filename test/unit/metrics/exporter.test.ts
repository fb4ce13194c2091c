import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Exporter, type ExporterSources, metricDefinitions } from '../../../src/metrics/exporter.js'
import { ProxyCounters } from '../../../src/proxy/proxy-stats.js'
import {
  coreStats,
  denied,
  fakeEngine,
  ruleSet,
  ruleSpec,
  ruleStats,
} from '../../helpers/fake-core.js'

function sources(parts: Partial<ExporterSources> = {}): ExporterSources {
  return {
    engine: fakeEngine().engine,
    config: () => ({
      lastReloadSuccessful: true,
      lastSuccessSeconds: 1_700_000_000,
      reloadsSucceeded: 2,
      reloadsFailed: 1,
    }),
    denialsUnlogged: () => 5,
    sockets: null,
    proxy: null,
    tokens: null,
    ...parts,
  }
}

const lines = (text: string): string[] => text.split('\n')

describe('Exporter', () => {
  it('exports every decision series of a known rule at 0 from the start', async () => {
    const { engine, core } = fakeEngine()
    core.ruleSet = ruleSet(ruleSpec('fresh'))
    core.currentStats = coreStats([])
    const text = lines(await new Exporter(sources({ engine })).scrape())
    for (const result of ['allowed', 'denied', 'shadow_denied', 'delayed']) {
      for (const via of ['proxy', 'check', 'auth']) {
        expect(text).toContain(
          `grapevine_decisions_total{rule="fresh",result="${result}",interface="${via}"} 0`,
        )
      }
    }
    expect(text).toContain('grapevine_keys{rule="fresh"} 0')
  })

  it('drops the series of a rule that is gone', async () => {
    const { engine, core } = fakeEngine()
    core.currentStats = coreStats([ruleStats('api'), ruleStats('gone')])
    const exporter = new Exporter(sources({ engine }))
    expect(await exporter.scrape()).not.toContain('rule="gone"')
    core.ruleSet = ruleSet(ruleSpec('gone'))
    const text = await exporter.scrape()
    expect(text).toContain('rule="gone"')
    expect(text).not.toContain('rule="api"')
  })

  it('copies the numbers of the core as they are at the scrape', async () => {
    const { engine, core } = fakeEngine()
    const exporter = new Exporter(sources({ engine }))
    core.next = denied()
    engine.check('api', ['k'], 1)
    const text = lines(await exporter.scrape())
    for (const line of [
      'grapevine_decisions_total{rule="api",result="denied",interface="proxy"} 2',
      'grapevine_requests_total{interface="check",reason="limited"} 1',
      'grapevine_keys{rule="api"} 9',
      'grapevine_estimated_overshoot_ratio{rule="api"} 1.02',
      'grapevine_key_evictions_total 1',
      'grapevine_debt_forgiven_total 2',
      'grapevine_degraded_decisions_total 4',
      'grapevine_gossip_packets_total{direction="in"} 11',
      'grapevine_gossip_bytes_total{direction="out"} 1200',
      'grapevine_gossip_entries_total{direction="out"} 5',
      'grapevine_gossip_dropped_total{reason="not_allowed"} 8',
      'grapevine_peers{state="suspect"} 1',
      'grapevine_config_last_reload_successful 1',
      'grapevine_config_last_reload_success_timestamp_seconds 1700000000',
      'grapevine_config_reloads_total{result="failure"} 1',
      `grapevine_config_hash ${0x1234_5678_9abc}`,
      'grapevine_denials_unlogged_total 5',
      'grapevine_memberlist_client_cluster_members_count 3',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('writes histograms cumulated, in seconds', async () => {
    const text = lines(await new Exporter(sources()).scrape())
    for (const line of [
      'grapevine_gossip_delta_age_seconds_bucket{le="0.001"} 4',
      'grapevine_gossip_delta_age_seconds_bucket{le="0.1"} 9',
      'grapevine_gossip_delta_age_seconds_bucket{le="+Inf"} 10',
      'grapevine_gossip_delta_age_seconds_sum 0.35',
      'grapevine_gossip_delta_age_seconds_count 10',
      'grapevine_decision_duration_seconds_count 0',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('has series of the proxy and of tokens only where they run', async () => {
    const without = await new Exporter(sources()).scrape()
    expect(without).not.toMatch(/^grapevine_(http_|upstream_|jwt_)\S* \d/m)
    const counters = new ProxyCounters()
    counters.countStatus(204)
    counters.upstreamErrors['response-timeout']++
    counters.stale = 8
    const text = lines(
      await new Exporter(
        sources({
          proxy: () => ({ ...counters, inflight: 2, clients: 3, upstreams: 4 }),
          tokens: () => ({
            verified: 1,
            rejected: 2,
            throttled: 3,
            cacheHits: 4,
            keySetFailures: 5,
          }),
          sockets: () => ({ sendErrors: 6, sendQueueFull: 7 }),
        }),
      ).scrape(),
    )
    for (const line of [
      'grapevine_http_requests_total{class="2xx"} 1',
      'grapevine_http_refused_total{reason="malformed"} 0',
      'grapevine_upstream_errors_total{reason="response-timeout"} 1',
      'grapevine_stale_answers_total 8',
      'grapevine_connections{side="upstream"} 4',
      'grapevine_inflight_requests 2',
      'grapevine_jwt_verifications_total{result="throttled"} 3',
      'grapevine_jwks_failures_total 5',
      'grapevine_gossip_send_errors_total{reason="queue_full"} 7',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('has series of the Kubernetes API only where it is asked', async () => {
    expect(await new Exporter(sources()).scrape()).not.toMatch(/^grapevine_kubernetes_\S* \d/m)
    const kubernetes = () => [
      {
        resource: 'endpointslices',
        silentMs: 1_500,
        objects: 2,
        events: 3,
        lists: 4,
        failures: { connect: 5 },
        ignored: 6,
      },
      {
        resource: 'configmaps',
        silentMs: null,
        objects: 0,
        events: 0,
        lists: 0,
        failures: {},
        ignored: 0,
      },
    ]
    const text = lines(await new Exporter(sources({ kubernetes })).scrape())
    for (const line of [
      'grapevine_kubernetes_last_event_age_seconds{resource="endpointslices"} 1.5',
      'grapevine_kubernetes_objects{resource="endpointslices"} 2',
      'grapevine_kubernetes_events_total{resource="endpointslices"} 3',
      'grapevine_kubernetes_lists_total{resource="endpointslices"} 4',
      'grapevine_kubernetes_errors_total{resource="endpointslices",reason="connect"} 5',
      'grapevine_kubernetes_errors_total{resource="configmaps",reason="forbidden"} 0',
      'grapevine_kubernetes_ignored_total{resource="endpointslices"} 6',
    ]) {
      expect(text).toContain(line)
    }
    // An API that never answered has no age, and no alert must take it for a fresh one.
    expect(text.filter(line => line.includes('age_seconds{resource="configmaps"}'))).toEqual([])
  })

  it('has every name of the contract', async () => {
    const text = await new Exporter(sources()).scrape()
    for (const name of [
      ...['decisions_total', 'decision_duration_seconds', 'keys', 'key_evictions_total'],
      ...['debt_forgiven_total', 'gossip_packets_total', 'gossip_bytes_total'],
      ...['gossip_entries_total', 'gossip_delta_age_seconds', 'peers', 'build_info'],
      ...['config_last_reload_successful', 'config_last_reload_success_timestamp_seconds'],
      ...['config_hash', 'estimated_overshoot_ratio'],
    ]) {
      expect(text).toContain(`# TYPE grapevine_${name} `)
    }
  })

  it('has Node’s own metrics, without those that promtool refuses', async () => {
    const text = await new Exporter(sources()).scrape()
    expect(text).toContain('nodejs_eventloop_lag_seconds')
    expect(text).toContain('process_resident_memory_bytes')
    expect(text).not.toMatch(/nodejs_active_(handles|requests|resources)_total/)
  })

  it('names no label that may grow: the sets are closed', () => {
    const closed = new Set([
      ...['rule', 'result', 'interface', 'reason', 'direction', 'state', 'queue'],
      ...['class', 'side', 'version', 'node_version', 'resource'],
    ])
    for (const { name, labels } of metricDefinitions) {
      for (const label of labels) expect(closed, `${name}{${label}}`).toContain(label)
    }
  })

  it('each sample has exactly the labels of its definition', async () => {
    const text = await new Exporter(sources()).scrape()
    for (const { name, labels, type } of metricDefinitions) {
      const pattern = new RegExp(`^grapevine_${name}(?:_bucket)?\\{([^}]*)\\}`, 'gm')
      for (const match of text.matchAll(pattern)) {
        const names = [...(match[1] ?? '').matchAll(/(\w+)="/g)].map(found => found[1])
        expect(names).toEqual(type === 'histogram' ? [...labels, 'le'] : labels)
      }
    }
  })
})

describe('docs/metrics.md', () => {
  const page = readFileSync(
    fileURLToPath(new URL('../../../docs/metrics.md', import.meta.url)),
    'utf8',
  )

  it('has a row for every metric, with its type, labels and meaning, and no other', () => {
    const rows = [...page.matchAll(/^\| `(grapevine_\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm)].map(
      ([, name, type, labels, help]) => ({ name, type, labels, help }),
    )
    const expected = metricDefinitions.map(({ name, type, labels, help }) => ({
      name: `grapevine_${name}`,
      type,
      labels: labels.map(label => `\`${label}\``).join(', '),
      help,
    }))
    expect(rows).toEqual(expected)
  })
})
