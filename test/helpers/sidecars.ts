/** Real sidecar processes for end-to-end tests: built program, loopback, a directory that is removed. */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { startUpstream, type Upstream } from '../../src/cli/demo/upstream.js'
import { until } from './until.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(root, 'dist', 'main.js')

/** Compiles if sources changed, so that a test never runs yesterday's program. */
export function ensureBuilt(): void {
  execFileSync(process.execPath, [join(root, '.ci', 'setup.mjs')], { stdio: 'inherit' })
}

/** Below what systems give to sockets that ask for any port: 32768 up on Linux, 49152 elsewhere. */
const fixedPortMin = 15_000
const fixedPortMax = 32_000

/**
 * A port that was free a moment ago for UDP and TCP, for those who must know theirs before they bind.
 * It is one that no other socket is given in the meantime.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = fixedPortMin + Math.floor(Math.random() * (fixedPortMax - fixedPortMin))
    if ((await isFree('tcp', port)) && (await isFree('udp', port))) return port
  }
}

function isFree(protocol: 'tcp' | 'udp', port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = protocol === 'tcp' ? createServer() : createSocket('udp4')
    socket.once('error', () => resolve(false))
    socket.once('listening', () => socket.close(() => resolve(true)))
    if ('bind' in socket) socket.bind(port, '127.0.0.1')
    else socket.listen(port, '127.0.0.1')
  })
}

export interface PodOptions {
  readonly name: string
  /** Fixed gossip port; default: any free one. */
  readonly gossipPort?: number
  /** Gossip addresses, `host:port`. */
  readonly seeds?: readonly string[]
  /** More keys of `gossip:`, in YAML's flow form. */
  readonly gossip?: string
  /** More lines of the sidecar file. */
  readonly extra?: string
  /** Path for `--rules`; default: the fleet's rules. */
  readonly rules?: string
  /** Lines that replace a listener's own, by name. */
  readonly listeners?: Readonly<Partial<Record<'proxy' | 'api' | 'telemetry' | 'admin', string>>>
}

/** Upstream, directory and pods of one test; `stop()` ends everything. */
export class Fleet {
  readonly directory: string
  readonly upstream: Upstream
  readonly pods: SidecarProcess[] = []

  private constructor(directory: string, upstream: Upstream) {
    this.directory = directory
    this.upstream = upstream
  }

  static async create(rulesText: string): Promise<Fleet> {
    const directory = mkdtempSync(join(tmpdir(), 'grapevine-e2e-'))
    const fleet = new Fleet(directory, await startUpstream())
    writeFileSync(fleet.rulesFile, rulesText)
    return fleet
  }

  get rulesFile(): string {
    return join(this.directory, 'rules.yaml')
  }

  /** Writes a pod's file and returns the arguments of its `run`. */
  runArgs(options: PodOptions): string[] {
    const file = join(this.directory, `${options.name}.yaml`)
    writeFileSync(file, sidecarText(options, this.upstream.url))
    return ['--config', file, '--rules', options.rules ?? this.rulesFile]
  }

  async start(options: PodOptions): Promise<SidecarProcess> {
    const command = { command: process.execPath, args: [program], env: plainEnv() }
    const pod = await SidecarProcess.start(options.name, command, this.runArgs(options))
    this.pods.push(pod)
    return pod
  }

  /** `count` pods `pod-1`… that know the first one, each seeing all others. */
  async startMany(count: number): Promise<SidecarProcess[]> {
    const first = await this.start({ name: 'pod-1' })
    const others = Array.from({ length: count - 1 }, (_, index) =>
      this.start({ name: `pod-${index + 2}`, seeds: [first.addresses.gossip] }),
    )
    const pods = [first, ...(await Promise.all(others))]
    await untilConverged(pods)
    return pods
  }

  async stop(): Promise<void> {
    await Promise.all(this.pods.map(pod => pod.stop()))
    await this.upstream.close()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Longest run of a command in a test, in milliseconds; a demo of some seconds on a busy machine. */
const programTimeoutMs = 100_000

/** Runs the program to its end; for commands and for starts that must fail. */
export function runProgram(
  args: readonly string[],
  stdin = '',
): Promise<{ status: number | null; stdout: string; stderr: string; durationMs: number }> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [program, ...args], { env: plainEnv() })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', chunk => (stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', chunk => (stderr += chunk))
  child.stdin.end(stdin)
  // A program that hangs fails its test by the missing status, and is not left behind.
  const killer = setTimeout(() => child.kill('SIGKILL'), programTimeoutMs)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', status => {
      clearTimeout(killer)
      resolve({ status, stdout, stderr, durationMs: performance.now() - startedMs })
    })
  })
}

export interface MemberLine {
  readonly name: string
  readonly wireName?: string
  readonly state: string
  readonly self: boolean
}

export async function membersOf(pod: SidecarProcess): Promise<MemberLine[]> {
  const response = await fetch(`http://${pod.addresses.admin}/members`, {
    headers: { accept: 'application/json' },
  })
  return ((await response.json()) as { members: MemberLine[] }).members
}

export async function untilConverged(pods: readonly SidecarProcess[]): Promise<void> {
  await until('every pod sees every other alive', async () => {
    const views = await Promise.all(pods.map(membersOf))
    return views.every(view => view.filter(one => one.state === 'alive').length === pods.length)
  })
}

export interface CheckAnswer {
  readonly allowed: boolean
  readonly rule: string
  readonly limit: number
  readonly remaining: number
  readonly reason: string
}

/** `POST /v1/check`, parsed; fails unless the status is 200. */
export async function check(pod: SidecarProcess, body: unknown): Promise<CheckAnswer> {
  const response = await post(pod, JSON.stringify(body))
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as CheckAnswer
}

/** `POST /v1/check` with any body at all. */
export function post(pod: SidecarProcess, body: string): Promise<Response> {
  return fetch(`http://${pod.addresses.api}/v1/check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
}

/** The value of one series on `/metrics`; NaN when it does not exist. */
export async function metric(pod: SidecarProcess, series: string): Promise<number> {
  const response = await fetch(`http://${pod.addresses.telemetry}/metrics`)
  const line = (await response.text()).split('\n').find(one => one.startsWith(`${series} `))
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1))
}

export async function readiness(pod: SidecarProcess): Promise<number> {
  return (await fetch(`http://${pod.addresses.telemetry}/readyz`)).status
}

function sidecarText(options: PodOptions, upstreamUrl: string): string {
  const { name, gossipPort = 0, seeds = [], gossip = '', extra = '', listeners = {} } = options
  const proxy = listeners.proxy ?? `{ listen: "127.0.0.1:0", upstream: "${upstreamUrl}" }`
  return `version: 1
node: { name: ${name} }
proxy: ${proxy}
api: ${listeners.api ?? '{ listen: "127.0.0.1:0" }'}
telemetry: ${listeners.telemetry ?? '{ listen: "127.0.0.1:0" }'}
admin: ${listeners.admin ?? '{ listen: "127.0.0.1:0" }'}
gossip: { bind: "127.0.0.1:${gossipPort}", label: e2e${gossip && `, ${gossip}`} }
discovery: { static: [${seeds.map(seed => `"${seed}"`).join(', ')}] }
${extra}`
}

/** Nothing of the test runner's environment but what a process needs to start. */
function plainEnv(): Record<string, string | undefined> {
  return { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR }
}
