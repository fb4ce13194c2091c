/**
 * Who has been heard at first hand lately (counters.md §5). SWIM takes seconds to suspect a pod, by
 * design; a limit cannot be held that long over a network that fell apart. So a pod that used to
 * send and has stopped is asked, directly and through others, and is silent if no answer comes:
 *
 *     heard often ... last packet --- askAfterMs --- pings, askEveryMs apart --- silentAfterMs
 *                                                                                  silent
 *
 * Any packet that comes straight from it ends that, and so does its answer through another: a link
 * that is broken one way is no split. From the silence of a pod that was seldom heard nothing can
 * be read: it is asked when another has fallen silent or SWIM suspects it. Suspicion alone makes
 * nobody silent: where three packets in ten are lost it comes every few seconds, and is refuted.
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
/** A silent pod is asked on, should its link be back while nobody has anything to send. */
const silentAskEveryMs = 1000

interface Heard {
  readonly address: Address
  lastMs: number
  /** Between packets on average, milliseconds; Infinity until the second one. */
  gapMs: number
  askAtMs: number
  /** When it was first asked since it was last heard; Infinity when it was not. */
  askedSinceMs: number
  silent: boolean
  /** SWIM suspects it, on whoever's word. */
  doubted: boolean
  /** Discovery says that it should be there. */
  expected: boolean
}

const textOf = (address: Address): string => `${address.host}:${address.port}`

export class Hearing {
  /** Pods that should be there, and suspects; discovery and the member table bound their number. */
  #pods = new Map<string, Heard>()
  #deadlineMs = Number.POSITIVE_INFINITY

  /** Which pods should be there and are missed when they fall silent. Others are forgotten. */
  watch(addresses: readonly Address[], nowMs: number): void {
    for (const pod of this.#pods.values()) pod.expected = false
    for (const address of addresses) this.#pod(address, nowMs).expected = true
    this.#forget()
  }

  /** Whom SWIM suspects: they are asked, and are silent if they do not answer. */
  doubt(addresses: readonly Address[], nowMs: number): void {
    const before = new Set<Heard>()
    for (const pod of this.#pods.values()) {
      if (pod.doubted) before.add(pod)
      pod.doubted = false
    }
    for (const address of addresses) {
      const pod = this.#pod(address, nowMs)
      pod.doubted = true
      if (!before.has(pod) && !pod.silent) {
        pod.askAtMs = Math.min(pod.askAtMs, Math.max(nowMs, pod.lastMs + askAfterMs))
      }
    }
    this.#forget()
  }

  #pod(address: Address, nowMs: number): Heard {
    const text = textOf(address)
    const known = this.#pods.get(text)
    if (known !== undefined) return known
    const pod = unheard(address, nowMs)
    this.#pods.set(text, pod)
    return pod
  }

  #forget(): void {
    for (const [text, pod] of this.#pods) if (!pod.expected && !pod.doubted) this.#pods.delete(text)
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
    if (pod.gapMs <= talkerGapMs || pod.doubted) {
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
      if (nowMs < pod.askAtMs) continue
      const answerByMs = pod.askedSinceMs + silentAfterMs - askAfterMs
      if (!pod.silent && nowMs >= pod.lastMs + silentAfterMs && nowMs >= answerByMs) {
        pod.silent = true
        pod.askAtMs = nowMs + silentAskEveryMs
        fell = true
        continue
      }
      ask(pod.address)
      pod.askAtMs = nowMs + (pod.silent ? silentAskEveryMs : askEveryMs)
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
    doubted: false,
    expected: false,
  }
}
