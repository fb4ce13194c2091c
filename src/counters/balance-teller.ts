/**
 * Tells peers the balance of contested buckets with all totals contained in it, as a push/pull
 * would. Nothing ends a drift of views while a bucket stays contested, and the pod that sees least
 * would be denied the longer the fleet is busy.
 */
import type { Random } from '../ports.js'
import type { CounterTable } from './counter-table.js'
import { bucketFamily } from './family.js'
import type { PeerRing, RingPeer } from './peer-ring.js'
import type { OriginNumbers } from './publish.js'
import type { SendCounters } from './replicator.js'
import type { SendBudget } from './send-budget.js'
import { writeSnapshot } from './snapshot.js'

/** Each scarce bucket goes to a random peer about this often, milliseconds. */
const compareMs = 1000
/** A bucket of which more than this part is used may run out soon. */
const contestedPart = 0.75
/** A balance that another sees far emptier is told to so many, so long after the last time. */
const answeredPeers = 4
const answerGapMs = 200
/** Buckets told in one go, and slots looked at for them. */
const comparedMax = 16
const comparedLooksMax = 16_384

interface BalanceParts {
  readonly table: CounterTable
  readonly self: OriginNumbers
  readonly ring: PeerRing
  readonly budget: SendBudget
  readonly random: Random
  /** Greatest message, bytes. */
  readonly bytesMax: number
}

export class BalanceTeller {
  /** When `tell` is due, monotonic. */
  dueAtMs = Number.NEGATIVE_INFINITY
  #toldAtMs = Number.NEGATIVE_INFINITY
  #cursor = 0
  readonly #parts: BalanceParts

  constructor(parts: BalanceParts) {
    this.#parts = parts
  }

  /** Somebody sees a bucket far emptier than this pod does: not to wait for the next round. */
  hasten(monotonicMs: number): void {
    const answerAtMs = Math.max(monotonicMs, this.#toldAtMs + answerGapMs)
    this.dueAtMs = Math.min(this.dueAtMs, answerAtMs)
  }

  /** Tells `lagging` to several peers and forgets it; scarce buckets, in turn, to one. */
  tell(lagging: Set<number>, monotonicMs: number, wallMs: number, send: SendCounters): void {
    const { table, ring, random } = this.#parts
    this.dueAtMs = monotonicMs + compareMs * (0.5 + random())
    this.#toldAtMs = monotonicMs
    if (ring.all().length === 0) return
    const { slots } = table
    for (const slot of lagging) {
      if (slots.isTaken(slot)) this.#tellOne(slot, answeredPeers, monotonicMs, wallMs, send)
    }
    lagging.clear()
    let left = comparedMax
    for (let looks = Math.min(comparedLooksMax, slots.slotsMax); looks > 0 && left > 0; looks--) {
      const slot = this.#cursor
      this.#cursor = (slot + 1) % slots.slotsMax
      if (!slots.isTaken(slot) || !this.#isContested(slot, monotonicMs, wallMs)) continue
      left--
      this.#tellOne(slot, 1, monotonicMs, wallMs, send)
    }
  }

  /** Do views of this counter decide who is served? Then they should be the same. */
  #isContested(slot: number, monotonicMs: number, wallMs: number): boolean {
    const { slots, levels } = this.#parts.table
    if (slots.scarce[slot] === 1) return true
    if (slots.family[slot] !== bucketFamily || slots.othersDemand[slot] === 0) return false
    const used = levels.published(slot, monotonicMs, wallMs)
    return used > contestedPart * (slots.capacity[slot] as number)
  }

  /** To `count` peers, from a random one on. */
  #tellOne(
    slot: number,
    count: number,
    monotonicMs: number,
    wallMs: number,
    send: SendCounters,
  ): void {
    const { table, self, bytesMax, budget, ring, random } = this.#parts
    const message = writeSnapshot({
      table,
      self,
      from: slot,
      count: 1,
      bytesMax,
      monotonicMs,
      wallMs,
      isCheckpoint: false,
    })
    if (message === null) return
    const peers = ring.all()
    const first = Math.floor(random() * peers.length)
    for (let index = 0; index < Math.min(count, peers.length); index++) {
      const peer = peers[(first + index) % peers.length] as RingPeer
      send(peer.member, message)
      budget.spend(1, message.length, monotonicMs)
    }
  }
}
