/**
 * One process that works on a table of keys and says what is resident afterwards, garbage collected.
 * Run with `--expose-gc`; prints one number, bytes.
 *
 *   memory-child.ts KEYS ORIGINS REQUESTS
 *
 * The same work on few keys, again and again, is the bare process: code compiled, heap and allocator
 * grown as they grow under traffic.
 */
import {
  createWireEntry,
  MessageWriter,
  newsKind,
  type WireEntry,
} from '../src/counters/counter-codec.js'
import { CounterTable } from '../src/counters/counter-table.js'
import { wireShapeOf } from '../src/counters/publish.js'
import { Replicator } from '../src/counters/replicator.js'
import { Limiter } from '../src/limiter/limiter.js'
import type { MemberName, OriginId } from '../src/vocabulary.js'
import { plainRule } from '../test/helpers/plain-rule.js'

const startWallMs = 1_700_000_000_000
const payloadBytesMax = 1300
/** Keys that are asked for and heard of between two batches. */
const keysAtOnce = 1000
/** Afterwards: long enough for repetitions, and for all of the state that is kept ready. */
const restMs = 12_000
const stepMs = 20

class WorkingPod {
  readonly table: CounterTable
  readonly #replicator: Replicator
  readonly #limiter: Limiter
  readonly #origins: number
  readonly #keysMax: number
  readonly #wire = createWireEntry()
  #nowMs = 1

  constructor(keysMax: number, origins: number) {
    const seed = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8])
    this.#keysMax = keysMax
    this.#origins = origins
    this.table = new CounterTable({ keysMax, secret: null, label: 'bench', seed })
    this.#replicator = new Replicator(
      { table: this.table, origin: originOf(1), payloadBytesMax },
      { random: () => 0.5 },
    )
    this.#limiter = new Limiter({ store: this.table })
    const limit = { count: 10_000, windowMs: 86_400_000, calendar: null }
    const rules = { allow: [], deny: [], hash: 1, rules: [{ ...plainRule, limit }] }
    this.#limiter.setRules(rules, 0, startWallMs)
    const peers = Array.from({ length: origins - 1 }, (_, n) => ({
      member: `pod-${n}` as MemberName,
      node: `pod-${n}`,
      origin: originOf(n + 2),
      draining: false,
      silent: false,
    }))
    this.#replicator.setPeers(peers, origins, 0)
    this.#replicator.markSynced()
  }

  get #wallMs(): number {
    return startWallMs + this.#nowMs
  }

  /** Is asked for some keys in turn, hears of each from all other origins, and tells them. */
  work(requests: number): void {
    for (let done = 0; done < requests; done += keysAtOnce) {
      const round = Math.floor(done / this.#keysMax) + 1
      for (let n = done; n < done + keysAtOnce; n++) {
        const key = `client-${n % this.#keysMax}`
        this.#limiter.check('api', [key], 1, 'check', this.#nowMs, this.#wallMs)
      }
      const first = done % this.#keysMax
      for (let origin = 2; origin <= this.#origins; origin++) this.#hear(origin, round, first)
      this.rest(stepMs)
    }
  }

  rest(lengthMs: number): void {
    for (const untilMs = this.#nowMs + lengthMs; this.#nowMs < untilMs; this.#nowMs += stepMs) {
      this.#replicator.advance(this.#nowMs, this.#wallMs, () => undefined)
    }
  }

  /** News from one origin of the slots from `first` on, in messages as long as packets are. */
  #hear(origin: number, total: number, first: number): void {
    const { slots } = this.table
    const wire = this.#wire
    Object.assign(wire, { originLo: origin, consumed: total, tail: total, offered: total })
    Object.assign(wire, { demand: 1, mark: 1000 })
    let writer: MessageWriter | null = null
    for (let slot = first; slot < first + keysAtOnce; slot++) {
      wire.epoch = slot + 1
      if (writer !== null && this.#wrote(writer, slot, wire)) continue
      this.#deliver(writer)
      writer = new MessageWriter(newsKind, 0, payloadBytesMax)
      writer.shape(wireShapeOf(this.table, slots.shape[slot] as number))
      this.#wrote(writer, slot, wire)
    }
    this.#deliver(writer)
  }

  #wrote(writer: MessageWriter, slot: number, wire: WireEntry): boolean {
    const { idHi, idLo } = this.table.slots
    return writer.counter(idHi[slot] as number, idLo[slot] as number, null) && writer.entry(wire)
  }

  #deliver(writer: MessageWriter | null): void {
    if (writer !== null) this.#replicator.handleMessage(writer.take(), this.#nowMs, this.#wallMs)
  }
}

function originOf(number: number): OriginId {
  return number.toString(16).padStart(16, '0') as OriginId
}

/** As traffic would: objects that outlive a collection make V8 widen the space for new ones. */
function growYoungGeneration(): void {
  const held: string[] = []
  for (let n = 0; n < 2_000_000; n++) {
    held.push(`request-${n}`)
    if (held.length > 400_000) held.length = 0
  }
}

const collect = (globalThis as { gc?: () => void }).gc
if (collect === undefined) throw new Error('run with --expose-gc')
const [keys = 1, origins = 1, requests = 1] = process.argv.slice(2).map(Number)
growYoungGeneration()
const pod = new WorkingPod(keys, origins)
pod.work(requests)
pod.rest(restMs)
pod.table.assertInvariants()
for (let n = 0; n < 5; n++) collect()
const known = `${pod.table.slots.used} keys, ${pod.table.entries.used} entries of others`
if (pod.table.entries.used !== keys * (origins - 1)) throw new Error(known)
console.log(process.memoryUsage().rss)
