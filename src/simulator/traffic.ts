/**
 * When clients ask: independent Poisson processes, one per (entry of the scenario, pod), each
 * drawing from its own fork of the seed. Arrival times are drawn one ahead, so a stream costs one
 * event in the heap whatever its rate.
 */
import type { Random } from '../ports.js'
import type { TrafficEntry } from './scenario.js'
import { exponentialMs, type SeededRandom } from './seeded-random.js'

interface TrafficStream {
  readonly entry: TrafficEntry
  readonly pod: number
  readonly gaps: Random
  readonly clients: Random
  open: boolean
}

export class Traffic {
  private readonly streams: TrafficStream[] = []
  private readonly epochs: number[] = []

  constructor(
    private readonly entries: readonly TrafficEntry[],
    private readonly random: SeededRandom,
    /** Puts the next arrival of a stream into the plan. */
    private readonly plan: (atMs: number, stream: number) => void,
  ) {}

  /** A pod begins to receive its traffic at `nowMs` (again, after a restart). */
  open(pod: number, nowMs: number): void {
    this.close(pod)
    const epoch = this.epochs[pod] ?? 0
    this.epochs[pod] = epoch + 1
    this.entries.forEach((entry, index) => {
      if (entry.pods !== 'all' && !entry.pods.includes(pod)) return
      const fork = this.random.fork(`entry-${index}/pod-${pod}/start-${epoch}`)
      const number = this.streams.length
      this.streams.push({
        entry,
        pod,
        gaps: fork.fork('gaps').stream(),
        clients: fork.fork('clients').stream(),
        open: true,
      })
      this.planNext(number, nowMs)
    })
  }

  /** The pod's traffic is not offered any more. */
  close(pod: number): void {
    for (const stream of this.streams) if (stream.pod === pod) stream.open = false
  }

  /** The pod that an arrival is for, -1 when its stream was closed meanwhile. */
  podOf(stream: number): number {
    const { open, pod } = this.streams[stream]!
    return open ? pod : -1
  }

  /** The client that an arrival comes from, from 0. */
  clientOf(stream: number): number {
    const { entry, clients } = this.streams[stream]!
    return entry.keys === 1 ? 0 : Math.floor(clients() * entry.keys)
  }

  /** Plans the arrival after one at `nowMs`. */
  planNext(number: number, nowMs: number): void {
    const stream = this.streams[number]!
    const atMs = nextArrivalMs(stream.entry, stream.gaps, nowMs)
    if (Number.isFinite(atMs)) this.plan(atMs, number)
  }
}

/** The next arrival after `afterMs`, Infinity when the entry is over by then. */
export function nextArrivalMs(entry: TrafficEntry, gaps: Random, afterMs: number): number {
  const startMs = Math.max(afterMs, entry.fromMs)
  const gapMs = exponentialMs(gaps, entry.ratePerSecond / 1000)
  const { periodMs, onMs } = entry
  let atMs = startMs + gapMs
  if (periodMs !== null) {
    // Poisson arrivals have no memory: draw in time that is on, and map it back.
    const cycles = Math.floor(startMs / periodMs)
    const onTimeMs = cycles * onMs + Math.min(startMs - cycles * periodMs, onMs) + gapMs
    const cycle = Math.floor(onTimeMs / onMs)
    atMs = Math.max(startMs, cycle * periodMs + (onTimeMs - cycle * onMs))
  }
  return atMs < entry.toMs ? atMs : Number.POSITIVE_INFINITY
}
