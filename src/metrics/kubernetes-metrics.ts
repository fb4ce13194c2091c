/** Metrics of what is watched through the Kubernetes API. Absent where nothing is. */
import { kubeFailures } from '../discovery/kube-api.js'
import type { ReflectorStats } from '../discovery/reflector.js'
import type { MetricDefinition, Sample } from './scraped-metric.js'
import type { Snapshot } from './snapshot.js'

function each(read: (stats: ReflectorStats) => number | null) {
  return ({ kubernetes }: Snapshot): Sample[] =>
    kubernetes.flatMap(stats => {
      const value = read(stats)
      return value === null ? [] : [{ labels: { resource: stats.resource }, value }]
    })
}

export const kubernetesMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'kubernetes_last_event_age_seconds',
    type: 'gauge',
    labels: ['resource'],
    help: 'Time since the Kubernetes API last told anything: an answer, an event or a bookmark.',
    read: each(({ silentMs }) => (silentMs === null ? null : silentMs / 1000)),
  },
  {
    name: 'kubernetes_objects',
    type: 'gauge',
    labels: ['resource'],
    help: 'Objects known from the Kubernetes API.',
    read: each(({ objects }) => objects),
  },
  {
    name: 'kubernetes_events_total',
    type: 'counter',
    labels: ['resource'],
    help: 'Changes that the Kubernetes API told of.',
    read: each(({ events }) => events),
  },
  {
    name: 'kubernetes_lists_total',
    type: 'counter',
    labels: ['resource'],
    help: 'Times everything was read anew, at the start and after a version had expired.',
    read: each(({ lists }) => lists),
  },
  {
    name: 'kubernetes_errors_total',
    type: 'counter',
    labels: ['resource', 'reason'],
    help: 'Requests to the Kubernetes API that failed; what was known stayed.',
    read: ({ kubernetes }) =>
      kubernetes.flatMap(({ resource, failures }) =>
        kubeFailures.map(reason => ({
          labels: { resource, reason },
          value: failures[reason] ?? 0,
        })),
      ),
  },
  {
    name: 'kubernetes_ignored_total',
    type: 'counter',
    labels: ['resource'],
    help: 'Objects and addresses beyond the most that are kept, and events that made no sense.',
    read: each(({ ignored }) => ignored),
  },
]
