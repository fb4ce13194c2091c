/**
 * A metric that is read when it is scraped. What counts (core, shells) keeps plain numbers; nothing
 * on a request path touches the exporter. Stands in a prom-client registry beside its own metrics.
 */
import type { Metric, Registry } from 'prom-client'
import type { BucketHistogram } from '../lib/bucket-histogram.js'

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

export interface HistogramSample {
  readonly labels: Labels
  readonly bounds: readonly number[]
  /** Per bucket, not cumulated, the last one above all bounds. */
  readonly counts: readonly number[]
  readonly sum: number
}

interface Described {
  /** Without the `grapevine_` prefix. */
  readonly name: string
  readonly help: string
  /** Names of its labels, all of them closed sets. */
  readonly labels: readonly string[]
}

/** What a metric is called and how it is read from a snapshot `S` of all that counts. */
export type MetricDefinition<S> = Described &
  (
    | {
        /** `untyped`: a gauge whose name, given by others, ends in what only counters may. */
        readonly type: 'counter' | 'gauge' | 'untyped'
        readonly read: (snapshot: S) => readonly Sample[]
      }
    | { readonly type: 'histogram'; readonly read: (snapshot: S) => readonly HistogramSample[] }
  )

export const prefix = 'grapevine_'

interface PromValue {
  readonly labels: Labels
  readonly value: number
  readonly metricName?: string
}

/** Puts `definition` into the registry; `snapshot` is called at each scrape. */
export function registerScraped<S>(
  registry: Registry,
  definition: MetricDefinition<S>,
  snapshot: () => S,
): void {
  const name = prefix + definition.name
  const values = (): PromValue[] =>
    definition.type === 'histogram'
      ? definition.read(snapshot()).flatMap(sample => histogramValues(name, sample))
      : [...definition.read(snapshot())]
  const metric = {
    name,
    help: definition.help,
    get: async () => ({
      name,
      help: definition.help,
      type: definition.type,
      aggregator: 'sum',
      values: values(),
    }),
    reset: () => {},
  }
  // The registry only ever calls get() and reset(); its type asks for one of its own classes.
  registry.registerMetric(metric as unknown as Metric)
}

function histogramValues(name: string, sample: HistogramSample): PromValue[] {
  let total = 0
  const buckets = sample.counts.map((count, index) => {
    total += count
    const bound = sample.bounds[index]
    const le = bound === undefined ? '+Inf' : String(bound)
    return { metricName: `${name}_bucket`, labels: { ...sample.labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: sample.labels, value: sample.sum },
    { metricName: `${name}_count`, labels: sample.labels, value: total },
  ]
}

/** A single sample without labels. */
export function one(value: number): Sample[] {
  return [{ labels: {}, value }]
}

/** One sample per value of one label. */
export function byLabel(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }))
}

export function ofHistogram(histogram: BucketHistogram): HistogramSample[] {
  return [{ labels: {}, bounds: histogram.bounds, counts: histogram.counts(), sum: histogram.sum }]
}
