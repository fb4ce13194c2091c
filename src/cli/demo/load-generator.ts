/**
 * Open-loop HTTP load: requests leave on schedule whether or not answers come, over kept-alive
 * connections, and each answer is counted by what it means. Arrivals are a Poisson process: evenly
 * spaced ones would march in step, and whoever comes first in each step would get everything.
 */
import { Agent, request } from 'node:http'

/** How often the schedule is looked at, in milliseconds. */
const tickMs = 2
/** An answer later than this is an error. */
const answerTimeoutMs = 5_000
/** Connections per target; at 1 ms an answer that is tens of thousands of requests per second. */
const connectionsMax = 64
/** After a pause of the process, no more than this much of the schedule is made up for. */
const catchUpMaxMs = 250

export interface LoadTarget {
  readonly name: string
  /** `http://host:port/path`. */
  readonly url: string
  /** Requests per second; may be changed while it runs. */
  rate: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface LoadCounts {
  offered: number
  /** Answers 2xx. */
  allowed: number
  /** Answers 429. */
  denied: number
  /** Any other answer, and none. */
  failed: number
}

export interface LoadGeneratorOptions {
  /** Called for each request as it leaves, in order, with the monotonic time in milliseconds. */
  readonly onOffered?: (target: LoadTarget, monotonicMs: number) => void
  /** Called for each answer; status 0 and a reason when there was none. */
  readonly onAnswered?: (target: LoadTarget, status: number, reason: string | null) => void
}

interface Lane {
  readonly target: LoadTarget
  readonly agent: Agent
  readonly counts: LoadCounts
  /** Expected arrivals since the last one. */
  elapsed: number
  /** At how many expected arrivals the next one comes; exponential with mean 1. */
  nextAt: number
}

export class LoadGenerator {
  readonly #options: LoadGeneratorOptions
  readonly #lanes: Lane[] = []
  #timer: NodeJS.Timeout | null = null
  #lastTickMs = 0
  #inFlight = 0
  #onIdle: (() => void) | null = null

  constructor(targets: readonly LoadTarget[], options: LoadGeneratorOptions = {}) {
    this.#options = options
    for (const target of targets) this.add(target)
  }

  add(target: LoadTarget): void {
    this.#lanes.push({
      target,
      agent: new Agent({ keepAlive: true, maxSockets: connectionsMax }),
      counts: { offered: 0, allowed: 0, denied: 0, failed: 0 },
      elapsed: 0,
      nextAt: exponential(),
    })
  }

  start(): void {
    this.#lastTickMs = performance.now()
    this.#timer = setInterval(() => this.#tick(), tickMs)
  }

  counts(name: string): Readonly<LoadCounts> {
    const lane = this.#lanes.find(one => one.target.name === name)
    return lane?.counts ?? { offered: 0, allowed: 0, denied: 0, failed: 0 }
  }

  total(): LoadCounts {
    const total = { offered: 0, allowed: 0, denied: 0, failed: 0 }
    for (const { counts } of this.#lanes) {
      total.offered += counts.offered
      total.allowed += counts.allowed
      total.denied += counts.denied
      total.failed += counts.failed
    }
    return total
  }

  /** Sends no more; resolves when every request was answered or given up. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    if (this.#inFlight > 0) {
      await new Promise<void>(resolve => {
        this.#onIdle = resolve
      })
    }
    for (const lane of this.#lanes) lane.agent.destroy()
  }

  #tick(): void {
    const nowMs = performance.now()
    const elapsedMs = Math.min(catchUpMaxMs, nowMs - this.#lastTickMs)
    this.#lastTickMs = nowMs
    for (const lane of this.#lanes) lane.elapsed += (lane.target.rate * elapsedMs) / 1000
    // One each in turn, from a random one on, so that targets are offered side by side.
    const { length } = this.#lanes
    const first = Math.floor(Math.random() * length)
    for (let sent = true; sent; ) {
      sent = false
      for (let index = 0; index < length; index += 1) {
        const lane = this.#lanes[(first + index) % length]!
        if (lane.elapsed < lane.nextAt) continue
        lane.elapsed -= lane.nextAt
        lane.nextAt = exponential()
        sent = true
        this.#send(lane, nowMs)
      }
    }
  }

  #send(lane: Lane, nowMs: number): void {
    lane.counts.offered += 1
    this.#inFlight += 1
    this.#options.onOffered?.(lane.target, nowMs)
    let answered = false
    const settle = (status: number, reason: string | null) => {
      if (answered) return
      answered = true
      this.#count(lane, status, reason)
    }
    const outgoing = request(lane.target.url, {
      agent: lane.agent,
      headers: lane.target.headers ?? {},
      timeout: answerTimeoutMs,
    })
    outgoing.on('response', response => {
      response.on('error', error => settle(0, error.message))
      response.on('end', () => settle(response.statusCode ?? 0, null))
      response.resume()
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
    outgoing.on('error', (error: NodeJS.ErrnoException) => settle(0, error.code ?? error.message))
    outgoing.on('close', () => settle(0, 'closed'))
    outgoing.end()
  }

  #count(lane: Lane, status: number, reason: string | null): void {
    if (status >= 200 && status < 300) lane.counts.allowed += 1
    else if (status === 429) lane.counts.denied += 1
    else lane.counts.failed += 1
    this.#options.onAnswered?.(lane.target, status, reason)
    this.#inFlight -= 1
    if (this.#inFlight === 0) this.#onIdle?.()
  }
}

function exponential(): number {
  return -Math.log(1 - Math.random())
}
