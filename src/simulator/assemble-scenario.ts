/**
 * From a scenario file that fits the schema to a `Scenario`: notations become numbers, defaults are
 * filled in, and what a schema cannot say (times that end before they begin, pods that do not
 * exist) is found.
 */
import type { KeyPart, KeySource } from '../limiter/rule.js'
import type {
  Scenario,
  ScenarioEvent,
  ScenarioRule,
  SimAlgorithm,
  TrafficEntry,
} from './scenario.js'
import type { RawEvent, RawScenario, RawTraffic } from './scenario-schema.js'
import { parseDurationMs, parseLimit } from './scenario-values.js'

/** Where a field stands: names and indices from the top. */
export type FieldPath = readonly (string | number)[]

/** Receives what is wrong with the field at a path. */
export type Complain = (path: FieldPath, message: string) => void

/** A value as an error shows it, at most 60 characters. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** Every value that does not make sense goes to `complain`; the result is good if none did. */
export function assembleScenario(raw: RawScenario, complain: Complain): Scenario {
  const durationMs = parseDurationMs(raw.duration)!
  if (durationMs <= 0) complain(['duration'], 'must be longer than nothing, such as 20s')
  const joining = (raw.events ?? []).reduce((sum, event) => sum + (event.join ?? 0), 0)
  const checkPods = podChecker(raw.pods, joining, complain)
  return {
    pods: raw.pods,
    durationMs,
    rule: assembleRule(raw.rule, complain),
    traffic: raw.traffic.map((entry, i) =>
      assembleTraffic(entry, ['traffic', i], durationMs, checkPods, complain),
    ),
    network: assembleNetwork(raw, complain),
    events: (raw.events ?? [])
      .flatMap((event, i) => assembleEvent(event, ['events', i], durationMs, checkPods, complain))
      .sort((a, b) => a.atMs - b.atMs),
  }
}

function podChecker(pods: number, joining: number, complain: Complain) {
  const last = pods + joining - 1
  return (list: readonly number[], path: FieldPath): void => {
    list.forEach((pod, i) => {
      if (pod <= last) return
      const joined = joining > 0 ? ` (${joining} of them join)` : ''
      complain([...path, i], `names pod ${pod}; there are pods 0 to ${last}${joined}`)
    })
  }
}

function assembleRule(raw: RawScenario['rule'], complain: Complain): ScenarioRule {
  const limit = parseLimit(raw.limit)
  if (limit === null) {
    complain(['rule', 'limit'], `must be COUNT/DURATION such as 1000/1s, not ${shown(raw.limit)}`)
  }
  const algorithm = (raw.algorithm ?? 'token-bucket') as SimAlgorithm
  for (const name of ['queue', 'maxWait'] as const) {
    if (raw[name] !== undefined && algorithm !== 'leaky-bucket') {
      complain(['rule', name], 'belongs to a leaky bucket: leave it out')
    }
  }
  const counted = limit ?? { count: 1, windowMs: 1000, calendar: null }
  // A leaky bucket without any bound would delay for ever instead of limiting.
  const unbounded = algorithm === 'leaky-bucket' && raw.queue === undefined && !raw.maxWait
  return {
    limit: counted,
    burst: algorithm === 'token-bucket' ? (raw.burst ?? null) : null,
    algorithm,
    onPartition: (raw.onPartition ?? 'share') as ScenarioRule['onPartition'],
    key: (raw.key ?? ['global']).map((text, i) => parseKey(text, ['rule', 'key', i], complain)),
    queue: raw.queue ?? (unbounded ? counted.count : null),
    maxWaitMs: raw.maxWait === undefined ? null : parseDurationMs(raw.maxWait),
  }
}

function parseKey(text: string, path: FieldPath, complain: Complain): KeyPart {
  return text.split('|').map(source => parseKeySource(source.trim(), path, complain))
}

function parseKeySource(text: string, path: FieldPath, complain: Complain): KeySource {
  if (text === 'global' || text === 'ip') return { kind: text }
  const name = /^header:([a-z0-9-]+)$/i.exec(text)?.[1]
  if (name === undefined) {
    complain(path, `must be global, ip or header:NAME in a simulation, not ${shown(text)}`)
  }
  return { kind: 'header', name: (name ?? '').toLowerCase() }
}

function assembleTraffic(
  raw: RawTraffic,
  path: FieldPath,
  durationMs: number,
  checkPods: (list: readonly number[], path: FieldPath) => void,
  complain: Complain,
): TrafficEntry {
  if (raw.pods !== 'all') checkPods(raw.pods, [...path, 'pods'])
  const fromMs = raw.from === undefined ? 0 : parseDurationMs(raw.from)!
  const toMs = raw.to === undefined ? durationMs : parseDurationMs(raw.to)!
  if (toMs <= fromMs) complain([...path, raw.to ? 'to' : 'from'], 'ends before it begins')
  if ((raw.period === undefined) !== (raw.on === undefined)) {
    const [given, other] = raw.period === undefined ? ['on', 'period'] : ['period', 'on']
    complain([...path, given], `needs ${other} beside it, as in { period: 4s, on: 1s }`)
  }
  const periodMs = raw.period === undefined ? null : parseDurationMs(raw.period)!
  const onMs = raw.on === undefined ? 0 : parseDurationMs(raw.on)!
  if (periodMs !== null && raw.on !== undefined && (onMs <= 0 || onMs > periodMs)) {
    complain([...path, 'on'], `must be above 0 and at most the period, ${raw.period}`)
  }
  return {
    pods: raw.pods,
    ratePerSecond: raw.rate,
    fromMs,
    toMs: Math.min(toMs, durationMs),
    periodMs,
    onMs,
    keys: raw.keys ?? 1,
  }
}

function assembleNetwork(raw: RawScenario, complain: Complain): Scenario['network'] {
  const network = raw.network ?? {}
  const latencyMs = parseDurationMs(network.latency ?? '2ms')!
  const jitterMs =
    network.jitter === undefined ? Math.min(1, latencyMs) : parseDurationMs(network.jitter)!
  if (jitterMs > latencyMs) {
    complain(['network', 'jitter'], `must be at most the latency, ${network.latency ?? '2ms'}`)
  }
  return {
    latencyMs,
    jitterMs,
    loss: network.loss ?? 0,
    duplicate: network.duplicate ?? 0,
    reorder: network.reorder ?? 0,
    mtuBytes: network.mtu ?? 1472,
  }
}

const actions = ['partition', 'block', 'pause', 'join', 'kill', 'leave', 'restart'] as const

function assembleEvent(
  raw: RawEvent,
  path: FieldPath,
  durationMs: number,
  checkPods: (list: readonly number[], path: FieldPath) => void,
  complain: Complain,
): ScenarioEvent[] {
  const given = actions.filter(action => raw[action] !== undefined)
  const action = given[0]
  if (given.length !== 1 || action === undefined) {
    const found = given.length === 0 ? 'none' : given.join(' and ')
    complain(path, `must have exactly one of ${actions.join(', ')}; it has ${found}`)
    return []
  }
  const lasting = action === 'partition' || action === 'pause' || action === 'block'
  const atMs = parseDurationMs(raw.at)!
  const untilMs = raw.until === undefined ? durationMs : parseDurationMs(raw.until)!
  if (raw.until !== undefined && !lasting) {
    complain([...path, 'until'], `does not go with ${action}, which happens at once: leave it out`)
  } else if (untilMs <= atMs && lasting) {
    complain([...path, raw.until ? 'until' : 'at'], 'ends before it begins')
  }
  return [eventOf(action, raw, path, atMs, untilMs, checkPods, complain)]
}

function eventOf(
  action: (typeof actions)[number],
  raw: RawEvent,
  path: FieldPath,
  atMs: number,
  untilMs: number,
  checkPods: (list: readonly number[], path: FieldPath) => void,
  complain: Complain,
): ScenarioEvent {
  switch (action) {
    case 'partition': {
      const groups = raw.partition!
      groups.forEach((group, i) => {
        checkPods(group, [...path, 'partition', i])
      })
      const all = groups.flat()
      const twice = all.find((pod, i) => all.indexOf(pod) !== i)
      if (twice !== undefined) {
        complain([...path, 'partition'], `has pod ${twice} in two groups; put it in one`)
      }
      return { kind: 'partition', atMs, untilMs, groups }
    }
    case 'block':
      checkPods(raw.block!.from, [...path, 'block', 'from'])
      checkPods(raw.block!.to, [...path, 'block', 'to'])
      return { kind: 'block', atMs, untilMs, from: raw.block!.from, to: raw.block!.to }
    case 'pause':
      checkPods(raw.pause!, [...path, 'pause'])
      return { kind: 'pause', atMs, untilMs, pods: raw.pause! }
    case 'join':
      return { kind: 'join', atMs, count: raw.join! }
    default:
      checkPods(raw[action]!, [...path, action])
      return { kind: action, atMs, pods: raw[action]! }
  }
}
