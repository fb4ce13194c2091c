/**
 * Who has been heard at first hand lately (counters.md §5). SWIM takes seconds to suspect a pod, by
 * design; a limit cannot be held that long over a network that fell apart. So a pod that used to
 * send and has stopped is asked, directly and through others, and is silent if no answer comes:
 *
 *     heard often ... last packet --- askAfterMs --- pings, askEveryMs apart --- silentAfterMs
 *                                                                                  silent
 *
 * Any packet that comes straight from it ends that, and so does its answer through another: a link
 * that is broken one way is no split. A pod that was seldom heard is asked only when another has
 * fallen silent, and else left to SWIM: nothing can be read from its silence.
 */
import type { Address } from './vocabulary.js'

/** A pod heard no more often than this is not missed, milliseconds between packets on average. */
const talkerGapMs = 150
/** Weight of one gap in the average. */
const gapWeight = 0.1
/** Without a packet for so long a talker is asked. */
const askAfterMs = 250
/**
 * Ten times, that is. At 30 % loss each way half of the pings are answered, and a quarter of those
 * through another pod: all fail once in ten thousand.
 */
const askEveryMs = 35
/** Without a packet for so long it is silent; longer than a pause that may go unnoticed, 500 ms. */
const silentAfterMs = 600

interface Heard {
  readonly address: Address
  lastMs: number
  /** Between packets on average, milliseconds; Infinity until the second one. */
  gapMs: number
  askAtMs: number
  /** When it was first asked since it was last heard; Infinity when it was not. */
  askedSinceMs: number
  silent: boolean
}

const textOf = (address: Address): string => `${address.host}:${address.port}`

export class Hearing {
  /** Pods that should be there; discovery bounds their number. */
  #pods = new Map<string, Heard>()
  #deadlineMs = Number.POSITIVE_INFINITY

  /** Which pods should be there and are missed when they fall silent. Others are forgotten. */
  watch(addresses: readonly Address[], nowMs: number): void {
    const before = this.#pods
    this.#pods = new Map()
    for (const address of addresses) {
      const text = textOf(address)
      this.#pods.set(text, before.get(text) ?? unheard(address, nowMs))
    }
    this.#arm()
  }

  /** A packet came straight from `from`. True when that ends a silence. */
  heard(from: Address, nowMs: number): boolean {
    const pod = this.#pods.get(textOf(from))
    if (pod === undefined) return false
    const wasSilent = pod.silent
    const gapMs = Math.min(nowMs - pod.lastMs, silentAfterMs)
    pod.gapMs += (gapMs - pod.gapMs) * gapWeight
    pod.lastMs = nowMs
    pod.silent = false
    pod.askAtMs = Number.POSITIVE_INFINITY
    pod.askedSinceMs = Number.POSITIVE_INFINITY
    if (pod.gapMs <= talkerGapMs) {
      pod.askAtMs = nowMs + askAfterMs
      this.#deadlineMs = Math.min(this.#deadlineMs, pod.askAtMs)
    }
    return wasSilent
  }

  isSilent(address: Address): boolean {
    return this.#pods.get(textOf(address))?.silent ?? false
  }

  /** This process stood still: what the others sent meanwhile has not been read. */
  stalled(nowMs: number): void {
    for (const pod of this.#pods.values()) {
      if (pod.silent || pod.askAtMs === Number.POSITIVE_INFINITY) continue
      pod.lastMs = nowMs
      pod.askAtMs = nowMs + askAfterMs
      pod.askedSinceMs = Number.POSITIVE_INFINITY
    }
    this.#arm()
  }

  nextDeadlineMs(): number {
    return this.#deadlineMs
  }

  /** Asks whoever is due; true when a pod fell silent. */
  advance(nowMs: number, ask: (address: Address) => void): boolean {
    if (nowMs < this.#deadlineMs) return false
    let fell = false
    for (const pod of this.#pods.values()) {
      if (pod.silent || nowMs < pod.askAtMs) continue
      const answerByMs = pod.askedSinceMs + silentAfterMs - askAfterMs
      if (nowMs >= pod.lastMs + silentAfterMs && nowMs >= answerByMs) {
        pod.silent = true
        pod.askAtMs = Number.POSITIVE_INFINITY
        fell = true
        continue
      }
      ask(pod.address)
      pod.askAtMs = nowMs + askEveryMs
      pod.askedSinceMs = Math.min(pod.askedSinceMs, nowMs)
    }
    if (fell) this.#askQuiet(nowMs)
    this.#arm()
    return fell
  }

  /** Where one is cut off others may be: in a large fleet few are heard often at first hand. */
  #askQuiet(nowMs: number): void {
    for (const pod of this.#pods.values()) {
      if (pod.silent || nowMs < pod.lastMs + askAfterMs) continue
      pod.askAtMs = Math.min(pod.askAtMs, nowMs)
    }
  }

  #arm(): void {
    this.#deadlineMs = Number.POSITIVE_INFINITY
    for (const pod of this.#pods.values())
      this.#deadlineMs = Math.min(this.#deadlineMs, pod.askAtMs)
  }
}

function unheard(address: Address, nowMs: number): Heard {
  return {
    address,
    lastMs: nowMs,
    gapMs: silentAfterMs,
    askAtMs: Number.POSITIVE_INFINITY,
    askedSinceMs: Number.POSITIVE_INFINITY,
    silent: false,
  }
}
