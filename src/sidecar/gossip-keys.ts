/** The gossip keys on disk: handed over again whenever one of their files changes. */
import type { Logger } from 'pino'
import { readKeyring } from '../config/secrets.js'
import type { SecretRef } from '../config/sidecar-config.js'
import { type PathWatch, watchPath } from '../config/watch.js'

export class GossipKeys {
  readonly #refs: readonly SecretRef[]
  readonly #log: Logger
  #watches: PathWatch[] = []
  #apply: ((keys: readonly Uint8Array[]) => void) | null = null

  constructor(refs: readonly SecretRef[], log: Logger) {
    this.#refs = refs
    this.#log = log
  }

  /** Watches the files; keys that cannot be read leave the ring as it is. */
  start(apply: (keys: readonly Uint8Array[]) => void): void {
    this.#apply = apply
    this.#watches = this.#refs.flatMap(ref =>
      ref.kind === 'file' ? [watchPath(ref.path, () => this.reload())] : [],
    )
  }

  stop(): void {
    for (const watch of this.#watches) watch.close()
    this.#watches = []
    this.#apply = null
  }

  reload(): void {
    if (this.#refs.length === 0) return
    const keys = readKeyring(this.#refs)
    if (keys.ok) {
      this.#apply?.(keys.value)
      this.#log.info({ keys: keys.value.length }, 'gossip keys read')
    } else {
      this.#log.error(`gossip keys: ${keys.error}; the ring in use stays`)
    }
  }
}
