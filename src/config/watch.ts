/**
 * Notices when a configuration path changes: rewritten in place, replaced by rename, swapped as a
 * ConfigMap's `..data` symlink. The file system's notices make it quick; looking once a second
 * makes it sure, since not every file system gives notice and a watched folder may be replaced.
 */
import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readSnapshot, type Snapshot } from './snapshot.js'

export interface WatchOptions {
  /** Digest of what is in use (`Loaded.digest`); null: the first look is the base. */
  readonly digest?: string | null
  /** How often to look without notice, in milliseconds, > 0. */
  readonly pollMs?: number
  /** How long content must stay the same before it is believed, in milliseconds. */
  readonly settleMs?: number
}

export interface PathWatch {
  /** Looks now; resolves when the look is over. */
  check(): Promise<void>
  /** Nothing is reported after this. */
  close(): void
}

/** Longest time that changing content is waited out, in milliseconds. */
const unsettledMsMax = 1000

/**
 * Calls `onChange` with the new content, once for every change and within two seconds of it.
 * Content that cannot be read is a change too (`Snapshot.error`). Never throws; `onChange` must not
 * either.
 */
export function watchPath(
  path: string,
  onChange: (snapshot: Snapshot) => void,
  options: WatchOptions = {},
): PathWatch {
  return new PathWatcher(path, onChange, options)
}

class PathWatcher implements PathWatch {
  readonly #path: string
  readonly #onChange: (snapshot: Snapshot) => void
  readonly #settleMs: number
  readonly #poll: NodeJS.Timeout
  #known: string | null
  #soon: NodeJS.Timeout | null = null
  #watcher: FSWatcher | null = null
  #watchedFolder = ''
  #looking: Promise<void> | null = null
  #closed = false

  constructor(path: string, onChange: (snapshot: Snapshot) => void, options: WatchOptions) {
    this.#path = path
    this.#onChange = onChange
    this.#known = options.digest ?? null
    this.#settleMs = options.settleMs ?? 50
    this.#poll = setInterval(() => void this.check(), options.pollMs ?? 1000)
    this.#poll.unref()
    void this.check()
  }

  check(): Promise<void> {
    // One look at a time: two would race for who reports first.
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#poll)
    if (this.#soon !== null) clearTimeout(this.#soon)
    this.#watcher?.close()
    this.#watcher = null
  }

  async #look(): Promise<void> {
    await this.#watchFolder()
    let snapshot = await readSnapshot(this.#path)
    if (this.#known === null) this.#known = snapshot.digest
    const looks = Math.ceil(unsettledMsMax / Math.max(1, this.#settleMs))
    for (let look = 0; look < looks && snapshot.digest !== this.#known; look++) {
      await new Promise(resolve => setTimeout(resolve, this.#settleMs))
      const again = await readSnapshot(this.#path)
      const settled = again.digest === snapshot.digest
      snapshot = again
      if (settled) break
    }
    if (this.#closed || snapshot.digest === this.#known) return
    this.#known = snapshot.digest
    this.#onChange(snapshot)
  }

  /** Watches the folder that the path is in, or is; once more when the last watch has broken. */
  async #watchFolder(): Promise<void> {
    try {
      const isFolder = (await stat(this.#path)).isDirectory()
      const folder = isFolder ? this.#path : dirname(this.#path)
      if (this.#closed || (this.#watcher !== null && folder === this.#watchedFolder)) return
      this.#watcher?.close()
      this.#watcher = watch(folder, { persistent: false }, () => this.#lookSoon())
      this.#watchedFolder = folder
      this.#watcher.on('error', () => this.#dropWatcher())
    } catch {
      // The path is missing, or watches have run out: looking once a second goes on.
      this.#dropWatcher()
    }
  }

  #dropWatcher(): void {
    this.#watcher?.close()
    this.#watcher = null
  }

  #lookSoon(): void {
    if (this.#closed || this.#soon !== null) return
    this.#soon = setTimeout(() => {
      this.#soon = null
      void this.check()
    }, this.#settleMs)
    this.#soon.unref()
  }
}
