/** Alerts, dashboard and runbook speak of metrics that exist, and of each other. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  InjectorCounts,
  injectorMetricDefinitions,
  injectorRegistry,
} from '../../../src/injector/injector-metrics.js'
import { metricDefinitions } from '../../../src/metrics/exporter.js'
import { prefix } from '../../../src/metrics/scraped-metric.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const read = (path: string) => readFileSync(root + path, 'utf8')

interface Described {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
}

const described: readonly Described[] = [...metricDefinitions, ...injectorMetricDefinitions]

/** Series name to the labels that it has; Node's own are taken from a registry. */
function exported(): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const { name, type, labels } of described) {
    const series = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const ending of series) {
      const own = ending === '_bucket' ? ['le', ...labels] : labels
      found.set(prefix + name + ending, own)
    }
  }
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const metric of registry.getMetricsAsArray()) found.set(metric.name, [])
  return found
}

interface RuleFile {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly annotations: Readonly<Record<string, string>>
    }[]
  }[]
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets?: readonly { readonly expr: string }[]
  }[]
  readonly templating: { readonly list: readonly { readonly query: unknown }[] }
}

const alerts = (parse(read('helm/grapevine/files/alerts.yaml')) as RuleFile).groups.flatMap(
  group => group.rules,
)
const dashboard = JSON.parse(read('helm/grapevine/files/dashboard.json')) as Dashboard
const queries = dashboard.panels.flatMap(panel =>
  (panel.targets ?? []).map(target => [panel.title, target.expr] as const),
)
const series = exported()
/** What Prometheus and the PodMonitor add. */
const added = ['namespace', 'pod', 'instance', 'ring', 'container', 'job', 'hash', 'quantile']

function namesIn(text: string): string[] {
  return text.match(/\b(?:grapevine|nodejs|process)_[a-z0-9_]+/g) ?? []
}

function unknownLabels(expression: string): string[] {
  const names = namesIn(expression)
  const allowed = new Set([...added, ...names.flatMap(name => series.get(name) ?? [])])
  const used = [
    ...[...expression.matchAll(/([a-z_]+)=~?"/g)].map(match => match[1] ?? ''),
    ...[...expression.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g)].flatMap(match =>
      (match[1] ?? '').split(',').map(label => label.trim()),
    ),
  ]
  return used.filter(label => label !== '' && !allowed.has(label))
}

describe('every query asks for series and labels that the process exports', () => {
  test.each(alerts.map(rule => [rule.alert, rule.expr] as const))('alert %s', (_name, expr) => {
    expect(namesIn(expr).length).toBeGreaterThan(0)
    expect(namesIn(expr).filter(name => !series.has(name))).toEqual([])
    expect(unknownLabels(expr)).toEqual([])
  })

  test.each(queries)('panel %s: %s', (_title, expr) => {
    expect(namesIn(expr).length).toBeGreaterThan(0)
    expect(namesIn(expr).filter(name => !series.has(name))).toEqual([])
    expect(unknownLabels(expr)).toEqual([])
  })

  test('variables of the dashboard, and the runbook', () => {
    const texts = [JSON.stringify(dashboard.templating), read('docs/runbook.md')]
    expect(texts.flatMap(namesIn).filter(name => !series.has(name))).toEqual([])
  })
})

test('the injector exports what its definitions say', async () => {
  const text = await injectorRegistry(new InjectorCounts()).metrics()
  for (const { name, type } of injectorMetricDefinitions) {
    expect(text).toContain(`# TYPE ${prefix}${name} ${type}`)
  }
})

test('each alert has its section in the runbook, and each section its alert', () => {
  const sections = [...read('docs/runbook.md').matchAll(/^## (.+)$/gm)].map(match => match[1])
  expect([...sections].sort()).toEqual(alerts.map(rule => rule.alert).sort())
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(
      `https://grapevine.dev/docs/runbook#${alert.toLowerCase()}`,
    )
    expect(annotations.summary).toMatch(/\.$/)
  }
})

test('every panel has a place of its own', () => {
  const ids = dashboard.panels.map(panel => (panel as unknown as { id: number }).id)
  expect(new Set(ids).size).toBe(ids.length)
})
