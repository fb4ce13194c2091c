/**
 * What the heart costs: decisions per second on known keys, alone and with fifty pods reporting, what
 * they leave for the collector, and entries per second through the counter codec. Pure core: no sockets.
 */
import {
  createWireEntry,
  MessageWriter,
  newsKind,
  readMessage,
} from '../src/counters/counter-codec.js'
import { CounterTable } from '../src/counters/counter-table.js'
import { Replicator } from '../src/counters/replicator.js'
import { Limiter } from '../src/limiter/limiter.js'
import type { RequestFacts } from '../src/limiter/request-facts.js'
import type { LimitSpec, RuleSet } from '../src/limiter/rule.js'
import type { MemberName, OriginId, RuleName } from '../src/vocabulary.js'
import { heapGrowth } from '../test/helpers/heap-growth.js'
import { plainRule } from '../test/helpers/plain-rule.js'

export interface BenchRow {
  readonly name: string
  /** 0 for a row that measures a size. */
  readonly opsPerSecond: number
  /** 0 for a row that measures a speed. */
  readonly bytesEach: number
}

const wallMs = 1_700_000_000_000
/** Asked ten million times a second, nearly all of it is denied. */
const quick: LimitSpec = { count: 1000, windowMs: 1000, calendar: null }
/** Admits all of it. */
const ample: LimitSpec = { count: 1_000_000_000, windowMs: 1000, calendar: null }

function rulesOf(limit: LimitSpec): RuleSet {
  return {
    allow: [],
    deny: [],
    hash: 1,
    rules: [
      {
        ...plainRule,
        name: 'api' as RuleName,
        key: [[{ kind: 'header', name: 'x-key' }]],
        limit,
      },
    ],
  }
}

interface Pod {
  readonly table: CounterTable
  readonly replicator: Replicator
  readonly limiter: Limiter
}

function podOf(keysMax: number, limit: LimitSpec, origin = 1): Pod {
  const seed = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, origin])
  const table = new CounterTable({ keysMax, secret: null, label: 'bench', seed })
  const replicator = new Replicator(
    { table, origin: originOf(origin), payloadBytesMax: 1300 },
    { random: () => 0.5 },
  )
  const limiter = new Limiter({ store: table })
  limiter.setRules(rulesOf(limit), 0, wallMs)
  return { table, replicator, limiter }
}

function originOf(number: number): OriginId {
  return number.toString(16).padStart(16, '0') as OriginId
}

const current = { key: '' }
const facts: RequestFacts = {
  method: 'GET',
  path: '/api/x',
  query: '',
  host: 'shop',
  ip: '192.0.2.1',
  peerTrusted: false,
  jwt: null,
  header: name => (name === 'x-key' ? current.key : undefined),
}

/** Best of many short rounds, five at least, so that a busy neighbour does not count. */
function opsPerSecond(count: number, round: () => void): number {
  let best = 0
  for (let n = 0; n < Math.max(5, 2_000_000 / count); n++) {
    const start = performance.now()
    round()
    best = Math.max(best, (count * 1000) / (performance.now() - start))
  }
  return best
}

function decideRow(name: string, pod: Pod, keys: readonly string[], count: number): BenchRow {
  let atMs = 1000
  const round = () => {
    for (let n = 0; n < count; n++) {
      current.key = keys[n % keys.length] as string
      atMs += 0.0001
      pod.limiter.decide(facts, 'proxy', atMs, wallMs + atMs)
    }
  }
  round()
  return { name, opsPerSecond: opsPerSecond(count, round), bytesEach: 0 }
}

/** A pod that fifty others have just told of their use of one key. */
function reportedPod(limit = quick): Pod {
  const pod = podOf(1024, limit)
  const peers = Array.from({ length: 49 }, (_, n) => ({
    member: `pod-${n}` as MemberName,
    node: `pod-${n}`,
    origin: originOf(n + 2),
    draining: false,
    silent: false,
  }))
  pod.replicator.setPeers(peers, 50, 0)
  for (let n = 0; n < 49; n++) {
    const other = podOf(16, limit, n + 2)
    other.replicator.setPeers([{ ...peers[0]!, origin: originOf(1) }], 2, 0)
    for (let asked = 0; asked < 20; asked++) {
      other.limiter.check('api', ['client'], 1, 'check', 990, wallMs + 990)
    }
    other.replicator.flush(991, wallMs, (_to, payload) => {
      pod.replicator.handleMessage(payload, 993, wallMs)
    })
  }
  return pod
}

/** Decisions per second through the whole limiter, matching included, and without it. */
export function coreDecisionBench(): BenchRow[] {
  const many = Array.from({ length: 100_000 }, (_, n) => `client-${n}`)
  const rows = [
    mapRow(),
    decideRow('decide, 1 key', podOf(1024, quick), ['client'], 20_000),
    decideRow('decide, 1 key, 50 pods reporting', reportedPod(), ['client'], 20_000),
    decideRow('the same, admitted', reportedPod(ample), ['client'], 20_000),
    decideRow('decide, 100k keys', podOf(131_072, quick), many, 200_000),
  ]
  const allocations = [
    allocationRow('allocation per decision, 1 key', podOf(1024, quick)),
    allocationRow('the same, 50 pods reporting', reportedPod()),
    allocationRow('the same, admitted', reportedPod(ample)),
  ]
  return [...rows, knownRow(), ...allocations, snapshotRow(many)]
}

/** For comparison: what a decision could at best cost is a look-up, and this is one in a loop. */
function mapRow(): BenchRow {
  const count = 20_000
  const keys = Array.from({ length: 1000 }, (_, n) => `client-${n}`)
  const map = new Map(keys.map((key, n) => [key, { n }]))
  let sum = 0
  const round = () => {
    for (let n = 0; n < count; n++) sum += map.get(keys[n % 1000] as string)?.n ?? 0
  }
  const speed = opsPerSecond(count, round)
  if (sum === 0) throw new Error('the look-ups found nothing')
  return { name: 'a Map look-up, for comparison', opsPerSecond: speed, bytesEach: 0 }
}

/** Heap growth over a million decisions, once V8 has translated the path. */
function allocationRow(name: string, pod: Pod): BenchRow {
  current.key = 'client'
  const decide = (monotonicMs: number, nowMs: number) => {
    pod.limiter.decide(facts, 'proxy', monotonicMs, nowMs)
  }
  heapGrowth(100, 1000, wallMs, decide)
  // A look during which V8 collected all the same says nothing.
  const growth = heapGrowth(500, 1001, wallMs, decide).filter(bytes => bytes >= 0)
  const bytesEach = growth.reduce((sum, bytes) => sum + bytes, 0) / growth.length
  return { name, opsPerSecond: 0, bytesEach }
}

/** Without matching: the counter is found, judged, charged or not, and the answer filled in. */
function knownRow(): BenchRow {
  const pod = reportedPod()
  const count = 20_000
  pod.limiter.check('api', ['client'], 1, 'check', 1000, wallMs)
  const key = pod.table.slots.key[0] ?? ''
  const limit = pod.limiter.rules.rules[0]?.limit ?? null
  let atMs = 1000
  const round = () => {
    for (let n = 0; n < count; n++) {
      atMs += 0.0001
      pod.limiter.decideKnown(0, limit, key, 1, 'proxy', atMs, wallMs + atMs)
    }
  }
  round()
  const name = 'decide, matching excluded, 50 pods reporting'
  return { name, opsPerSecond: opsPerSecond(count, round), bytesEach: 0 }
}

function fill(pod: Pod, keys: readonly string[], limit: LimitSpec): void {
  for (const key of keys) {
    current.key = key
    pod.limiter.decide(facts, 'proxy', 1, wallMs)
  }
  for (const origin of [2, 3]) {
    const other = podOf(keys.length, limit, origin)
    for (const key of keys) {
      current.key = key
      other.limiter.decide(facts, 'proxy', 1, wallMs)
    }
    pod.replicator.importTotals(other.replicator.exportTotals(2, wallMs), 3, wallMs)
  }
}

/** How many counters a checkpoint of 100k writes per second. */
function snapshotRow(keys: readonly string[]): BenchRow {
  const limit = { count: 1000, windowMs: 3_600_000, calendar: null }
  const pod = podOf(100_000, limit)
  fill(pod, keys, limit)
  const write = () => pod.replicator.exportTotals(4, wallMs)
  const name = 'counters into a checkpoint'
  return { name, opsPerSecond: opsPerSecond(keys.length, write), bytesEach: 0 }
}

/** Entries per second written and read. */
export function counterCodecBench(): BenchRow[] {
  const count = 50_000
  const wire = createWireEntry()
  Object.assign(wire, { originHi: 1, originLo: 2, epoch: 3, consumed: 1000, tail: 1000, demand: 5 })
  Object.assign(wire, { offered: 2000, mark: 1234 })
  const write = () => {
    const writer = new MessageWriter(newsKind, 0, 1 << 26)
    writer.shape({ family: 0, calendar: 0, capacity: 100, periodMs: 10 })
    for (let n = 0; n < count; n++) {
      writer.counter(n, n * 7, null)
      writer.entry(wire)
    }
    return writer.take()
  }
  const bytes = write()
  const read = () => {
    readMessage(bytes, {
      header: () => undefined,
      clock: () => undefined,
      shape: () => true,
      counter: () => undefined,
      entry: () => undefined,
      counterEnd: () => undefined,
    })
  }
  return [
    { name: 'counter entries written', opsPerSecond: opsPerSecond(count, write), bytesEach: 0 },
    { name: 'counter entries read', opsPerSecond: opsPerSecond(count, read), bytesEach: 0 },
    { name: 'a counter entry', opsPerSecond: 0, bytesEach: bytes.length / count },
  ]
}
