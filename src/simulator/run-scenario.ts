/**
 * One simulation from scenario and seed to numbers. The same input gives the same output, always.
 */
import { coreNode } from './core-node.js'
import type { Measured, Series } from './measures.js'
import type { Scenario } from './scenario.js'
import type { NodeFactory } from './sim-node.js'
import { SimWorld } from './sim-world.js'

/** Gossip as it was sent (not as it arrived), per pod. */
export interface GossipSeries {
  /** Datagrams per pod and second, one value per slice of `Series`. */
  readonly packetsPerPod: readonly number[]
  readonly bytesPerPod: readonly number[]
}

/** What went wrong on the way, fleet-wide; for messages, not part of `--json`. */
export interface Mishaps {
  readonly packetsLost: number
  readonly packetsCut: number
  readonly packetsOversize: number
  /** Turned away by full sockets of paused pods. */
  readonly packetsDropped: number
  readonly requestsDropped: number
}

export interface SimResult extends Measured {
  /** UDP payload and stream bytes sent. */
  readonly bytesPerPodPerSecond: number
  /** Datagrams sent. */
  readonly packetsPerPodPerSecond: number
  readonly seed: number
  readonly series: Series
  readonly gossip: GossipSeries
  readonly mishaps: Mishaps
}

export interface RunOptions {
  /** Integer, 0..2^53. */
  readonly seed: number
  /** Called about once per simulated second with the virtual time reached and the whole of it. */
  readonly progress?: (atMs: number, durationMs: number) => void
  /** The node to simulate; default the real `Core`. */
  readonly makeNode?: NodeFactory
}

export function runScenario(scenario: Scenario, options: RunOptions): SimResult {
  const makeNode = options.makeNode ?? coreNode(scenario)
  const world = new SimWorld(scenario, options.seed, makeNode)
  const gossip = runWatched(world, options)
  const podSeconds = Math.max(Number.MIN_VALUE, world.podSeconds())
  const { network, streams, cluster } = world
  const total = (of: (process: (typeof cluster.processes)[number]) => number) =>
    cluster.processes.reduce((sum, process) => sum + of(process), 0)
  return {
    ...world.measures.finish(),
    bytesPerPodPerSecond: hundredths((network.counts.bytes + streams.bytes) / podSeconds),
    packetsPerPodPerSecond: hundredths(network.counts.packets / podSeconds),
    seed: options.seed,
    series: world.measures.chart(),
    gossip,
    mishaps: {
      packetsLost: network.counts.lost,
      packetsCut: network.counts.cut,
      packetsOversize: network.counts.oversize,
      packetsDropped: total(process => process.packetsDropped),
      requestsDropped: total(process => process.requestsDropped),
    },
  }
}

/** The object that `simulate --json` prints: the fields of product.md §9 and nothing else. */
export function resultJson(result: SimResult): string {
  return JSON.stringify({
    offered: result.offered,
    admitted: result.admitted,
    ideal: result.ideal,
    ratio: result.ratio,
    worstSecondAbove: result.worstSecondAbove,
    worstSecondBelow: result.worstSecondBelow,
    excessOverBurst: result.excessOverBurst,
    jain: result.jain,
    falseDenials: result.falseDenials,
    settleMs: result.settleMs,
    bytesPerPodPerSecond: result.bytesPerPodPerSecond,
    packetsPerPodPerSecond: result.packetsPerPodPerSecond,
    seed: result.seed,
    perPod: result.perPod,
  })
}

/** Runs the world slice by slice, so that gossip can be charted and progress shown. */
function runWatched(world: SimWorld, options: RunOptions): GossipSeries {
  const { durationMs } = world.scenario
  const { sliceMs } = world.measures
  const packetsPerPod: number[] = []
  const bytesPerPod: number[] = []
  let packets = 0
  let bytes = 0
  let podSeconds = 0
  while (world.nowMs < durationMs) {
    world.runUntil(Math.min(durationMs, Math.max(0, world.nowMs) + sliceMs))
    const seconds = Math.max(Number.MIN_VALUE, world.podSeconds() - podSeconds)
    const sent = world.network.counts
    packetsPerPod.push(hundredths((sent.packets - packets) / seconds))
    bytesPerPod.push(hundredths((sent.bytes + world.streams.bytes - bytes) / seconds))
    packets = sent.packets
    bytes = sent.bytes + world.streams.bytes
    podSeconds += seconds
    options.progress?.(world.nowMs, durationMs)
  }
  return { packetsPerPod, bytesPerPod }
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100
}
