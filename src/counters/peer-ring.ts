/**
 * Whom to send counter news to. Small fleets: everybody. Larger ones: the peers stand in a ring
 * ordered by origin, news goes to every k-th of them and those hand it on to their k-1 successors,
 * so that each pod hears everything in two hops and sends about 2*sqrt(N) packets a round
 * (counters.md §4). The places are shifted at random from round to round: no single relay stands
 * between two pods for long.
 */
import type { Random } from '../ports.js'
import type { MemberName, OriginId } from '../vocabulary.js'

/** Up to this many pods, own included, every batch goes straight to every peer. */
export const meshPodsMax = 32

export interface RingPeer {
  readonly member: MemberName
  readonly origin: OriginId
}

export class PeerRing {
  /** Peers in ring order, beginning after this pod. */
  #peers: readonly RingPeer[] = []
  #stride = 1
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** Replaces the peers; `self` gives the place to begin at. */
  set(self: OriginId, peers: readonly RingPeer[]): void {
    const sorted = [...peers].sort((a, b) =>
      a.origin < b.origin ? -1 : a.origin > b.origin ? 1 : 0,
    )
    const after = sorted.findIndex(peer => peer.origin > self)
    this.#peers = after < 0 ? sorted : [...sorted.slice(after), ...sorted.slice(0, after)]
    this.#stride = Math.max(1, Math.round(Math.sqrt(this.pods)))
  }

  /** Pods in the ring, own included. */
  get pods(): number {
    return this.#peers.length + 1
  }

  get isMesh(): boolean {
    return this.pods <= meshPodsMax
  }

  all(): readonly RingPeer[] {
    return this.#peers
  }

  /**
   * The peers that are asked to hand news on: every k-th of the ring, from a random place in the
   * first k.
   */
  fingers(): RingPeer[] {
    const chosen: RingPeer[] = []
    const first = Math.floor(this.#random() * this.#stride)
    for (let place = first; place < this.#peers.length; place += this.#stride) {
      chosen.push(this.#peers[place] as RingPeer)
    }
    return chosen
  }

  /** The peers that this pod hands everything on to: the next k - 1 of the ring. */
  successors(): readonly RingPeer[] {
    return this.#peers.slice(0, this.#stride - 1)
  }
}
