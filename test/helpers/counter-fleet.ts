/**
 * A few pods on virtual time: real limiter, table, codec and replicator; a network of independent delays.
 * For tests and for tuning; the product's simulator adds membership and sockets.
 */
import { CounterTable } from '../../src/counters/counter-table.js'
import { type CounterPeer, Replicator } from '../../src/counters/replicator.js'
import { Limiter } from '../../src/limiter/limiter.js'
import type { RuleSet } from '../../src/limiter/rule.js'
import type { MemberName, OriginId } from '../../src/vocabulary.js'

export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

interface Event {
  readonly atMs: number
  readonly sequence: number
  readonly run: () => void
}

class Events {
  readonly #heap: Event[] = []
  #sequence = 0

  push(atMs: number, run: () => void): void {
    const heap = this.#heap
    let at = heap.push({ atMs, sequence: this.#sequence++, run }) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      if (!before(heap[at]!, heap[up]!)) break
      ;[heap[at], heap[up]] = [heap[up]!, heap[at]!]
      at = up
    }
  }

  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  pop(): Event | undefined {
    const heap = this.#heap
    const top = heap[0]
    const last = heap.pop()
    if (heap.length === 0 || last === undefined) return top
    heap[0] = last
    for (let at = 0; ; ) {
      let down = 2 * at + 1
      if (down >= heap.length) break
      if (down + 1 < heap.length && before(heap[down + 1]!, heap[down]!)) down++
      if (!before(heap[down]!, heap[at]!)) break
      ;[heap[at], heap[down]] = [heap[down]!, heap[at]!]
      at = down
    }
    return top
  }
}

function before(one: Event, other: Event): boolean {
  return one.atMs !== other.atMs ? one.atMs < other.atMs : one.sequence < other.sequence
}

export class FleetPod {
  readonly name: MemberName
  readonly origin: OriginId
  readonly table: CounterTable
  readonly replicator: Replicator
  readonly limiter: Limiter
  packets = 0
  bytes = 0
  armedMs = Number.POSITIVE_INFINITY
  paused = false

  constructor(index: number, random: () => number, keysMax: number, rules: RuleSet) {
    this.name = `pod-${index}` as MemberName
    const hex = Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')
    this.origin = `${hex}${index.toString(16).padStart(8, '0')}` as OriginId
    const seed = Uint8Array.from({ length: 8 }, () => Math.floor(random() * 256))
    this.table = new CounterTable({ keysMax, secret: null, label: 'test', seed })
    this.replicator = new Replicator(
      { table: this.table, origin: this.origin, payloadBytesMax: 1300 },
      { random },
    )
    this.limiter = new Limiter({ store: this.table })
    this.limiter.setRules(rules, 0, startWallMs)
    this.replicator.markSynced()
  }
}

/** Virtual wall clock at virtual time 0: a whole day. */
export const startWallMs = 1_700_006_400_000

export interface FleetOptions {
  readonly pods: number
  readonly rules: RuleSet
  readonly seed?: number
  readonly latencyMs?: number
  readonly jitterMs?: number
  readonly loss?: number
  readonly duplicate?: number
  readonly keysMax?: number
}

export class CounterFleet {
  readonly pods: FleetPod[] = []
  readonly random: () => number
  nowMs = 0
  readonly #events = new Events()
  readonly #options: FleetOptions
  readonly #network: () => number
  /** True for a link that carries nothing. */
  cut: (from: number, to: number) => boolean = () => false

  constructor(options: FleetOptions) {
    this.#options = options
    this.random = seededRandom(options.seed ?? 1)
    this.#network = seededRandom((options.seed ?? 1) + 77)
    for (let index = 0; index < options.pods; index++) {
      this.pods.push(new FleetPod(index, this.random, options.keysMax ?? 64, options.rules))
    }
    this.setPeers(() => true)
  }

  get wallMs(): number {
    return startWallMs + this.nowMs
  }

  /** `sees` tells which peers of a pod answer; all are known. */
  setPeers(sees: (from: number, to: number) => boolean): void {
    this.pods.forEach((pod, from) => {
      const peers: CounterPeer[] = this.pods.flatMap((peer, to) => {
        if (to === from) return []
        const { name, origin } = peer
        return [{ member: name, node: name, origin, draining: false, silent: !sees(from, to) }]
      })
      pod.replicator.setPeers(peers, this.pods.length, this.nowMs)
    })
  }

  at(atMs: number, run: () => void): void {
    this.#events.push(atMs, run)
  }

  /** Runs everything up to `untilMs`. */
  run(untilMs: number): void {
    for (;;) {
      const nextMs = this.#events.nextMs
      if (nextMs > untilMs) break
      this.nowMs = nextMs
      this.#events.pop()?.run()
    }
    this.nowMs = untilMs
  }

  /** To be called after a pod was touched. */
  wake(index: number): void {
    const pod = this.pods[index]!
    const dueMs = Math.max(this.nowMs, pod.replicator.nextDeadlineMs())
    if (dueMs >= pod.armedMs || dueMs === Number.POSITIVE_INFINITY) return
    pod.armedMs = dueMs
    this.at(dueMs, () => {
      if (pod.armedMs !== dueMs) return
      pod.armedMs = Number.POSITIVE_INFINITY
      pod.replicator.advance(this.nowMs, this.wallMs, (to, payload) => {
        this.#send(index, to, payload)
      })
      this.wake(index)
    })
  }

  flush(index: number): void {
    this.pods[index]!.replicator.flush(this.nowMs, this.wallMs, (to, payload) => {
      this.#send(index, to, payload)
    })
  }

  #send(from: number, to: MemberName, payload: Uint8Array): void {
    const sender = this.pods[from]!
    sender.packets++
    sender.bytes += payload.length + 60
    const index = this.pods.findIndex(pod => pod.name === to)
    const { latencyMs = 2, jitterMs = 1, loss = 0, duplicate = 0 } = this.#options
    const copies = this.#network() < duplicate ? 2 : 1
    for (let copy = 0; copy < copies; copy++) {
      if (this.#network() < loss || this.cut(from, index)) continue
      const delayMs = latencyMs + (2 * this.#network() - 1) * jitterMs
      this.at(this.nowMs + Math.max(0.05, delayMs), () => {
        this.pods[index]!.replicator.handleMessage(payload, this.nowMs, this.wallMs)
        this.wake(index)
      })
    }
  }

  /** A push/pull between two pods, both ways, at once. */
  exchange(one: number, other: number): void {
    const states = [one, other].map(index =>
      this.pods[index]!.replicator.localState(false, this.nowMs, this.wallMs, 1 << 22),
    )
    this.pods[other]!.replicator.mergeRemoteState(states[0]!, false, this.nowMs, this.wallMs)
    this.pods[one]!.replicator.mergeRemoteState(states[1]!, false, this.nowMs, this.wallMs)
    this.wake(one)
    this.wake(other)
  }

  request(index: number, rule: string, key: readonly string[], cost = 1): boolean {
    const pod = this.pods[index]!
    const decision = pod.limiter.check(rule, key, cost, 'check', this.nowMs, this.wallMs)
    this.wake(index)
    return decision?.allowed ?? false
  }
}
