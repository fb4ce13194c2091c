/**
 * `grapevine demo`: a fleet of real processes on loopback that holds one limit, for everyone to
 * see.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandError, exitStatus, type Host } from '../host.js'
import { type FleetRow, holds, liveLine, liveTable, type PodRow, summary } from './demo-table.js'
import { IdealRange } from './ideal-bucket.js'
import { type LoadCounts, LoadGenerator } from './load-generator.js'
import { SidecarProcess } from './sidecar-process.js'
import { startUpstream, type Upstream } from './upstream.js'

const limitPerS = 100
const burst = 100
/** Three times what is allowed, unevenly spread over the pods. */
const offeredPerS = 300
/** How far the fleet may be off one ideal bucket. */
const toleranceShare = 0.05
/** For the pods to find each other before the first request. */
const convergeTimeoutMs = 15_000

export interface DemoFlags {
  readonly pods: number
  /** Milliseconds; null: until Ctrl-C. */
  readonly durationMs: number | null
}

interface Demo {
  readonly directory: string
  readonly rulesFile: string
  readonly upstream: Upstream
  readonly pods: SidecarProcess[]
}

/** Resolves with 0, or with 1 after a `--duration` in which the fleet did not hold its limit. */
export async function demo(host: Host, flags: DemoFlags): Promise<number> {
  const interrupted = new Promise<void>(resolve => {
    host.onSignal('SIGINT', resolve)
    host.onSignal('SIGTERM', resolve)
  })
  const directory = await mkdtemp(join(tmpdir(), 'grapevine-demo-'))
  const upstream = await startUpstream()
  const state: Demo = { directory, rulesFile: join(directory, 'rules.yaml'), upstream, pods: [] }
  try {
    await writeFile(state.rulesFile, rulesText())
    const started = startFleet(host, flags.pods, state)
    const up = await Promise.race([started.then(() => true), interrupted.then(() => false)])
    if (!up) {
      await started.catch(() => {})
      return exitStatus.ok
    }
    host.stdout.write(`${introduction(state).join('\n')}\n\n`)
    return await traffic(host, flags, state, interrupted)
  } finally {
    await Promise.all(state.pods.map(pod => pod.stop()))
    await upstream.close()
    await rm(directory, { recursive: true, force: true })
  }
}

/** The first pod alone, since the others need its address; then the rest side by side. */
async function startFleet(host: Host, count: number, state: Demo): Promise<void> {
  host.stderr.write(`starting ${count} sidecars on loopback\n`)
  try {
    const first = await startPod(host, 1, [], state)
    const others = Array.from({ length: count - 1 }, (_, index) =>
      startPod(host, index + 2, [first.addresses.gossip], state),
    )
    const failed = (await Promise.allSettled(others)).find(result => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  } catch (error) {
    throw new CommandError((error as Error).message)
  }
  state.pods.sort((one, other) => one.name.localeCompare(other.name, 'en', { numeric: true }))
  await converge(state.pods)
}

async function startPod(
  host: Host,
  number: number,
  seeds: readonly string[],
  state: Demo,
): Promise<SidecarProcess> {
  const name = `pod-${number}`
  const file = join(state.directory, `${name}.yaml`)
  await writeFile(file, sidecarText(name, state.upstream.url, seeds))
  const command = { command: host.self.command, args: host.self.args, env: host.env }
  const runArgs = ['--config', file, '--rules', state.rulesFile]
  const pod = await SidecarProcess.start(name, command, runArgs)
  state.pods.push(pod)
  return pod
}

async function converge(pods: readonly SidecarProcess[]): Promise<void> {
  const deadlineMs = performance.now() + convergeTimeoutMs
  while (performance.now() < deadlineMs) {
    const peers = await Promise.all(pods.map(peersSeen))
    if (peers.every(seen => seen === pods.length - 1)) return
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  throw new CommandError(`the pods did not find each other within ${convergeTimeoutMs / 1000} s`)
}

/** Other pods that one sees alive; null when it does not answer. */
async function peersSeen(pod: SidecarProcess): Promise<number | null> {
  try {
    const response = await fetch(`http://${pod.addresses.admin}/members`, {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(2_000),
    })
    const { members } = (await response.json()) as { members: { self: boolean; state: string }[] }
    return members.filter(member => !member.self && member.state === 'alive').length
  } catch {
    return null
  }
}

async function traffic(
  host: Host,
  flags: DemoFlags,
  state: Demo,
  interrupted: Promise<void>,
): Promise<number> {
  const ideal = new IdealRange(limitPerS, burst)
  const targets = state.pods.map((pod, index) => ({
    name: pod.name,
    url: `http://${pod.addresses.proxy}/`,
    rate: offeredPerS * shareOf(index, state.pods.length),
  }))
  const load = new LoadGenerator(targets, {
    onOffered: (_, nowMs) => ideal.left(nowMs),
    onAnswered: () => ideal.answered(performance.now()),
  })
  const screen = new Screen(host, state, load, ideal)
  load.start()
  const ticker = setInterval(() => void screen.update(), 1_000)
  await (flags.durationMs === null
    ? interrupted
    : Promise.race([interrupted, pause(flags.durationMs)]))
  clearInterval(ticker)
  await load.stop()
  const { pods, fleet } = screen.rows()
  host.stdout.write(`\n${summary(pods, fleet, toleranceShare).join('\n')}\n`)
  if (flags.durationMs === null) return exitStatus.ok
  return holds(fleet, toleranceShare) ? exitStatus.ok : exitStatus.failed
}

/** Uneven on purpose: the second pod gets half of the first one's traffic, the third a third. */
function shareOf(index: number, count: number): number {
  const weights = Array.from({ length: count }, (_, other) => 1 / (other + 1))
  return weights[index]! / weights.reduce((sum, weight) => sum + weight, 0)
}

function pause(durationMs: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, durationMs))
}

/**
 * Turns counts into what is shown: a table drawn over itself on a terminal, else a line a second.
 */
class Screen {
  readonly #host: Host
  readonly #state: Demo
  readonly #load: LoadGenerator
  readonly #ideal: IdealRange
  readonly #startedMs = performance.now()
  readonly #before = new Map<string, LoadCounts>()
  readonly #peers = new Map<string, number | null>()
  #drawnLines = 0

  constructor(host: Host, state: Demo, load: LoadGenerator, ideal: IdealRange) {
    this.#host = host
    this.#state = state
    this.#load = load
    this.#ideal = ideal
    for (const pod of state.pods) this.#peers.set(pod.name, state.pods.length - 1)
  }

  async update(): Promise<void> {
    const { pods, fleet } = this.rows()
    const { stdout } = this.#host
    if (stdout.isTty) {
      const lines = liveTable(pods, fleet).map(line => line.slice(0, stdout.columns - 1))
      const up = this.#drawnLines > 0 ? `\u001b[${this.#drawnLines}A` : ''
      stdout.write(`${up}\u001b[0J${lines.join('\n')}\n`)
      this.#drawnLines = lines.length
    } else {
      stdout.write(`${liveLine(pods, fleet)}\n`)
    }
    for (const pod of this.#state.pods) this.#peers.set(pod.name, await peersSeen(pod))
  }

  /** Counts of now; "last" is since the previous call. */
  rows(): { pods: PodRow[]; fleet: FleetRow } {
    const pods = this.#state.pods.map(pod => ({
      name: pod.name,
      url: `http://${pod.addresses.proxy}/`,
      total: { ...this.#load.counts(pod.name) },
      last: this.#since(pod.name, this.#load.counts(pod.name)),
      peers: this.#peers.get(pod.name) ?? null,
    }))
    const total = this.#load.total()
    const fleet = {
      elapsedS: Math.round((performance.now() - this.#startedMs) / 1000),
      limitPerS,
      burst,
      total,
      last: this.#since('', total),
      ideal: this.#ideal.nearest(total.allowed),
    }
    return { pods, fleet }
  }

  #since(name: string, counts: Readonly<LoadCounts>): LoadCounts {
    const before = this.#before.get(name) ?? { offered: 0, allowed: 0, denied: 0, failed: 0 }
    this.#before.set(name, { ...counts })
    return {
      offered: counts.offered - before.offered,
      allowed: counts.allowed - before.allowed,
      denied: counts.denied - before.denied,
      failed: counts.failed - before.failed,
    }
  }
}

function rulesText(): string {
  return `version: 1
rules:
  - name: demo
    key: [global]
    limit: ${limitPerS}/1s
    burst: ${burst}
`
}

function sidecarText(name: string, upstreamUrl: string, seeds: readonly string[]): string {
  return `version: 1
node: { name: ${name} }
proxy: { listen: "127.0.0.1:0", upstream: "${upstreamUrl}" }
api: { listen: "127.0.0.1:0" }
telemetry: { listen: "127.0.0.1:0" }
admin: { listen: "127.0.0.1:0" }
gossip: { bind: "127.0.0.1:0", label: grapevine-demo }
discovery: { static: [${seeds.map(seed => `"${seed}"`).join(', ')}] }
`
}

function introduction(state: Demo): string[] {
  const first = state.pods[0]!.addresses
  return [
    `${state.pods.length} sidecars share one limit: ${limitPerS} requests per second, burst ${burst}.`,
    `Together they are offered ${offeredPerS} requests per second, most of them to the first.`,
    '',
    ...state.pods.map(
      pod =>
        `  ${pod.name}  proxy http://${pod.addresses.proxy}/  ` +
        `metrics http://${pod.addresses.telemetry}/metrics  admin http://${pod.addresses.admin}/`,
    ),
    '',
    `  curl -i http://${first.proxy}/`,
    `  curl -s http://${first.telemetry}/metrics | grep grapevine_decisions_total`,
    `  curl -s -H 'content-type: application/json' -d '{"rule":"demo","cost":0}' http://${first.api}/v1/check`,
    '',
    'Ctrl-C stops everything.',
  ]
}
