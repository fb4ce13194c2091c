/**
 * The datagram network between simulated processes: directed links with delay, jitter, loss,
 * duplication, reordering and an MTU, any of which may be cut. Links belong to pods, so a restarted
 * process keeps its place in a partition; addresses belong to processes. Nothing here knows what a
 * packet says.
 */
import type { Random } from '../ports.js'
import type { NetworkSpec } from './scenario.js'

/** Why packets did not arrive, and what was sent; counted from the start of the scenario. */
export interface NetworkCounts {
  packets: number
  bytes: number
  lost: number
  cut: number
  oversize: number
  duplicated: number
}

/** A reordered packet is held back for this many latencies, uniformly between the two. */
const heldBackMin = 2
const heldBackMax = 10

/** What a send may wait at least, when the latency is zero: nothing arrives before it was sent. */
const delayMinMs = 0.01

export class SimNetwork {
  readonly counts: NetworkCounts = {
    packets: 0,
    bytes: 0,
    lost: 0,
    cut: 0,
    oversize: 0,
    duplicated: 0,
  }
  /** While calm (before the scenario starts) nothing is lost, duplicated or counted. */
  calm = true

  /** `cuts[from * pods + to]`: how many faults cut this direction now. */
  private readonly cuts: Uint16Array
  private readonly bytesInFlight: (Uint8Array | null)[] = []
  private readonly senders: number[] = []
  private readonly receivers: number[] = []
  private readonly freeSlots: number[] = []

  constructor(
    private readonly spec: NetworkSpec,
    private readonly pods: number,
    private readonly random: Random,
    /** Plans the arrival of the packet in `slot`, `delayMs` from now. */
    private readonly plan: (delayMs: number, slot: number) => void,
  ) {
    this.cuts = new Uint16Array(pods * pods)
  }

  /** Cuts (or mends, exactly once per cut) the direction `from` -> `to`, both pods. */
  cut(from: number, to: number): void {
    this.cuts[from * this.pods + to]!++
  }

  mend(from: number, to: number): void {
    this.cuts[from * this.pods + to]!--
  }

  passes(from: number, to: number): boolean {
    return this.cuts[from * this.pods + to] === 0
  }

  /**
   * One datagram from pod to pod; `sender` and `receiver` name the processes. Whether it arrives,
   * how often and when is drawn here.
   */
  send(from: number, to: number, sender: number, receiver: number, bytes: Uint8Array): void {
    const { counts, spec, random } = this
    if (!this.calm) {
      counts.packets++
      counts.bytes += bytes.length
    }
    if (bytes.length > spec.mtuBytes) {
      counts.oversize++
      return
    }
    if (!this.passes(from, to)) {
      counts.cut++
      return
    }
    if (!this.calm && spec.loss > 0 && random() < spec.loss) {
      counts.lost++
    } else {
      this.launch(sender, receiver, bytes)
    }
    if (!this.calm && spec.duplicate > 0 && random() < spec.duplicate) {
      counts.duplicated++
      this.launch(sender, receiver, bytes)
    }
  }

  /** Takes an arriving packet out of its slot; the slot is free afterwards. */
  take(slot: number): { sender: number; receiver: number; bytes: Uint8Array } {
    const packet = {
      sender: this.senders[slot]!,
      receiver: this.receivers[slot]!,
      bytes: this.bytesInFlight[slot]!,
    }
    this.bytesInFlight[slot] = null
    this.freeSlots.push(slot)
    return packet
  }

  /** One-way delay of the next packet, milliseconds > 0. */
  delayMs(): number {
    const { latencyMs, jitterMs } = this.spec
    const jitter = jitterMs === 0 ? 0 : (2 * this.random() - 1) * jitterMs
    return Math.max(delayMinMs, latencyMs + jitter)
  }

  private launch(sender: number, receiver: number, bytes: Uint8Array): void {
    let delayMs = this.delayMs()
    if (!this.calm && this.spec.reorder > 0 && this.random() < this.spec.reorder) {
      const latencies = heldBackMin + this.random() * (heldBackMax - heldBackMin)
      delayMs += latencies * Math.max(1, this.spec.latencyMs)
    }
    const slot = this.freeSlots.pop() ?? this.bytesInFlight.length
    this.bytesInFlight[slot] = bytes
    this.senders[slot] = sender
    this.receivers[slot] = receiver
    this.plan(delayMs, slot)
  }
}
