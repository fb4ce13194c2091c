/**
 * How long a full exchange of state holds the event loop up: two real cores, one with 100,000 keys
 * that three pods touched, one that has just started, and between them streams in memory. Every call
 * into a core is timed by itself; between two calls a process answers requests.
 */
import { Core } from '../src/core.js'
import { systemEntropy, systemRandom } from '../src/gossip/system-clock.js'
import type { RuleSet } from '../src/limiter/rule.js'
import type { Effect, StreamId } from '../src/swim/effects.js'
import { lanDefaults } from '../src/swim/options.js'
import type { Address, MemberName } from '../src/vocabulary.js'
import { plainRule } from '../test/helpers/plain-rule.js'

export interface ExchangeRow {
  readonly name: string
  /** The longest that one call took, milliseconds. */
  readonly longestMs: number
  /** 999 of 1,000 calls took less. */
  readonly usualMs: number
  /** All calls together, milliseconds. */
  readonly totalMs: number
  readonly calls: number
}

const keyCount = 100_000
const startWallMs = 1_700_000_000_000
/** What a socket hands over at once. */
const chunkBytes = 65_536
/** Long enough for a round of the state that is kept ready, and to merge one. */
const stepMs = 2
const roundMs = 12_000
const rounds = 3

const limit = { count: 10_000, windowMs: 86_400_000, calendar: null }
const rules: RuleSet = { allow: [], deny: [], hash: 1, rules: [{ ...plainRule, limit }] }

/** A core whose every call is timed. */
class TimedPod {
  readonly core: Core
  readonly address: Address
  timings: number[] = []

  constructor(number: number, key: Uint8Array) {
    this.address = { host: `10.0.0.${number}`, port: 7946 }
    this.core = new Core(
      {
        node: `pod-${number}`,
        version: 'bench',
        startWallMs,
        swim: {
          ...lanDefaults,
          label: 'bench',
          name: `pod-${number}-1` as MemberName,
          advertise: this.address,
        },
        counters: { keysMax: keyCount, secret: null },
        rules,
      },
      { random: systemRandom, entropy: systemEntropy },
    )
    this.core.setKeyring([key])
    this.core.start(0, startWallMs)
  }

  /**
   * What a call took: by the clock, or in processor time where that is less, as then others had the
   * processor meanwhile. (Processor time counts V8's helpers too, and so may be more.)
   */
  timed<T>(call: (core: Core) => T): T {
    const before = process.cpuUsage()
    const startMs = performance.now()
    const result = call(this.core)
    const clockMs = performance.now() - startMs
    const { user, system } = process.cpuUsage(before)
    this.timings.push(Math.min(clockMs, (user + system) / 1000))
    return result
  }

  askEveryKey(): void {
    for (let n = 0; n < keyCount; n++) this.core.check('api', [`client-${n}`], 100, 1, startWallMs)
  }
}

/** Packets and streams between pods, in memory and in order. */
class Wire {
  nowMs = 1
  readonly #pods: readonly TimedPod[]
  readonly #streams = new Map<string, { readonly pod: TimedPod; readonly stream: StreamId }>()
  #waiting: (() => void)[] = []

  constructor(pods: readonly TimedPod[]) {
    this.#pods = pods
  }

  get wallMs(): number {
    return startWallMs + this.nowMs
  }

  run(untilMs: number): void {
    for (; this.nowMs < untilMs; this.nowMs += stepMs) {
      for (const pod of this.#pods) {
        if (pod.core.nextDeadlineMs() <= this.nowMs) {
          pod.timed(core => core.advance(this.nowMs, this.wallMs))
        }
        this.take(pod)
      }
      this.#deliver()
    }
  }

  take(pod: TimedPod): void {
    for (const effect of pod.core.takeEffects()) this.#carryOut(pod, effect)
  }

  #deliver(): void {
    while (this.#waiting.length > 0) for (const event of this.#waiting.splice(0)) event()
  }

  #carryOut(from: TimedPod, effect: Effect): void {
    if (effect.kind === 'sendPacket') {
      const to = this.#podAt(effect.to)
      if (to === undefined) return
      this.#waiting.push(() => {
        to.timed(core => core.handlePacket(effect.bytes, from.address, this.nowMs, this.wallMs))
        this.take(to)
      })
    } else if (effect.kind === 'openStream') {
      const to = this.#podAt(effect.to)
      if (to === undefined) return
      const stream = to.core.acceptStream(from.address, this.nowMs)
      if (stream === null) throw new Error('a stream was refused')
      this.#join({ pod: from, stream: effect.stream }, { pod: to, stream })
      this.#carry(from, effect.stream, effect.bytes)
    } else if (effect.kind === 'writeStream') this.#carry(from, effect.stream, effect.bytes)
  }

  #podAt(address: Address): TimedPod | undefined {
    const pod = this.#pods.find(one => one.address.host === address.host)
    return pod
  }

  #join(
    one: { readonly pod: TimedPod; readonly stream: StreamId },
    other: { readonly pod: TimedPod; readonly stream: StreamId },
  ): void {
    this.#streams.set(`${one.pod.address.host} ${one.stream}`, other)
    this.#streams.set(`${other.pod.address.host} ${other.stream}`, one)
  }

  #carry(from: TimedPod, stream: StreamId, bytes: Uint8Array): void {
    const end = this.#streams.get(`${from.address.host} ${stream}`)
    if (end === undefined) throw new Error('a stream has two ends')
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const chunk = bytes.slice(at, at + chunkBytes)
      this.#waiting.push(() => {
        end.pod.timed(core => core.handleStreamData(end.stream, chunk, this.nowMs, this.wallMs))
        this.take(end.pod)
      })
    }
  }
}

export function stateExchangeBench(): ExchangeRow[] {
  const key = systemEntropy(32)
  const others = [new TimedPod(2, key), new TimedPod(3, key)]
  const full = new TimedPod(1, key)
  for (const pod of [full, ...others]) pod.askEveryKey()
  for (const pod of others) {
    full.core.importTotals(pod.core.exportTotals(2, startWallMs), 3, startWallMs)
  }
  const alone = new Wire([full])
  alone.run(roundMs)
  const best = new Map<string, ExchangeRow>()
  for (let round = 0; round < rounds; round++) {
    const joining = new TimedPod(10 + round, key)
    const wire = new Wire([full, joining])
    wire.nowMs = roundMs + round * 60_000
    full.timings = []
    joining.core.join([full.address], wire.nowMs)
    wire.take(joining)
    wire.run(wire.nowMs + roundMs)
    const entries = joining.core.stats(wire.nowMs).entriesHeld
    if (entries !== 3 * keyCount) throw new Error(`${entries} entries came over`)
    keep(best, 'tells 100,000 keys of 3 origins', full.timings)
    keep(best, 'learns them', joining.timings)
    joining.core.leave(wire.nowMs)
    wire.take(joining)
    wire.run(wire.nowMs + 2000)
  }
  return [...best.values()]
}

function keep(best: Map<string, ExchangeRow>, name: string, timings: readonly number[]): void {
  const sorted = [...timings].sort((a, b) => a - b)
  const longestMs = sorted[sorted.length - 1] ?? 0
  const usualMs = sorted[Math.floor(sorted.length * 0.999)] ?? 0
  const totalMs = sorted.reduce((sum, tookMs) => sum + tookMs, 0)
  const other = best.get(name)
  if (other !== undefined && other.longestMs <= longestMs) return
  best.set(name, { name, longestMs, usualMs, totalMs, calls: sorted.length })
}
