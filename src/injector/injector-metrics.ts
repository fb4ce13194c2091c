/** The injector's own metrics, on its telemetry listener. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import { byLabel, type MetricDefinition, one, registerScraped } from '../metrics/scraped-metric.js'
import { version } from '../version.js'
import type { AdmissionResult } from './admission.js'

const results: readonly (AdmissionResult | 'invalid')[] = [
  'injected',
  'already-injected',
  'opted-out',
  'host-network',
  'not-a-pod',
  'failed',
  'invalid',
]

export class InjectorCounts {
  readonly requests: Record<string, number> = Object.fromEntries(results.map(name => [name, 0]))
  certificateReloads = 0
  certificateFailures = 0
  serviceLookupFailures = 0
  /** Unix time in milliseconds; 0: no certificate yet. */
  certificateNotAfterMs = 0

  answered(result: AdmissionResult | 'invalid'): void {
    this.requests[result] = (this.requests[result] ?? 0) + 1
  }
}

export const injectorMetricDefinitions: readonly MetricDefinition<InjectorCounts>[] = [
  {
    name: 'injector_admission_requests_total',
    type: 'counter',
    labels: ['result'],
    help: 'Admission requests, by what was done with the pod.',
    read: counts => byLabel('result', counts.requests),
  },
  {
    name: 'injector_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'When the certificate in use ends, Unix time; 0: there is none yet.',
    read: counts => one(counts.certificateNotAfterMs / 1000),
  },
  {
    name: 'injector_certificate_reloads_total',
    type: 'counter',
    labels: [],
    help: 'Times another certificate was taken into use.',
    read: counts => one(counts.certificateReloads),
  },
  {
    name: 'injector_certificate_failures_total',
    type: 'counter',
    labels: [],
    help: 'Times the certificate could not be read, renewed or made known; the last one stayed.',
    read: counts => one(counts.certificateFailures),
  },
  {
    name: 'injector_service_lookup_failures_total',
    type: 'counter',
    labels: [],
    help: 'Times the Services of a namespace could not be read; bypasses were not reported then.',
    read: counts => one(counts.serviceLookupFailures),
  },
  {
    name: 'injector_build_info',
    type: 'gauge',
    labels: ['version', 'node_version'],
    help: 'Which injector runs here; always 1.',
    read: () => [{ labels: { version, node_version: process.version }, value: 1 }],
  },
]

/** Gauges that prom-client names like counters; `promtool check metrics` refuses them. */
const refusedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

export function injectorRegistry(counts: InjectorCounts): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of refusedByPromtool) registry.removeSingleMetric(name)
  for (const definition of injectorMetricDefinitions) {
    registerScraped(registry, definition, () => counts)
  }
  return registry
}
