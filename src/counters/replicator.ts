/**
 * Carries counters between pods: what changed goes out in batches, as soon as it matters and no
 * sooner; what arrives is merged and, in a large fleet, handed on. Messages in, messages out;
 * sockets, members and their addresses belong to others. counters.md §4.
 */
import { BucketHistogram } from '../lib/bucket-histogram.js'
import type { Random } from '../ports.js'
import type { MemberName, OriginId } from '../vocabulary.js'
import { BalanceTeller } from './balance-teller.js'
import { checkpointKind, createWireEntry, MessageWriter, type WireEntry } from './counter-codec.js'
import type { CounterTable } from './counter-table.js'
import { MessageMerger } from './message-merger.js'
import { NewsBatch } from './news-batch.js'
import { originLive, originSilent } from './origin-registry.js'
import { PeerRing, type RingPeer } from './peer-ring.js'
import { describeEntry, describeOwn, type OriginNumbers } from './publish.js'
import { SendBudget } from './send-budget.js'
import { relayList, repeatList, slowList, soonList, urgentList } from './send-queue.js'
import { writeSnapshot } from './snapshot.js'
import { StateInbox } from './state-inbox.js'
import { StateSender } from './state-sender.js'

export interface ReplicatorOptions {
  readonly table: CounterTable
  /** Whose totals this pod's are. */
  readonly origin: OriginId
  /** Greatest payload of one user message, bytes. */
  readonly payloadBytesMax: number
}

export interface CounterPeer {
  readonly member: MemberName
  readonly node: string
  readonly origin: OriginId
  readonly draining: boolean
  /** Known to be there and not answering. */
  readonly silent: boolean
}

/** A batch in the making. */
interface Outgoing {
  readonly own: NewsBatch
  /**
   * What goes to the successors in the ring: others' news, and own news that is not sent directly.
   */
  readonly handedOn: NewsBatch
  /** Own news goes straight to every peer. */
  readonly direct: boolean
  /** Own counters that may still be added. */
  left: number
  readonly monotonicMs: number
  readonly wallMs: number
}

export type SendCounters = (to: MemberName, payload: Uint8Array) => void

/** Least time between two batches, milliseconds (counters.md §4). */
const batchGapMs = 10
/** Least time between two batches that only hand on. */
const relayGapMs = 5
/** How long a moved share may wait. */
const soonMs = 50
/** How long the use of a long window may wait. */
const slowMs = 1000
/** A quiet counter is told again so often, at this distance. */
const repeatsMax = 3
const repeatGapMs = 100
/** So many of these are few. */
const repeatsWithNewsMax = 32
/**
 * A pod that could not pull a state for so long takes its whole part all the same (product.md §6).
 */
const syncMsMax = 2000

/** A table that is too large for one state is pulled in so many more at most, at this distance. */
const pullsMax = 32
const pullGapMs = 250
const youngMs = 30_000

/** Ages of news in milliseconds. */
const ageBoundsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000]

export class Replicator {
  readonly ageHistogram = new BucketHistogram(ageBoundsMs)
  entriesOut = 0
  readonly #table: CounterTable
  readonly #self: OriginNumbers
  readonly #origin: OriginId
  readonly #payloadBytesMax: number
  readonly #ring: PeerRing
  readonly #budget = new SendBudget()
  readonly #balances: BalanceTeller
  readonly #merger: MessageMerger
  readonly #sender: StateSender
  readonly #inbox = new StateInbox()
  readonly #wire: WireEntry = createWireEntry()
  readonly #scratch: Int32Array
  #peers: readonly CounterPeer[] = []
  #lastBatchAtMs = Number.NEGATIVE_INFINITY
  #synced = false
  /** States that this pod may still ask for, until it has seen all that one other pod knows. */
  #pullsLeft = pullsMax
  #endsLeft = 2
  #pullAtMs = Number.POSITIVE_INFINITY
  #visible = 1
  #known = 1
  /** When this pod first saw another one, monotonic. */
  #joinedAtMs = Number.POSITIVE_INFINITY

  constructor(options: ReplicatorOptions, ports: { readonly random: Random }) {
    const { table, origin } = options
    this.#table = table
    this.#origin = origin
    this.#payloadBytesMax = options.payloadBytesMax
    this.#ring = new PeerRing(ports.random)
    const self = table.origins.numberOfText(origin)
    this.#self = {
      hi: table.origins.hi[self] as number,
      lo: table.origins.lo[self] as number,
    }
    table.origins.state[self] = originLive
    table.self = self
    table.nodeOf = origin => this.nodeOf(origin)
    this.#sender = new StateSender(table, this.#self)
    this.#scratch = new Int32Array(table.slots.slotsMax)
    this.#balances = new BalanceTeller({
      table,
      self: this.#self,
      ring: this.#ring,
      budget: this.#budget,
      random: ports.random,
      bytesMax: options.payloadBytesMax,
    })
    this.#merger = new MessageMerger({ table, self, ageHistogram: this.ageHistogram })
  }

  /** True once a peer's state was merged, or when there was nobody to ask. */
  get synced(): boolean {
    return this.#synced
  }

  /** Typical age of news on arrival, milliseconds; what the limiter calls `lag`. */
  get lagMs(): number {
    return this.#table.lagMs
  }

  get messagesIgnored(): number {
    return this.#merger.ignored + this.#inbox.refused
  }

  get entriesIn(): number {
    return this.#merger.entriesIn
  }

  /** Entries of others that were left out: no room for them, or for the origin's number. */
  get entriesRefused(): number {
    return this.#merger.refused + this.#table.origins.refused
  }

  /** Tells how long a packet takes one way; half a probe's round trip. */
  observeTransitMs(transitMs: number): void {
    this.#merger.observeTransitMs(transitMs)
  }

  /** Who shares the counters; `known`: pods that should be there, own included. */
  setPeers(peers: readonly CounterPeer[], known: number, monotonicMs: number): void {
    const { origins, queue } = this.#table
    this.#peers = peers
    let visible = 1
    for (const peer of peers) {
      const number = origins.numberOfText(peer.origin)
      if (number < 0) continue
      const was = origins.state[number]
      if (!peer.silent) visible++
      if (was === originSilent && !peer.silent) origins.backAt[number] = monotonicMs
      origins.state[number] = peer.silent ? originSilent : originLive
    }
    this.#ring.set(this.#origin, peers)
    queue.pods = peers.length + 1
    this.#budget.isLarge = !this.#ring.isMesh
    this.#visible = visible
    this.#known = Math.max(known, visible)
    if (!this.#synced && visible > 1) this.#joinedAtMs = Math.min(this.#joinedAtMs, monotonicMs)
    this.#view(monotonicMs)
  }

  /**
   * Until it knows what the others have used, a pod works with its even part, as if it saw nobody.
   */
  #view(monotonicMs: number): void {
    if (!this.#synced && monotonicMs > this.#joinedAtMs + syncMsMax) this.#synced = true
    this.#setFleet(this.#synced ? this.#visible : 1, this.#known, monotonicMs)
  }

  #setFleet(visible: number, known: number, monotonicMs: number): void {
    const before = this.#table.fleet
    if (before.visible === visible && before.known === known) return
    const isSplit = visible < known
    const wasSplit = before.visible < before.known
    const since = wasSplit ? before.splitSinceMs : monotonicMs
    const wasWhole = before.visible === before.known && !isSplit
    this.#table.fleet = {
      // A fleet that is whole before and after divides nothing: no counter needs to look.
      number: wasWhole ? before.number : before.number + 1,
      visible,
      known,
      splitSinceMs: isSplit ? since : Number.POSITIVE_INFINITY,
    }
  }

  /**
   * The origin speaks for no node any more: its demand ends, its usage stays as long as it matters.
   */
  originDeparted(origin: OriginId, monotonicMs: number): void {
    const number = this.#table.origins.numberOfText(origin)
    if (number >= 0) this.#table.originDeparted(number, monotonicMs)
  }

  handleMessage(bytes: Uint8Array, monotonicMs: number, wallMs: number): void {
    const mayHandOn = !this.#ring.isMesh
    this.#merger.merge(bytes, monotonicMs, wallMs, { mayHandOn, isPrompt: true })
    if (this.#merger.lagging.size === 0) return
    this.#balances.hasten(monotonicMs)
  }

  /**
   * The application's part of a push/pull: at most `bytesMax` bytes, in turn when there is more.
   */
  localState(_join: boolean, monotonicMs: number, wallMs: number, bytesMax: number): Uint8Array {
    return this.#sender.state(monotonicMs, wallMs, bytesMax)
  }

  /** A peer's part of a push/pull. A large one is merged bit by bit as time goes on. */
  mergeRemoteState(bytes: Uint8Array, _join: boolean, monotonicMs: number, wallMs: number): void {
    if (this.#inbox.accept(bytes, monotonicMs)) return
    if (!this.#merger.merge(bytes, monotonicMs, wallMs)) return
    this.#synced = true
    this.#view(monotonicMs)
  }

  #mergeWaiting(monotonicMs: number, wallMs: number): void {
    const next = this.#inbox.take(monotonicMs)
    if (next === null) return
    const { bytes, heldMs } = next.part
    const merged = this.#merger.merge(bytes, monotonicMs, wallMs, { heldMs })
    if (!next.isLast) return
    const isYoung = monotonicMs < this.#joinedAtMs + youngMs
    this.#endsLeft -= next.ends
    if (this.#endsLeft <= 0 || !isYoung) this.#pullsLeft = 0
    const mayPull = this.#pullsLeft > 0
    this.#pullAtMs = mayPull ? monotonicMs + pullGapMs : Number.POSITIVE_INFINITY
    if (!merged) return
    this.#synced = true
    this.#view(monotonicMs)
  }

  /** When another state is to be pulled, monotonic; Infinity for never. */
  get pullAtMs(): number {
    return this.#pullAtMs
  }

  /** Is another state to be pulled now? A young pod asks on until it has seen all. */
  takePull(monotonicMs: number): boolean {
    if (monotonicMs < this.#pullAtMs) return false
    this.#pullsLeft--
    // Should nothing come of it, the next one is due all the same.
    this.#pullAtMs = this.#pullsLeft > 0 ? monotonicMs + 4 * pullGapMs : Number.POSITIVE_INFINITY
    return true
  }

  /** Nobody is there to pull from: what this pod knows is all there is. */
  markSynced(): void {
    this.#synced = true
  }

  /** When `advance` has something to do; monotonic, Infinity for never. */
  nextDeadlineMs(): number {
    // Alone too: whoever comes next asks for the state at once.
    const { departures } = this.#table
    const state = Math.min(
      this.#inbox.nextDeadlineMs(),
      this.#sender.nextDeadlineMs(),
      departures.nextDeadlineMs(),
    )
    if (this.#ring.pods < 2) return state
    return Math.min(state, this.#batchDueAtMs(), this.#balances.dueAtMs)
  }

  #batchDueAtMs(): number {
    if (this.#ring.pods < 2) return Number.POSITIVE_INFINITY
    const queue = this.#table.queue
    const ready = Math.max(this.#lastBatchAtMs, this.#budget.readyAtMs)
    const urgent = Math.max(ready + batchGapMs, queue.sinceMs(urgentList))
    const relay = Math.max(ready + relayGapMs, queue.sinceMs(relayList))
    const soon = Math.max(ready + batchGapMs, queue.sinceMs(soonList) + soonMs)
    const slow = Math.max(ready + batchGapMs, queue.sinceMs(slowList) + slowMs)
    const repeat = Math.max(ready + batchGapMs, queue.sinceMs(repeatList) + repeatGapMs)
    return Math.min(urgent, relay, soon, slow, Math.max(repeat, this.#repeatableAtMs()))
  }

  /** A few repetitions go with any batch, many take what first news leaves of the budget. */
  #repeatableAtMs(): number {
    const isFew = this.#table.queue.count(repeatList) <= repeatsWithNewsMax
    return isFew ? Number.NEGATIVE_INFINITY : this.#budget.idleAtMs
  }

  /** Sends what is due. */
  advance(monotonicMs: number, wallMs: number, send: SendCounters): void {
    this.#mergeWaiting(monotonicMs, wallMs)
    // The shell may have given up waiting for a state since.
    this.#view(monotonicMs)
    this.#sender.advance(monotonicMs, wallMs)
    this.#table.departures.advance(monotonicMs)
    if (monotonicMs >= this.#batchDueAtMs()) this.#batch(false, monotonicMs, wallMs, send)
    if (monotonicMs >= this.#balances.dueAtMs) {
      this.#balances.tell(this.#merger.lagging, monotonicMs, wallMs, send)
    }
  }

  /** Sends everything that is not published yet, straight to every peer; before leaving. */
  flush(monotonicMs: number, wallMs: number, send: SendCounters): void {
    this.#batch(true, monotonicMs, wallMs, send)
  }

  #batch(everything: boolean, monotonicMs: number, wallMs: number, send: SendCounters): void {
    const peers = this.#ring.all()
    const queue = this.#table.queue
    const isRepeatable = everything || monotonicMs >= this.#repeatableAtMs()
    this.#lastBatchAtMs = monotonicMs
    // A large fleet too hears urgent news at first hand while there is budget for it.
    const isUrgent = queue.count(urgentList) > 0
    const affordable = isUrgent && this.#budget.affords(peers.length, monotonicMs)
    const direct = everything || this.#ring.isMesh || affordable
    const fingers = direct ? peers : this.#ring.fingers()
    const successors = this.#ring.successors()
    const peersTold = fingers.length + (direct ? 0 : successors.length)
    const out: Outgoing = {
      own: new NewsBatch(this.#table, !direct, this.#payloadBytesMax),
      handedOn: new NewsBatch(this.#table, false, this.#payloadBytesMax),
      direct,
      left: everything ? Number.POSITIVE_INFINITY : this.#budget.entriesAtOnce(peersTold),
      monotonicMs,
      wallMs,
    }
    const due = (list: number, waitMs: number) =>
      everything || monotonicMs >= queue.sinceMs(list) + waitMs
    this.#addOwn(urgentList, out)
    if (due(soonList, soonMs)) this.#addOwn(soonList, out)
    if (due(slowList, slowMs)) this.#addOwn(slowList, out)
    if (isRepeatable && due(repeatList, repeatGapMs)) this.#addRepeats(out)
    this.#addRelays(out)
    this.#send(out.own, fingers, monotonicMs, send)
    this.#send(out.handedOn, successors, monotonicMs, send)
  }

  #addOwn(list: number, out: Outgoing): void {
    const count = this.#table.queue.drain(list, this.#scratch, out.left)
    out.left -= count
    for (let index = 0; index < count; index++) {
      const slot = this.#scratch[index] as number
      if (this.#table.slots.sentAt[slot] === out.monotonicMs) continue
      this.#table.slots.repeats[slot] = repeatsMax
      this.#addSlot(slot, out, false)
    }
  }

  #addSlot(slot: number, out: Outgoing, everySlice: boolean): void {
    const table = this.#table
    const { slots } = table
    const { monotonicMs, wallMs } = out
    describeOwn(table, slot, this.#self, this.#wire, everySlice, monotonicMs, wallMs)
    out.own.add(slot, this.#wire)
    if (!out.direct) out.handedOn.add(slot, this.#wire)
    slots.sentUsage[slot] = table.levels.ownUsage(slot)
    slots.sentDemand[slot] = this.#wire.demand / 1000
    slots.sentAt[slot] = monotonicMs
    slots.dirtySince[slot] = Number.NaN
    if ((slots.repeats[slot] as number) > 0) table.queue.mark(slot, repeatList, monotonicMs)
  }

  /** Counters that were told and have been quiet since are told again, a few times. */
  #addRepeats(out: Outgoing): void {
    const { queue, slots } = this.#table
    const count = queue.drain(repeatList, this.#scratch, out.left)
    out.left -= count
    for (let index = 0; index < count; index++) {
      const slot = this.#scratch[index] as number
      const left = slots.repeats[slot] as number
      if (left === 0) continue
      if (out.monotonicMs - (slots.sentAt[slot] as number) < repeatGapMs) {
        queue.mark(slot, repeatList, out.monotonicMs)
        continue
      }
      slots.repeats[slot] = left - 1
      this.#addSlot(slot, out, true)
    }
  }

  #addRelays(out: Outgoing): void {
    const { queue, slots, entries } = this.#table
    const count = queue.drain(relayList, this.#scratch)
    for (let index = 0; index < count; index++) {
      const slot = this.#scratch[index] as number
      let entry = slots.firstEntry[slot] as number
      for (; entry >= 0; entry = entries.next[entry] as number) {
        if (entries.relay[entry] === 0) continue
        entries.relay[entry] = 0
        describeEntry(this.#table, slot, entry, this.#wire, out.monotonicMs)
        out.handedOn.add(slot, this.#wire)
      }
    }
  }

  #send(
    batch: NewsBatch,
    peers: readonly RingPeer[],
    monotonicMs: number,
    send: SendCounters,
  ): void {
    let isFurther = false
    for (const message of batch.finish()) {
      for (const peer of peers) send(peer.member, message)
      this.#budget.spend(peers.length, message.length * peers.length, monotonicMs, isFurther)
      isFurther = true
    }
    this.entriesOut += batch.entries * peers.length
  }

  /** Every counter with its balance, for a file that outlives the process. */
  exportTotals(monotonicMs: number, wallMs: number, bytesMax = 64 << 20): Uint8Array {
    const table = this.#table
    const whole = writeSnapshot({
      table,
      self: this.#self,
      from: 0,
      count: table.slots.slotsMax,
      bytesMax,
      monotonicMs,
      wallMs,
      isCheckpoint: true,
    })
    return whole ?? new MessageWriter(checkpointKind, 0, 64).take()
  }

  /** Takes a checkpoint in as what an earlier start said; false when it is none of ours. */
  importTotals(bytes: Uint8Array, monotonicMs: number, wallMs: number): boolean {
    return this.#merger.merge(bytes, monotonicMs, wallMs)
  }

  /** The node that speaks for an origin, null when none is known. */
  nodeOf(origin: OriginId): string | null {
    return this.#peers.find(peer => peer.origin === origin)?.node ?? null
  }
}
