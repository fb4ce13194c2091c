/**
 * A tiny network in virtual time for whole nodes: packets and streams with latency, loss and broken
 * links. No sockets and no clock; the same seed gives the same run. (The product's own simulator is
 * `src/simulator`; this one knows nothing but `swim`, so that the library is tested by itself.)
 */
import type { Effect, StreamId } from '../../src/swim/effects.js'
import { lanDefaults } from '../../src/swim/options.js'
import { Swim } from '../../src/swim/protocol.js'
import type { Address, MemberName } from '../../src/vocabulary.js'
import { countingEntropy, RecordingDelegate, seededRandom, type TestSettings } from './swim-node.js'

export interface NetworkNode {
  readonly name: string
  readonly address: Address
  readonly swim: Swim
  readonly delegate: RecordingDelegate
  readonly startedAtMs: number
  running: boolean
  /** The wake-up that is in the heap, Infinity for none. */
  wakeAtMs: number
}

export type Transport = 'udp' | 'tcp'

/** What happens, told as it happens. */
export interface NetworkObserver {
  packet?(from: NetworkNode, to: NetworkNode | null, bytes: Uint8Array, lost: boolean): void
  stream?(from: NetworkNode, to: NetworkNode | null, bytes: Uint8Array, request: boolean): void
  effect?(node: NetworkNode, effect: Effect): void
}

interface End {
  readonly node: NetworkNode
  stream: StreamId | null
}

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

export interface NetworkOptions {
  readonly seed?: number
  readonly latencyMs?: number
  /** Share of packets lost; streams are repaired by TCP and pass. */
  readonly loss?: number
  readonly observer?: NetworkObserver
}

export class SwimNetwork {
  nowMs = 0
  loss: number
  readonly nodes = new Map<string, NetworkNode>()
  /** Decides over each packet and each connection; may be replaced. */
  isBlocked: (from: NetworkNode, to: NetworkNode, transport: Transport) => boolean = () => false
  readonly #latencyMs: number
  readonly #observer: NetworkObserver
  readonly #random: () => number
  readonly #byPort = new Map<string, NetworkNode>()
  readonly #streams = new Map<string, { readonly self: End; readonly peer: End }>()
  readonly #events: Event[] = []
  #order = 0
  #seeds: number

  constructor(options: NetworkOptions = {}) {
    this.#seeds = options.seed ?? 1
    this.#random = seededRandom(this.#seeds)
    this.#latencyMs = options.latencyMs ?? 1
    this.#observer = options.observer ?? {}
    this.loss = options.loss ?? 0
  }

  /** A node at its own address; it starts at once. */
  add(name: string, settings: TestSettings = {}, host = hostNumber(this.#byPort.size + 1)) {
    this.#seeds += 1
    const address = { host, port: 7946 }
    const delegate = new RecordingDelegate()
    const swim = new Swim(
      { ...lanDefaults, ...settings, name: name as MemberName, advertise: address },
      { random: seededRandom(this.#seeds * 7919), entropy: countingEntropy(), delegate },
    )
    const node: NetworkNode = {
      name,
      address,
      swim,
      delegate,
      startedAtMs: this.nowMs,
      running: true,
      wakeAtMs: Infinity,
    }
    this.nodes.set(name, node)
    this.#byPort.set(keyOf(address), node)
    this.act(name, () => swim.start(this.nowMs))
    return node
  }

  get(name: string): NetworkNode {
    const node = this.nodes.get(name)
    if (node === undefined) throw new Error(`no node ${name}`)
    return node
  }

  /** Calls the node and carries out what it wants. */
  act(name: string, call: (swim: Swim) => void): void {
    const node = this.get(name)
    call(node.swim)
    this.#settle(node)
  }

  join(name: string, target: string): void {
    const { address } = this.get(target)
    this.act(name, swim => swim.join([address], this.nowMs))
  }

  /** The process is gone: nothing answers at its address. */
  kill(name: string): void {
    this.get(name).running = false
  }

  run(untilMs: number): void {
    for (;;) {
      const event = this.#events[0]
      if (event === undefined || event.atMs > untilMs) break
      this.#pop()
      this.nowMs = event.atMs
      event.run()
    }
    this.nowMs = untilMs
  }

  /** Runs until it holds, looked at every 100 ms; the time it took, or fails after `maxMs`. */
  runUntil(holds: () => boolean, maxMs: number): number {
    const startMs = this.nowMs
    while (!holds()) {
      if (this.nowMs - startMs >= maxMs) throw new Error(`not within ${maxMs} ms`)
      this.run(this.nowMs + 100)
    }
    return this.nowMs - startMs
  }

  /** Names that a node takes for members (alive or suspect), sorted. */
  view(name: string): string[] {
    return [...this.get(name).swim.members()]
      .filter(member => member.state === 'alive' || member.state === 'suspect')
      .map(member => member.name as string)
      .sort()
  }

  converged(): boolean {
    const running = [...this.nodes.values()].filter(node => node.running)
    const names = running
      .map(node => node.name)
      .sort()
      .join()
    return running.every(node => this.view(node.name).join() === names)
  }

  #settle(node: NetworkNode): void {
    if (!node.running) return
    for (const effect of node.swim.takeEffects()) {
      this.#observer.effect?.(node, effect)
      this.#carryOut(node, effect)
    }
    const wakeAtMs = Math.max(this.nowMs, node.swim.nextDeadlineMs())
    if (wakeAtMs >= node.wakeAtMs || wakeAtMs === Infinity) return
    node.wakeAtMs = wakeAtMs
    this.#at(wakeAtMs, () => {
      if (node.wakeAtMs !== wakeAtMs) return
      node.wakeAtMs = Infinity
      if (!node.running) return
      node.swim.advance(this.nowMs)
      this.#settle(node)
    })
  }

  #carryOut(node: NetworkNode, effect: Effect): void {
    switch (effect.kind) {
      case 'sendPacket':
        this.#sendPacket(node, effect.to, effect.bytes)
        break
      case 'openStream':
        this.#dial(node, effect.stream, effect.to, effect.bytes)
        break
      case 'writeStream':
        this.#write(node, effect.stream, effect.bytes)
        break
      case 'closeStream':
        this.#close(node, effect.stream)
        break
      default:
        break
    }
  }

  #sendPacket(from: NetworkNode, to: Address, bytes: Uint8Array): void {
    const target = this.#byPort.get(keyOf(to)) ?? null
    const lost =
      target === null ||
      !target.running ||
      this.isBlocked(from, target, 'udp') ||
      this.#random() < this.loss
    this.#observer.packet?.(from, target, bytes, lost)
    if (lost) return
    this.#later(target, () => target.swim.handlePacket(bytes, from.address, this.nowMs))
  }

  #dial(from: NetworkNode, stream: StreamId, to: Address, bytes: Uint8Array): void {
    const target = this.#byPort.get(keyOf(to)) ?? null
    this.#observer.stream?.(from, target, bytes, true)
    const refuse = (error: string) =>
      this.#later(from, () => from.swim.handleStreamEnd(stream, error, this.nowMs))
    if (target === null || !target.running) {
      refuse('connection refused')
      return
    }
    // A blocked connection is silence: the dialler's own time-out ends it.
    if (this.isBlocked(from, target, 'tcp')) return
    this.#later(target, () => {
      const accepted = target.swim.acceptStream(from.address, this.nowMs)
      if (accepted === null) {
        refuse('connection reset')
        return
      }
      const near: End = { node: from, stream }
      const far: End = { node: target, stream: accepted }
      this.#streams.set(streamKey(near), { self: near, peer: far })
      this.#streams.set(streamKey(far), { self: far, peer: near })
      target.swim.handleStreamData(accepted, bytes, this.nowMs)
    })
  }

  #write(node: NetworkNode, stream: StreamId, bytes: Uint8Array): void {
    const link = this.#streams.get(streamKey({ node, stream }))
    if (link === undefined) return
    const { peer } = link
    this.#observer.stream?.(node, peer.node, bytes, false)
    this.#later(peer.node, () => {
      if (peer.stream !== null) peer.node.swim.handleStreamData(peer.stream, bytes, this.nowMs)
    })
  }

  #close(node: NetworkNode, stream: StreamId): void {
    const key = streamKey({ node, stream })
    const link = this.#streams.get(key)
    if (link === undefined) return
    this.#streams.delete(key)
    link.self.stream = null
    const { peer } = link
    this.#later(peer.node, () => {
      if (peer.stream !== null) peer.node.swim.handleStreamEnd(peer.stream, null, this.nowMs)
    })
  }

  #later(node: NetworkNode, run: () => void): void {
    this.#at(this.nowMs + this.#latencyMs, () => {
      if (!node.running) return
      run()
      this.#settle(node)
    })
  }

  // A binary heap by time, then by order of arrival.

  #at(atMs: number, run: () => void): void {
    this.#order += 1
    const events = this.#events
    events.push({ atMs, order: this.#order, run })
    let child = events.length - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!before(events[child]!, events[parent]!)) break
      swap(events, child, parent)
      child = parent
    }
  }

  #pop(): void {
    const events = this.#events
    const last = events.pop()!
    if (events.length === 0) return
    events[0] = last
    let parent = 0
    for (;;) {
      const left = 2 * parent + 1
      if (left >= events.length) break
      const right = left + 1
      const child = right < events.length && before(events[right]!, events[left]!) ? right : left
      if (!before(events[child]!, events[parent]!)) break
      swap(events, child, parent)
      parent = child
    }
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

function swap(events: Event[], a: number, b: number): void {
  const event = events[a]!
  events[a] = events[b]!
  events[b] = event
}

function hostNumber(index: number): string {
  return `10.0.${index >> 8}.${index & 255}`
}

function keyOf(address: Address): string {
  return `${address.host}:${address.port}`
}

function streamKey(end: End): string {
  return `${end.node.name}@${end.node.startedAtMs}/${end.stream}`
}
