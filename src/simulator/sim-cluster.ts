/**
 * The fleet's processes and what Kubernetes does around them: addresses, readiness, endpoints
 * (discovery), joining, leaving, restarting. Time and links belong to others.
 */
import { assert } from '../lib/assert.js'
import type { Address } from '../vocabulary.js'
import { PodClock } from './pod-clock.js'
import type { SeededRandom } from './seeded-random.js'
import type { NodeFactory } from './sim-node.js'
import { type ProcessPorts, SimProcess } from './sim-process.js'

const gossipPort = 7946

/** How long a starting pod waits for the fleet's state before it is ready all the same. */
const readyTimeoutMs = 2000

/** How often readiness is looked at, milliseconds: the resolution of a join in virtual time. */
const readyPollMs = 5

/** How many pods a joining one asks for the state. */
const seedsMax = 3

/** How long a leaving process lives on at most, as `drainTimeout` in production. */
const leaveTimeoutMs = 3000

export interface ClusterOptions {
  readonly random: SeededRandom
  readonly makeNode: NodeFactory
  readonly ports: ProcessPorts
  /** Runs `act` after `delayMs`. */
  readonly later: (delayMs: number, act: () => void) => void
  /** True wall clock now. */
  readonly wallMs: () => number
  /** A pod becomes ready, or stops receiving traffic. */
  readonly onReady: (pod: number) => void
  readonly onGone: (pod: number) => void
  /** A process ended; its connections break. */
  readonly onEnded: (process: SimProcess) => void
}

export class SimCluster {
  /** Every process ever, by number. */
  readonly processes: SimProcess[] = []
  private readonly current: (SimProcess | undefined)[] = []
  private readonly byHost = new Map<string, SimProcess>()
  private readonly listed = new Set<SimProcess>()
  private readonly choices

  constructor(private readonly options: ClusterOptions) {
    this.choices = options.random.fork('seeds').stream()
  }

  /** The process of a pod, undefined while there is none. */
  of(pod: number): SimProcess | undefined {
    const process = this.current[pod]
    return process?.running === true ? process : undefined
  }

  at(address: Address): SimProcess | undefined {
    return this.byHost.get(address.host)
  }

  /** Processes that run, paused ones included. */
  running(): SimProcess[] {
    return this.processes.filter(process => process.running)
  }

  /** Starts a pod's process and joins it through up to `seedsWanted` of the pods that run. */
  start(pod: number, seedsWanted: number): SimProcess {
    const seeds = this.someAddresses(seedsWanted)
    const process = this.create(pod)
    process.step((node, monotonicMs, wallMs) => node.start(monotonicMs, wallMs))
    process.step((node, monotonicMs, wallMs) => {
      if (seeds.length > 0) node.join(seeds, monotonicMs, wallMs)
    })
    return process
  }

  /** A pod joins the running fleet and receives traffic once it is ready. */
  join(pod: number): void {
    const process = this.start(pod, seedsMax)
    this.tellDiscovery([process])
    this.pollSynced(process, 0)
  }

  /** SIGKILL: no farewell. Its endpoint disappears and its traffic ends. */
  kill(pod: number): void {
    const process = this.of(pod)
    if (process === undefined) return
    this.delist(process)
    this.end(process)
  }

  /** SIGTERM: last totals, then the leave message, then the process ends. */
  leave(pod: number): void {
    const process = this.of(pod)
    if (process === undefined) return
    this.delist(process)
    process.receive(() => {
      process.step((node, monotonicMs, wallMs) => node.setDraining(monotonicMs, wallMs))
      process.step((node, monotonicMs, wallMs) => node.flush(monotonicMs, wallMs))
      process.step((node, monotonicMs, wallMs) => node.leave(monotonicMs, wallMs))
    })
    this.options.later(leaveTimeoutMs, () => this.end(process))
  }

  /** The leave message of a process is out. */
  leaveSettled(process: SimProcess): void {
    // The process ends after the step that reported it, not in the middle of it.
    this.options.later(0, () => this.end(process))
  }

  /**
   * The same node in a new process at a new address, as when a container is killed and restarted.
   */
  restart(pod: number): void {
    this.kill(pod)
    this.join(pod)
  }

  /** The pod's endpoint is listed and receives traffic. */
  private makeReady(process: SimProcess): void {
    process.ready = true
    this.listed.add(process)
    this.tellDiscovery(this.running())
    this.options.onReady(process.pod)
  }

  /** Another round of joins for whoever does not know everybody yet; `peers` are the others. */
  rejoinIncomplete(peers: number): void {
    for (const process of this.running()) {
      if (process.node.alivePeers() >= peers) continue
      const seeds = this.someAddresses(2).filter(address => address !== process.address)
      process.step((node, monotonicMs, wallMs) => {
        if (seeds.length > 0) node.join(seeds, monotonicMs, wallMs)
      })
    }
  }

  /** Discovery lists everybody at once: the fleet of a scenario's start. */
  makeKnown(): void {
    for (const process of this.running()) {
      process.ready = true
      this.listed.add(process)
    }
    this.tellDiscovery(this.running())
  }

  /** Traffic begins at every ready pod. */
  openAll(): void {
    for (const process of this.running()) this.options.onReady(process.pod)
  }

  private create(pod: number): SimProcess {
    const { options } = this
    const id = this.processes.length
    const address = { host: `10.${id >> 16}.${(id >> 8) & 255}.${id & 255}`, port: gossipPort }
    const random = options.random.fork(`process-${id}`)
    const node = options.makeNode({
      node: `pod-${pod}`,
      start: id,
      address,
      startWallMs: Math.floor(options.wallMs()),
      random: random.fork('node'),
    })
    const clock = new PodClock(random.fork('clock').stream())
    const process = new SimProcess(id, pod, address, node, clock, options.ports)
    this.processes.push(process)
    this.current[pod] = process
    this.byHost.set(address.host, process)
    return process
  }

  /** Ready once the fleet's state is there or its time-out has passed. */
  private pollSynced(process: SimProcess, waitedMs: number): void {
    this.options.later(readyPollMs, () => {
      if (!process.running || process.ready) return
      const done = waitedMs + readyPollMs >= readyTimeoutMs || process.node.synced()
      if (done && !process.paused) this.makeReady(process)
      else this.pollSynced(process, waitedMs + readyPollMs)
    })
  }

  private delist(process: SimProcess): void {
    process.ready = false
    this.options.onGone(process.pod)
    this.listed.delete(process)
    this.tellDiscovery(this.running().filter(other => other !== process))
  }

  private end(process: SimProcess): void {
    if (!process.running) return
    process.stop()
    this.options.onEnded(process)
  }

  /** Endpoints as discovery lists them: ready pods, whether they answer or not. */
  private tellDiscovery(whom: readonly SimProcess[]): void {
    const all = [...this.listed].map(process => process.address)
    for (const process of whom) {
      process.receive(() => {
        process.step((node, monotonicMs, wallMs) => {
          node.setExpectedPeers(
            all.filter(address => address !== process.address),
            monotonicMs,
            wallMs,
          )
        })
      })
    }
  }

  private someAddresses(wanted: number): Address[] {
    const pool = this.running().filter(process => !process.paused)
    const chosen: Address[] = []
    while (chosen.length < wanted && pool.length > 0) {
      const index = Math.floor(this.choices() * pool.length)
      const [process] = pool.splice(index, 1)
      assert(process !== undefined, 'a drawn index lies within the pool')
      chosen.push(process.address)
    }
    return chosen
  }
}
