/**
 * Metrics of gossip. The `memberlist_…` ones have the names that Grafana's dskit gives them
 * (kv/memberlist/metrics.go and tcp_transport.go), so that Mimir's and Loki's dashboards fit after
 * a change of prefix.
 */
import { byLabel, type MetricDefinition, one } from './scraped-metric.js'
import type { Snapshot } from './snapshot.js'

export const gossipMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    name: 'gossip_packets_total',
    type: 'counter',
    labels: ['direction'],
    help: 'Datagrams of the gossip protocol.',
    read: ({ core }) =>
      byLabel('direction', { in: swim(core, 'packetsIn'), out: swim(core, 'packetsOut') }),
  },
  {
    name: 'gossip_bytes_total',
    type: 'counter',
    labels: ['direction'],
    help: 'Bytes of the gossip protocol, datagrams and streams.',
    read: ({ core }) =>
      byLabel('direction', {
        in: swim(core, 'packetBytesIn') + swim(core, 'streamBytesIn'),
        out: swim(core, 'packetBytesOut') + swim(core, 'streamBytesOut'),
      }),
  },
  {
    name: 'gossip_entries_total',
    type: 'counter',
    labels: ['direction'],
    help: 'Entries of counters, in messages and in state exchanges.',
    read: ({ core }) => byLabel('direction', { in: core.entriesIn, out: core.entriesOut }),
  },
  {
    name: 'gossip_entries_held',
    type: 'gauge',
    labels: [],
    help: 'Entries of other pods in memory: one for each key and each pod that touched it.',
    read: ({ core }) => one(core.entriesHeld),
  },
  {
    name: 'gossip_entries_evicted_total',
    type: 'counter',
    labels: [],
    help: 'Entries of other pods dropped to make room; only of keys that were back to full.',
    read: ({ core }) => one(core.entriesEvicted),
  },
  {
    name: 'gossip_entries_refused_total',
    type: 'counter',
    labels: [],
    help: 'Entries of other pods left out for want of room: what they tell is not counted here.',
    read: ({ core }) => one(core.entriesRefused),
  },
  {
    name: 'gossip_delta_age_seconds',
    type: 'histogram',
    labels: [],
    help: 'Age of news about a counter when it arrives: the lag of gossip.',
    read: ({ core: { deltaAge } }) => [
      {
        labels: {},
        bounds: deltaAge.bounds.map(bound => bound / 1000),
        counts: deltaAge.counts,
        sum: deltaAge.sum / 1000,
      },
    ],
  },
  {
    name: 'gossip_messages_ignored_total',
    type: 'counter',
    labels: [],
    help: 'Counter messages and snapshots that were foreign, too new, cut short or implausible.',
    read: ({ core }) => one(core.messagesIgnored),
  },
  {
    name: 'gossip_dropped_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Packets and messages of the gossip protocol that were dropped unread or half read.',
    read: ({ core }) => byLabel('reason', droppedByReason(core.swim)),
  },
  {
    name: 'gossip_send_errors_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Datagrams that the system refused, or that found the send queue full.',
    read: ({ sockets }) =>
      byLabel('reason', {
        error: sockets?.sendErrors ?? 0,
        queue_full: sockets?.sendQueueFull ?? 0,
      }),
  },
  {
    name: 'peers',
    type: 'gauge',
    labels: ['state'],
    help: 'Members of the gossip ring besides this one, by state.',
    read: ({ core }) => byLabel('state', core.peers),
  },
]

/** Swim's own events, under the names of the SWIM and Lifeguard papers. */
export const swimMetrics: readonly MetricDefinition<Snapshot>[] = (
  [
    ['swim_probes_total', 'probes', 'Probes of members.'],
    [
      'swim_probes_failed_total',
      'probesFailed',
      'Probes that neither member nor helpers answered.',
    ],
    ['swim_suspicions_total', 'suspicions', 'Members that came under suspicion.'],
    ['swim_refutations_total', 'refutations', 'Suspicions of this member that it refuted.'],
    ['swim_conflicts_total', 'conflicts', 'Times two members claimed one name.'],
    ['swim_stalls_total', 'stalls', 'Times this process stood still for longer than a probe.'],
  ] as const
).map(([name, key, help]) => counter(name, key, help))

export const memberlistMetrics: readonly MetricDefinition<Snapshot>[] = [
  {
    // promtool refuses a gauge of this name, and dashboards expect it: it has no type.
    name: 'memberlist_client_cluster_members_count',
    type: 'untyped',
    labels: [],
    help: 'Members of the gossip ring, this one included.',
    read: ({ core }) => one(swim(core, 'members')),
  },
  {
    name: 'memberlist_client_cluster_node_health_score',
    type: 'gauge',
    labels: [],
    help: 'Local health score (Lifeguard): 0 is healthy, more is slower.',
    read: ({ core }) => one(swim(core, 'healthScore')),
  },
  {
    name: 'memberlist_client_messages_in_broadcast_queue',
    type: 'gauge',
    labels: ['queue'],
    help: 'Messages waiting to be gossiped: membership news (gossip) and user messages (local).',
    read: ({ core }) =>
      byLabel('queue', {
        gossip: swim(core, 'broadcastQueueLength'),
        local: swim(core, 'userBroadcastQueueLength'),
      }),
  },
  {
    name: 'memberlist_client_messages_in_broadcast_queue_bytes',
    type: 'gauge',
    labels: ['queue'],
    help: 'Bytes of the messages waiting to be gossiped.',
    read: ({ core }) =>
      byLabel('queue', {
        gossip: swim(core, 'broadcastQueueBytes'),
        local: swim(core, 'userBroadcastQueueBytes'),
      }),
  },
  counter(
    'memberlist_client_messages_to_broadcast_dropped_total',
    ['broadcastsDropped', 'userMessagesTooLarge'],
    'Messages that were to be gossiped and were dropped: too large, or the queue was full.',
  ),
  counter(
    'memberlist_client_received_broadcasts_total',
    ['messagesInUser', 'streamUserMessagesIn'],
    'User messages received.',
  ),
  counter(
    'memberlist_client_received_broadcasts_bytes_total',
    'userMessageBytesIn',
    'Bytes of user messages received.',
  ),
  {
    name: 'memberlist_client_received_broadcasts_invalid_total',
    type: 'counter',
    labels: [],
    help: 'User messages received that were ignored.',
    read: ({ core }) => one(core.messagesIgnored),
  },
  counter(
    'memberlist_client_state_pushes_total',
    ['pushPullsOpened', 'pushPullsAccepted'],
    'Times this member sent its full state.',
  ),
  counter(
    'memberlist_client_state_pushes_bytes_total',
    'pushPullBytesOut',
    'Bytes of full states sent.',
  ),
  {
    name: 'memberlist_client_state_pulls_total',
    type: 'counter',
    labels: [],
    help: 'Times this member read the full state of another.',
    read: ({ core }) => {
      const begun = swim(core, 'pushPullsOpened') + swim(core, 'pushPullsAccepted')
      return one(Math.max(0, begun - swim(core, 'pushPullsFailed')))
    },
  },
  counter(
    'memberlist_client_state_pulls_bytes_total',
    'pushPullBytesIn',
    'Bytes of full states read.',
  ),
]

export const transportMetrics: readonly MetricDefinition<Snapshot>[] = [
  ...(
    [
      ['incoming_streams_total', 'streamsAccepted', 'Streams that peers opened.'],
      ['outgoing_streams_total', 'streamsOpened', 'Streams opened to peers.'],
      ['outgoing_stream_errors_total', 'streamErrors', 'Streams that failed.'],
      ['packets_received_total', 'packetsIn', 'Packets received.'],
      ['packets_received_bytes_total', 'packetBytesIn', 'Bytes of packets received.'],
      ['packets_sent_total', 'packetsOut', 'Packets sent.'],
      ['packets_sent_bytes_total', 'packetBytesOut', 'Bytes of packets sent.'],
      ['received_bytes_total', 'streamBytesIn', 'Bytes read from streams.'],
      ['sent_bytes_total', 'streamBytesOut', 'Bytes written to streams.'],
      ['unknown_connections_total', 'streamsRefused', 'Streams refused.'],
    ] as const
  ).map(([name, key, help]) => counter(`memberlist_tcp_transport_${name}`, key, help)),
  {
    name: 'memberlist_tcp_transport_packets_received_errors_total',
    type: 'counter',
    labels: [],
    help: 'Packets and messages received that could not be used.',
    read: ({ core }) =>
      one(Object.values(droppedByReason(core.swim)).reduce((sum, value) => sum + value, 0)),
  },
  {
    name: 'memberlist_tcp_transport_packets_sent_errors_total',
    type: 'counter',
    labels: [],
    help: 'Packets that the system did not take.',
    read: ({ sockets }) => one(sockets?.sendErrors ?? 0),
  },
  {
    name: 'memberlist_tcp_transport_packets_dropped_total',
    type: 'counter',
    labels: [],
    help: 'Packets dropped because the send queue was full.',
    read: ({ sockets }) => one(sockets?.sendQueueFull ?? 0),
  },
]

function counter(
  name: string,
  keys: string | readonly string[],
  help: string,
): MetricDefinition<Snapshot> {
  const all = typeof keys === 'string' ? [keys] : keys
  return {
    name,
    type: 'counter',
    labels: [],
    help,
    read: ({ core }) => one(all.reduce((sum, key) => sum + swim(core, key), 0)),
  }
}

/** A number of the protocol's; `SwimStats` in swim/stats.ts lists the names. */
function swim(core: Snapshot['core'], key: string): number {
  return core.swim[key] ?? 0
}

/** `droppedVersionTooNew` becomes `version_too_new`; the set of names is closed. */
function droppedByReason(stats: Snapshot['core']['swim']): Record<string, number> {
  return Object.fromEntries(
    Object.entries(stats)
      .filter(([name]) => /^dropped[A-Z]/.test(name))
      .map(([name, value]) => [snakeCase(name.slice('dropped'.length)), value]),
  )
}

function snakeCase(name: string): string {
  return name.replace(/(?!^)([A-Z])/g, '_$1').toLowerCase()
}
