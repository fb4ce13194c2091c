/**
 * The other world for the same node code: one thread, one heap of events, virtual time. It owns the
 * clock and the plan and hands events to processes, network, streams, traffic and measures. A run
 * is a function of (scenario, seed): everything random is drawn from named forks of the seed.
 */
import { assert } from '../lib/assert.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import { EventHeap } from './event-heap.js'
import { applyEvent } from './faults.js'
import { Measures } from './measures.js'
import { epochWallMs } from './pod-clock.js'
import { podsEver, type Scenario } from './scenario.js'
import { SeededRandom } from './seeded-random.js'
import { SimCluster } from './sim-cluster.js'
import { SimNetwork } from './sim-network.js'
import type { NodeFactory } from './sim-node.js'
import type { ProcessPorts, SimProcess } from './sim-process.js'
import { SimStreams } from './sim-streams.js'
import { Traffic } from './traffic.js'

/** Kinds of events in the heap; what `subject` means stands beside each. */
const kinds = {
  /** A request arrives: the stream of traffic. */
  arrival: 0,
  /** A packet arrives: its slot in the network. */
  packet: 1,
  /** A timer goes off: the process, with the timer's version. */
  wake: 2,
  /** Something rare: the slot of a closure. */
  call: 3,
} as const

/** Before virtual time 0 the fleet starts, joins and settles, on a network without faults. */
const settleMs = 2500
const startGapMs = 10
/** When pods that do not know everybody yet ask again, after the last one started. */
const rejoinAtMs = [-2000, -1500, -1000, -500]

export class SimWorld {
  readonly cluster: SimCluster
  readonly network: SimNetwork
  readonly streams: SimStreams
  readonly measures: Measures
  /** Virtual milliseconds; negative while the fleet assembles. */
  nowMs: number

  private readonly heap = new EventHeap()
  private readonly traffic: Traffic
  private readonly calls: ((() => void) | undefined)[] = []
  private readonly freeCalls: number[] = []
  private readonly facts = new SimFacts()
  private podsStarted: number

  constructor(
    readonly scenario: Scenario,
    seed: number,
    makeNode: NodeFactory,
  ) {
    const random = new SeededRandom(seed)
    const pods = podsEver(scenario)
    this.podsStarted = scenario.pods
    this.nowMs = -(settleMs + startGapMs * scenario.pods)
    this.measures = new Measures(scenario, pods)
    this.network = new SimNetwork(
      scenario.network,
      pods,
      random.fork('network').stream(),
      (delayMs, slot) => this.heap.push(this.nowMs + delayMs, kinds.packet, slot),
    )
    this.streams = new SimStreams(
      this.network,
      scenario.network.loss,
      random.fork('streams').stream(),
      () => this.nowMs,
      (delayMs, act) => this.later(delayMs, act),
    )
    this.traffic = new Traffic(scenario.traffic, random.fork('traffic'), (atMs, stream) =>
      this.heap.push(atMs, kinds.arrival, stream),
    )
    this.cluster = new SimCluster({
      random: random.fork('cluster'),
      makeNode,
      ports: this.ports(),
      later: (delayMs, act) => this.later(delayMs, act),
      wallMs: () => epochWallMs + this.nowMs,
      onReady: pod => this.traffic.open(pod, this.nowMs),
      onGone: pod => this.traffic.close(pod),
      onEnded: process => this.streams.drop(process),
    })
    this.planAssembly()
    for (const event of scenario.events) this.at(event.atMs, () => this.apply(event))
  }

  /** Handles everything before `untilMs` and stands at that time. */
  runUntil(untilMs: number): void {
    const { heap } = this
    while (heap.peekMs() < untilMs) {
      heap.pop()
      this.nowMs = heap.atMs
      this.handle(heap.kind, heap.subject, heap.version)
    }
    this.nowMs = untilMs
  }

  private handle(kind: number, subject: number, version: number): void {
    if (kind === kinds.packet) {
      const { sender, receiver, bytes } = this.network.take(subject)
      const { processes } = this.cluster
      processes[receiver]!.packet(bytes, processes[sender]!.address)
    } else if (kind === kinds.wake) {
      this.cluster.processes[subject]!.wake(version)
    } else if (kind === kinds.arrival) {
      this.arrive(subject)
    } else {
      const act = this.calls[subject]
      assert(act !== undefined, 'a planned call happens once')
      this.calls[subject] = undefined
      this.freeCalls.push(subject)
      act()
    }
  }

  private arrive(stream: number): void {
    const pod = this.traffic.podOf(stream)
    if (pod < 0) return
    this.traffic.planNext(stream, this.nowMs)
    const client = this.traffic.clientOf(stream)
    const process = this.cluster.of(pod)
    if (process === undefined) return
    if (process.paused) process.holdRequest(client)
    else this.request(process, client)
  }

  private request(process: SimProcess, client: number): void {
    this.facts.client = client
    const allowed = process.decide(this.facts)
    this.measures.observe(this.nowMs, epochWallMs + this.nowMs, process.pod, client, allowed)
  }

  private resume(process: SimProcess): void {
    for (const client of process.resume()) this.request(process, client)
    process.catchUp()
  }

  private planAssembly(): void {
    const { pods } = this.scenario
    for (let pod = 0; pod < pods; pod++) {
      this.later(startGapMs * pod, () => this.cluster.start(pod, 1))
    }
    for (const atMs of rejoinAtMs) this.at(atMs, () => this.cluster.rejoinIncomplete(pods - 1))
    this.at(-200, () => this.cluster.makeKnown())
    this.at(0, () => {
      for (const process of this.cluster.running()) {
        const peers = process.node.alivePeers()
        assert(peers === pods - 1, 'membership has converged at the start')
      }
      this.network.calm = false
      this.cluster.openAll()
    })
  }

  private apply(event: Scenario['events'][number]): void {
    applyEvent(event, {
      cluster: this.cluster,
      network: this.network,
      nextPod: () => this.podsStarted++,
      resume: process => this.resume(process),
      at: (atMs, act) => this.at(atMs, act),
    })
  }

  private ports(): ProcessPorts {
    return {
      nowMs: () => this.nowMs,
      sendPacket: (from, to, bytes) => {
        const target = this.cluster.at(to)
        if (target === undefined) return
        this.network.send(from.pod, target.pod, from.id, target.id, bytes)
      },
      dial: (from, stream, to, bytes, timeoutMs) => {
        this.streams.dial(from, stream, this.cluster.at(to) ?? null, bytes, timeoutMs)
      },
      writeStream: (from, stream, bytes) => this.streams.write(from, stream, bytes),
      closeStream: (from, stream) => this.streams.close(from, stream),
      wakeAfter: (process, delayMs, version) => {
        this.heap.push(this.nowMs + delayMs, kinds.wake, process.id, version)
      },
      leaveSettled: process => this.cluster.leaveSettled(process),
    }
  }

  /** Pod-seconds lived from time 0 until now: what traffic per pod and second is divided by. */
  podSeconds(): number {
    const lived = this.cluster.processes.map(process => {
      const endMs = process.running ? this.nowMs : process.endedAtMs
      return Math.max(0, endMs - Math.max(0, process.startedAtMs))
    })
    return lived.reduce((sum, ms) => sum + ms, 0) / 1000
  }

  private later(delayMs: number, act: () => void): void {
    this.at(this.nowMs + delayMs, act)
  }

  private at(atMs: number, act: () => void): void {
    const slot = this.freeCalls.pop() ?? this.calls.length
    this.calls[slot] = act
    this.heap.push(atMs, kinds.call, slot)
  }
}

/** The one request of a simulation; only the client differs, and no object is made for it. */
class SimFacts implements RequestFacts {
  readonly method = 'GET'
  readonly path = '/'
  readonly query = ''
  readonly host = 'simulated'
  readonly peerTrusted = false
  readonly jwt = null
  client = 0

  get ip(): string {
    const { client } = this
    return `100.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
  }

  header(): string {
    return `client-${this.client}`
  }
}
