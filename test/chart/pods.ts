/** Pods of a test cluster: sidecar processes with addresses and accounts of their own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { program } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'
import { podAddress, type TestCluster } from './cluster.js'
import type { LoadOrder, LoadSecond } from './load-client.js'

export const namespace = 'shop'
export const gossipService = 'grapevine-gossip'
export const account = 'grapevine'

/** What discovery needs, and no more. */
export const discoveryRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'grapevine-discovery', namespace },
  rules: [
    {
      apiGroups: ['discovery.k8s.io'],
      resources: ['endpointslices'],
      verbs: ['get', 'list', 'watch'],
    },
  ],
}

export function bindingOf(role: string, to: string): object {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: `${role}-${to}`, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
    subjects: [{ kind: 'ServiceAccount', name: to, namespace }],
  }
}

export function serviceAccount(name: string): object {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } }
}

/** An answer over a unix socket. */
export interface Answer {
  readonly status: number
  readonly text: string
}

/** Asks a listener that is named as the sidecar's log names it, `unix:PATH`. */
export function ask(listener: string | undefined, path: string, body?: unknown): Promise<Answer> {
  const socketPath = (listener ?? '').replace(/^unix:/, '')
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = { accept: 'application/json', 'content-type': 'application/json' }
    const asked = request({ socketPath, path, method, headers, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    asked.on('error', reject)
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** The value of a series; NaN: it does not exist. */
export async function metricOf(pod: SidecarProcess, series: string): Promise<number> {
  const { text } = await ask(pod.addresses.telemetry, '/metrics')
  const line = text.split('\n').find(one => one.startsWith(`${series} `))
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1))
}

/** Names of the members that `pod` sees alive, itself included. */
export async function aliveAt(pod: SidecarProcess): Promise<string[]> {
  const { text } = await ask(pod.addresses.admin, '/members')
  const { members } = JSON.parse(text) as { members: { name: string; state: string }[] }
  return members.flatMap(({ name, state }) => (state === 'alive' ? [name] : [])).sort()
}

export async function readinessOf(pod: SidecarProcess): Promise<number> {
  return (await ask(pod.addresses.telemetry, '/readyz')).status
}

export interface PodOptions {
  readonly accountFiles: string
  /** Flags of `run` beside `--config`. */
  readonly flags?: readonly string[]
  /** Lines of the sidecar file in place of `discovery`. */
  readonly lines?: string
  readonly environment?: Readonly<Record<string, string>>
  /** Where the admin listener is, for a pod that is asked by the command line; default: a socket. */
  readonly admin?: string
}

/** The processes in one namespace, their upstream, and the EndpointSlice that tells of them. */
export class PodFleet {
  readonly cluster: TestCluster
  readonly #upstream: Server
  readonly #upstreamPath: string
  readonly #indexes = new Map<SidecarProcess, number>()
  /** How long the upstream takes to answer, in milliseconds. */
  upstreamDelayMs = 0

  private constructor(cluster: TestCluster) {
    this.cluster = cluster
    this.#upstreamPath = join(cluster.directory, 'up.sock')
    this.#upstream = createServer((_, response) => {
      setTimeout(() => response.end('hello\n'), this.upstreamDelayMs)
    })
    // The sidecar closes idle connections first, or one of them would break under a request.
    this.#upstream.keepAliveTimeout = 60_000
  }

  static async create(cluster: TestCluster): Promise<PodFleet> {
    const fleet = new PodFleet(cluster)
    await new Promise<void>(resolve => fleet.#upstream.listen(fleet.#upstreamPath, resolve))
    return fleet
  }

  get pods(): SidecarProcess[] {
    return [...this.#indexes.keys()]
  }

  proxyOf(pod: SidecarProcess): string {
    return `${podAddress(this.#indexOf(pod))}:7980`
  }

  /** Starts `pod-INDEX` at the address of that index. */
  async start(index: number, options: PodOptions): Promise<SidecarProcess> {
    const name = `pod-${index}`
    const { directory } = this.cluster
    const file = join(directory, `${name}.yaml`)
    const socket = (listener: string) => `"unix:${join(directory, `${name}.${listener}`)}"`
    writeFileSync(
      file,
      `version: 1
node: { name: ${name} }
proxy: { listen: "${podAddress(index)}:7980", upstream: "unix:${this.#upstreamPath}" }
api: { listen: ${socket('api')} }
telemetry: { listen: ${socket('tel')} }
admin: { listen: ${options.admin ?? socket('adm')} }
gossip: { bind: "${podAddress(index)}:7946", label: ${namespace} }
${options.lines ?? `discovery: { kubernetes: { service: ${gossipService} } }`}
`,
    )
    const node = [process.execPath, program]
    const pod = await SidecarProcess.start(
      name,
      {
        command: 'ip',
        args: this.cluster.podCommand(options.accountFiles, node),
        env: { ...this.cluster.podEnvironment, ...options.environment },
      },
      ['--config', file, ...(options.flags ?? [])],
    )
    this.#indexes.set(pod, index)
    return pod
  }

  /** SIGTERM; resolves with exit status and duration once it has ended. */
  async end(pod: SidecarProcess): Promise<{ status: number | null; durationMs: number }> {
    const startedMs = performance.now()
    this.#indexes.delete(pod)
    const status = await pod.stop()
    return { status, durationMs: performance.now() - startedMs }
  }

  /** Writes the EndpointSlice as the controller would; a pod stands in one of the lists or none. */
  async publish(state: {
    readonly ready?: readonly SidecarProcess[]
    readonly starting?: readonly number[]
    readonly terminating?: readonly SidecarProcess[]
  }): Promise<void> {
    const endpoint = (index: number, serving: boolean, terminating: boolean) => ({
      addresses: [podAddress(index)],
      // A gossip Service publishes pods that are not Ready, which sets `ready` for all.
      conditions: { ready: true, serving, terminating },
    })
    await this.cluster.apply({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `${gossipService}-1`,
        namespace,
        labels: { 'kubernetes.io/service-name': gossipService },
      },
      addressType: 'IPv4',
      endpoints: [
        ...(state.ready ?? []).map(pod => endpoint(this.#indexOf(pod), true, false)),
        ...(state.starting ?? []).map(index => endpoint(index, false, false)),
        ...(state.terminating ?? []).map(pod => endpoint(this.#indexOf(pod), true, true)),
      ],
      ports: [{ name: 'gossip', port: 7946, protocol: 'TCP' }],
    })
  }

  async stop(): Promise<void> {
    await Promise.all(this.pods.map(pod => pod.stop()))
    await new Promise(resolve => this.#upstream.close(resolve))
  }

  #indexOf(pod: SidecarProcess): number {
    const index = this.#indexes.get(pod)
    if (index === undefined) throw new Error(`${pod.name} is no pod of this fleet`)
    return index
  }
}

/** A stream of requests from inside the cluster, and what became of them second by second. */
export class Load {
  readonly seconds: LoadSecond[] = []
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  #orders = 0

  constructor(cluster: TestCluster) {
    const script = fileURLToPath(new URL('load-client.ts', import.meta.url))
    const node = [process.execPath, '--import', 'tsx', script, 'run']
    this.#child = spawn('ip', ['netns', 'exec', cluster.space, ...node], {
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    })
    this.#ended = new Promise(resolve => this.#child.once('close', () => resolve()))
    createInterface({ input: this.#child.stdout! }).on('line', line => {
      this.seconds.push(JSON.parse(line) as LoadSecond)
    })
  }

  /** From now on, `rate` requests a second to these, in turn. */
  direct(order: LoadOrder): void {
    this.#orders += 1
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`)
  }

  /** Sends no more; resolves once every request was answered and counted. */
  async quiet(): Promise<void> {
    this.direct({ targets: [], rate: 0 })
    const done = (second?: LoadSecond) => second?.orders === this.#orders && second.running === 0
    await until('every request is answered', () => done(this.seconds.at(-1)), 60_000)
  }

  /** Resolves once the last `direct` is followed: in the next second at the latest. */
  async followed(): Promise<void> {
    await until(
      'the load goes where it should',
      () => this.seconds.at(-1)?.orders === this.#orders,
      60_000,
    )
  }

  get failed(): string[] {
    return this.seconds.flatMap(({ failed }) => failed)
  }

  get allowed(): number {
    return this.seconds.reduce((sum, { allowed }) => sum + allowed, 0)
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.#ended
  }
}
