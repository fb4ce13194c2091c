/** A memberlist node in a process of its own, Go or TypeScript: orders in, reports out. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface PeerFlags {
  readonly name: string
  readonly bind?: string
  readonly port?: number
  readonly join?: readonly string[]
  readonly keys?: readonly string[]
  readonly label?: string
  readonly preset?: 'lan' | 'wan' | 'local'
  readonly meta?: string
  readonly state?: string
  readonly compress?: boolean
  readonly protocol?: number
  readonly reclaimMs?: number
  readonly retransmit?: number
  readonly loss?: number
  /** Network namespace to run in. */
  readonly namespace?: string
}

export interface Report {
  readonly event: string
  readonly ms: number
  readonly id?: number
  readonly order?: string
  readonly ok?: boolean
  readonly error?: string
  readonly data?: string
  readonly join?: boolean
  readonly contacted?: number
  readonly health?: number
  readonly messages?: number
  readonly seconds?: number
  readonly node?: ReportedNode
  readonly members?: readonly ReportedNode[]
}

export interface ReportedNode {
  readonly name: string
  readonly address: string
  readonly meta: string | null
  readonly versions: readonly number[]
}

const tsPeer = fileURLToPath(new URL('ts-peer.ts', import.meta.url))

function argumentsOf(kind: 'go' | 'ts', flags: PeerFlags): string[] {
  const words: string[] = []
  const give = (name: string, value: string | number | undefined) => {
    if (value !== undefined && value !== '') words.push(`--${name}=${value}`)
  }
  give('name', flags.name)
  give('bind', flags.bind)
  give('port', flags.port)
  give('join', flags.join?.join(','))
  give('keys', flags.keys?.join(','))
  give('label', flags.label)
  give('preset', flags.preset)
  give('meta', flags.meta)
  give('state', flags.state)
  give('protocol', flags.protocol)
  give('loss', flags.loss)
  give('retransmit', flags.retransmit)
  if (flags.compress) words.push('--compress')
  if (flags.reclaimMs) give('reclaim', kind === 'go' ? `${flags.reclaimMs}ms` : flags.reclaimMs)
  return words
}

export class PeerProcess {
  readonly kind: 'go' | 'ts'
  readonly name: string
  readonly reports: Report[] = []
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #waiting = new Set<() => void>()
  #lastId = 0
  #stderr = ''

  private constructor(kind: 'go' | 'ts', flags: PeerFlags, goPeer: string) {
    this.kind = kind
    this.name = flags.name
    const words = argumentsOf(kind, flags)
    const command =
      kind === 'go' ? [goPeer, ...words] : [process.execPath, '--import', 'tsx', tsPeer, ...words]
    const inside = flags.namespace ? ['ip', 'netns', 'exec', flags.namespace] : []
    const [program = '', ...rest] = [...inside, ...command]
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    this.#exited = new Promise(resolve => child.once('close', () => resolve()))
    child.stdin?.on('error', () => {})
    child.stderr?.on('data', chunk => {
      this.#stderr = (this.#stderr + String(chunk)).slice(-4000)
    })
    if (child.stdout)
      createInterface({ input: child.stdout }).on('line', line => {
        this.reports.push(JSON.parse(line) as Report)
        for (const wake of this.#waiting) wake()
      })
  }

  static async start(kind: 'go' | 'ts', flags: PeerFlags, goPeer: string): Promise<PeerProcess> {
    const peer = new PeerProcess(kind, flags, goPeer)
    await peer.until(report => report.event === 'ready', 20_000)
    return peer
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  /** host:port as the node advertises it. */
  get address(): string {
    return this.reports.find(report => report.event === 'ready')?.node?.address ?? ''
  }

  /** The first report that fits, among those there and those to come. */
  until(fits: (report: Report) => boolean, patienceMs: number, from = 0): Promise<Report> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.reports.slice(from).find(fits)
        if (!found) return
        this.#waiting.delete(look)
        clearTimeout(timer)
        resolve(found)
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(look)
        const tail = this.reports.slice(-12).map(report => JSON.stringify(report).slice(0, 160))
        reject(new Error(`${this.name}: no such report\n${tail.join('\n')}\n${this.#stderr}`))
      }, patienceMs)
      this.#waiting.add(look)
      look()
    })
  }

  /** Gives an order and waits for its answer. */
  order(order: string, more: Record<string, unknown> = {}, patienceMs = 15_000): Promise<Report> {
    this.#lastId += 1
    const id = this.#lastId
    this.#child.stdin?.write(`${JSON.stringify({ order, id, ...more })}\n`)
    return this.until(report => report.event === 'answer' && report.id === id, patienceMs)
  }

  /** Names of the living members as this node sees them, sorted. */
  async members(): Promise<string[]> {
    const answer = await this.order('members')
    return (answer.members ?? []).map(member => member.name).sort()
  }

  signal(signal: NodeJS.Signals): void {
    // Through `ip netns exec` the child is the program itself: ip replaces itself by it.
    if (this.#child.exitCode === null) this.#child.kill(signal)
  }

  async stop(): Promise<void> {
    this.signal('SIGKILL')
    await this.#exited
  }
}

/** Asks until the answer fits or time is up; returns the last answer. */
export async function eventually<T>(
  ask: () => Promise<T>,
  fits: (answer: T) => boolean,
  patienceMs: number,
): Promise<T> {
  const endMs = Date.now() + patienceMs
  for (;;) {
    const answer = await ask()
    if (fits(answer) || Date.now() > endMs) return answer
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
