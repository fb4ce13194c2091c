/**
 * A sidecar as a child process: `run` on a generated configuration, its addresses read from its
 * log. The child ends with its parent, however the parent ends, since it watches its standard
 * input.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Start of a Node process on a busy machine, with room. */
const startTimeoutMs = 20_000
/** After SIGTERM; above `drainTimeout` + 1 s. */
const stopTimeoutMs = 6_000
/** Lines of a child's output kept for the message when it fails. */
const tailLinesMax = 20

/** Listeners as the `listening` line of the log names them; absent ones are not configured. */
export interface SidecarAddresses {
  readonly proxy?: string
  readonly api?: string
  readonly telemetry: string
  readonly admin: string
  readonly gossip: string
}

export interface SidecarCommand {
  readonly command: string
  /** Arguments that start this program, before `run`. */
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
}

export class SidecarProcess {
  readonly name: string
  readonly addresses: SidecarAddresses
  readonly #child: ChildProcess
  readonly #exited: Promise<number | null>
  readonly #log: readonly string[]

  private constructor(
    name: string,
    addresses: SidecarAddresses,
    child: ChildProcess,
    exited: Promise<number | null>,
    log: readonly string[],
  ) {
    this.name = name
    this.addresses = addresses
    this.#child = child
    this.#exited = exited
    this.#log = log
  }

  /**
   * Starts `run` with `runArgs` and resolves once it listens; rejects with the end of its output if
   * it ends before or does not come up in time.
   */
  static async start(
    name: string,
    sidecar: SidecarCommand,
    runArgs: readonly string[],
  ): Promise<SidecarProcess> {
    const args = [...sidecar.args, 'run', ...runArgs, '--stdin-lifeline']
    // In a group of its own: Ctrl-C on the terminal is the parent's to handle, then it stops us.
    const child = spawn(sidecar.command, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...sidecar.env },
    })
    const log: string[] = []
    const exited = new Promise<number | null>(resolve => {
      child.once('exit', status => resolve(status))
      child.once('error', error => {
        log.push(error.message)
        resolve(null)
      })
    })
    child.stdin.on('error', () => {})
    const addresses = await listening(child, exited, log)
    if (addresses === null) {
      child.kill('SIGKILL')
      throw new Error(`${name} did not start:\n${log.slice(-tailLinesMax).join('\n')}`)
    }
    return new SidecarProcess(name, addresses, child, exited, log)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resolves with the exit status; null after a signal. */
  get exited(): Promise<number | null> {
    return this.#exited
  }

  /** Log lines and messages so far, oldest first. */
  get log(): readonly string[] {
    return this.#log
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** SIGTERM, and SIGKILL for one that does not listen. Resolves with the exit status. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs)
    const status = await this.#exited
    clearTimeout(killer)
    return status
  }
}

/** Reads the output until the `listening` line, and goes on collecting. Null: ended or too late. */
function listening(
  child: ChildProcess,
  exited: Promise<number | null>,
  log: string[],
): Promise<SidecarAddresses | null> {
  return new Promise(resolve => {
    const late = setTimeout(() => resolve(null), startTimeoutMs)
    const done = (addresses: SidecarAddresses | null) => {
      clearTimeout(late)
      resolve(addresses)
    }
    void exited.then(() => setImmediate(() => done(null)))
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue
      createInterface({ input: stream }).on('line', line => {
        keep(log, line)
        const addresses = addressesOf(line)
        if (addresses !== null) done(addresses)
      })
    }
  })
}

/** The log of a long run must not grow without bound; the oldest tenth makes way. */
const logLinesMax = 10_000

function keep(log: string[], line: string): void {
  if (log.length >= logLinesMax) log.splice(0, logLinesMax / 10)
  log.push(line)
}

function addressesOf(line: string): SidecarAddresses | null {
  if (!line.startsWith('{') || !line.includes('"listening"')) return null
  try {
    const entry = JSON.parse(line) as { msg?: unknown; addresses?: SidecarAddresses }
    return entry.msg === 'listening' ? (entry.addresses ?? null) : null
  } catch {
    return null
  }
}
