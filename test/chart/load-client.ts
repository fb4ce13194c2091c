/**
 * Requests at an even pace to proxies inside a test cluster, as a child process started there. Reads
 * one JSON line `{"targets":["10.98.0.1:7980"],"rate":200}` after the other on stdin, each replacing
 * the one before; writes one JSON line per second: what was answered how. Ends with its stdin.
 */
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'

export interface LoadOrder {
  /** `host:port`; asked in turn. */
  readonly targets: readonly string[]
  /** Requests per second over all targets. */
  readonly rate: number
}

export interface LoadSecond {
  /** Number of orders followed so far. */
  readonly orders: number
  /** Requests that wait for their answer. */
  readonly running: number
  /** How long this second was: more than one on a busy machine. */
  readonly durationS: number
  readonly allowed: number
  readonly denied: number
  /** Any other status, and errors of connections, as text. */
  readonly failed: readonly string[]
}

const tickMs = 20

if (process.argv[2] === 'run') main()

function main(): void {
  const agent = new Agent({ keepAlive: true })
  let order: LoadOrder = { targets: [], rate: 0 }
  let orders = 0
  let running = 0
  let counts = { allowed: 0, denied: 0, failed: [] as string[] }
  let next = 0
  let due = 0
  let lastMs = performance.now()

  const one = (target: string) => {
    const [host, port] = target.split(':')
    const fail = (text: string) => counts.failed.push(`${target}: ${text}`)
    running += 1
    const asked = request({ agent, host, port, path: '/load' }, response => {
      response.resume()
      if (response.statusCode === 200) counts.allowed += 1
      else if (response.statusCode === 429) counts.denied += 1
      else fail(`status ${response.statusCode}`)
      response.on('error', error => fail(error.message))
    })
    asked.on('error', error => {
      // A kept-alive connection that the server closed as the request went out: any client asks again.
      if (asked.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET') one(target)
      else fail(error.message)
    })
    asked.on('close', () => {
      running -= 1
    })
    asked.end()
  }

  setInterval(() => {
    const nowMs = performance.now()
    // What a stalled machine missed is not made up for all at once: the load would not be even.
    due += (Math.min(nowMs - lastMs, 200) / 1000) * order.rate
    lastMs = nowMs
    for (; due >= 1; due -= 1) {
      const target = order.targets[next++ % Math.max(1, order.targets.length)]
      if (target !== undefined) one(target)
    }
  }, tickMs)
  let reportedMs = performance.now()
  const report = () => {
    const nowMs = performance.now()
    const durationS = (nowMs - reportedMs) / 1000
    process.stdout.write(`${JSON.stringify({ orders, running, durationS, ...counts })}\n`)
    reportedMs = nowMs
    counts = { allowed: 0, denied: 0, failed: [] }
  }
  setInterval(report, 1_000)

  createInterface({ input: process.stdin })
    .on('line', line => {
      order = JSON.parse(line) as LoadOrder
      orders += 1
    })
    .on('close', () => process.exit(0))
}
