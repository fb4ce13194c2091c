/**
 * Keeps a pod's counter traffic within packets and bytes per second: what was spent pushes the next
 * batch back. Short bursts pass, so that news under pressure is not late (counters.md §4).
 */

/** Long-run packets per second a pod sends. About 6 us of CPU each (dependencies.md §9). */
const meshPacketsPerSecondMax = 1600
/** In a large fleet, where N pods send so much each (counters.md §7). */
const relayPacketsPerSecondMax = 520
/**
 * What a message costs, in packets, that a batch has beyond its first: many counters are told in
 * full packets, and a thousand may cost three times what one does (counters.md §7).
 */
const furtherPacketCost = 1 / 3
/**
 * With headers, probes and compared balances within three times the 300 kB of one hot key, within a
 * single second too (counters.md §7).
 */
const bytesPerSecondMax = 860_000
/** One batch takes about so much of the budget at most, or the urgent news after it would wait. */
const batchMs = 100
/** A counter's own news with its id, typically. */
const entryBytes = 24
const entriesAtOnceMin = 50
/** And so many are written in well under a millisecond. */
const entriesAtOnceMax = 300
/** How far ahead of the long-run rate a burst may run, milliseconds. */
const meshBurstMs = 60
const relayBurstMs = 250
/** The same for bytes, at most. */
const bytesBurstMs = 60

export class SendBudget {
  /** A fleet beyond `meshPodsMax`. */
  isLarge = false
  #packetsPaidAtMs = Number.NEGATIVE_INFINITY
  #bytesPaidAtMs = Number.NEGATIVE_INFINITY

  /** `isFurther`: not the first message of its batch. */
  spend(packets: number, bytes: number, monotonicMs: number, isFurther = false): void {
    const cost = packets * (isFurther ? furtherPacketCost : 1) * this.#packetMs
    this.#packetsPaidAtMs = Math.max(this.#packetsPaidAtMs, monotonicMs) + cost
    this.#bytesPaidAtMs =
      Math.max(this.#bytesPaidAtMs, monotonicMs) + (bytes * 1000) / bytesPerSecondMax
  }

  get #packetMs(): number {
    return 1000 / (this.isLarge ? relayPacketsPerSecondMax : meshPacketsPerSecondMax)
  }

  get #burstMs(): number {
    return this.isLarge ? relayBurstMs : meshBurstMs
  }

  /** When the next batch may go, monotonic milliseconds; in the past when it may go now. */
  get readyAtMs(): number {
    const burstMs = this.#burstMs
    const bytesMs = Math.min(burstMs, bytesBurstMs)
    return Math.max(this.#packetsPaidAtMs - burstMs, this.#bytesPaidAtMs - bytesMs)
  }

  /** From when on nothing is paid for in advance, monotonic milliseconds. */
  get idleAtMs(): number {
    return Math.max(this.#packetsPaidAtMs, this.#bytesPaidAtMs)
  }

  /** How many counters one batch to so many peers may tell of. */
  entriesAtOnce(peers: number): number {
    const bytes = (bytesPerSecondMax * batchMs) / 1000
    const entries = Math.floor(bytes / (entryBytes * Math.max(1, peers)))
    return Math.max(entriesAtOnceMin, Math.min(entriesAtOnceMax, entries))
  }

  /** Can so many packets be sent at once without waiting? */
  affords(packets: number, monotonicMs: number): boolean {
    const paidAt = Math.max(this.#packetsPaidAtMs, monotonicMs)
    return paidAt + packets * this.#packetMs <= monotonicMs + this.#burstMs
  }
}
