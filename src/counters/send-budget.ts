/**
 * Keeps a pod's counter traffic within packets and bytes per second: what was spent pushes the next
 * batch back. Short bursts pass, so that news under pressure is not late (counters.md §4).
 */

/** Long-run packets per second a pod sends. About 6 us of CPU each (dependencies.md §9). */
const meshPacketsPerSecondMax = 1600
/** In a large fleet, where N pods send so much each (counters.md §7). */
const relayPacketsPerSecondMax = 520
const bytesPerSecondMax = 600_000
/** How far ahead of the long-run rate a burst may run, milliseconds. */
const meshBurstMs = 60
const relayBurstMs = 250

export class SendBudget {
  /** A fleet beyond `meshPodsMax`. */
  isLarge = false
  #packetsPaidAtMs = Number.NEGATIVE_INFINITY
  #bytesPaidAtMs = Number.NEGATIVE_INFINITY

  spend(packets: number, bytes: number, monotonicMs: number): void {
    this.#packetsPaidAtMs = Math.max(this.#packetsPaidAtMs, monotonicMs) + packets * this.#packetMs
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
    return Math.max(this.#packetsPaidAtMs, this.#bytesPaidAtMs) - this.#burstMs
  }

  /** Can so many packets be sent at once without waiting? */
  affords(packets: number, monotonicMs: number): boolean {
    const paidAt = Math.max(this.#packetsPaidAtMs, monotonicMs)
    return paidAt + packets * this.#packetMs <= monotonicMs + this.#burstMs
  }
}
