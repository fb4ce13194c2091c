/** A program that runs until it is told to stop, its output kept for when something is wrong. */
import { type ChildProcess, spawn } from 'node:child_process'

const stopTimeoutMs = 6_000
const outputCharsMax = 100_000

export class SimpleProcess {
  readonly #child: ChildProcess
  readonly #exited: Promise<number | null>
  output = ''

  constructor(
    command: string,
    words: readonly string[],
    options: { readonly env: Readonly<Record<string, string | undefined>> },
  ) {
    this.#child = spawn(command, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...options.env },
    })
    this.#exited = new Promise(resolve => this.#child.once('exit', status => resolve(status)))
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', chunk => {
        this.output = (this.output + chunk).slice(-outputCharsMax)
      })
  }

  /** SIGTERM, and SIGKILL for one that does not listen. May be called again. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM')
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs)
    const status = await this.#exited
    clearTimeout(killer)
    return status
  }
}
