/**
 * Keeps a pod's counter traffic within packets and bytes per second: what was spent pushes the next batch
 * back. Short bursts pass, so that news under pressure is not late (counters.md §4).
 */

/** Packets a pod sends per second, long-run. About 6 us of CPU each (dependencies.md §9). */
export const packetsPerSecondMax = 1600
export const bytesPerSecondMax = 800_000
/** How far ahead of the long-run rate a burst may run, milliseconds. */
const burstMs = 60

export class SendBudget {
  #packetsPaidAtMs = Number.NEGATIVE_INFINITY
  #bytesPaidAtMs = Number.NEGATIVE_INFINITY

  spend(packets: number, bytes: number, monotonicMs: number): void {
    this.#packetsPaidAtMs =
      Math.max(this.#packetsPaidAtMs, monotonicMs) + (packets * 1000) / packetsPerSecondMax
    this.#bytesPaidAtMs =
      Math.max(this.#bytesPaidAtMs, monotonicMs) + (bytes * 1000) / bytesPerSecondMax
  }

  /** When the next batch may go, monotonic milliseconds; in the past when it may go now. */
  get readyAtMs(): number {
    return Math.max(this.#packetsPaidAtMs, this.#bytesPaidAtMs) - burstMs
  }
}
