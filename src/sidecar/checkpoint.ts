/**
 * `counters.checkpoint`: the totals on disk, so that quotas survive a restart of the whole fleet.
 * Written beside the file and renamed, so that a crash leaves the old one.
 */
import { open, readFile, rename, stat } from 'node:fs/promises'
import type { Logger } from 'pino'

/** How often totals are written while the process runs, in milliseconds. */
export const writeEveryMs = 30_000
/** A full table of a hundred thousand keys takes a few megabytes; more is no checkpoint of ours. */
const bytesMax = 256 * 1024 * 1024

export interface CheckpointPorts {
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly exportTotals: () => Uint8Array
  /** False: not a checkpoint. */
  readonly importTotals: (bytes: Uint8Array) => boolean
}

export class Checkpoint {
  readonly #path: string
  readonly #ports: CheckpointPorts
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(path: string, ports: CheckpointPorts) {
    this.#path = path
    this.#ports = ports
  }

  /**
   * Takes up what the file holds. A missing file is a first start; a bad one is left out, and said.
   */
  async restore(): Promise<void> {
    const { log, importTotals } = this.#ports
    try {
      if ((await stat(this.#path)).size > bytesMax) {
        log.warn({ path: this.#path, bytesMax }, 'checkpoint is too large and was not read')
        return
      }
      const taken = importTotals(await readFile(this.#path))
      if (taken) log.info({ path: this.#path }, 'checkpoint read')
      else log.warn({ path: this.#path }, 'not a checkpoint; starting without one')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT') log.warn({ path: this.#path, code }, 'checkpoint cannot be read')
    }
  }

  start(): void {
    this.#timer = setInterval(() => void this.write(), writeEveryMs)
  }

  /** Writes once more; resolves when it is on disk, or cannot be. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.write()
  }

  /** One write at a time: two would race for the name. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  async #write(): Promise<void> {
    const draft = `${this.#path}.new`
    try {
      const file = await open(draft, 'w', 0o600)
      try {
        await file.writeFile(this.#ports.exportTotals())
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(draft, this.#path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      this.#ports.log.warn({ path: this.#path, code }, 'checkpoint cannot be written')
    }
  }
}
