/** Names to addresses, again every so often; shared by the discoveries that go by name. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Address } from '../vocabulary.js'
import type { Discovery, DiscoveryListener } from './discovery.js'

/** How often names are resolved again, in milliseconds (product.md §3). */
export const resolveEveryMs = 30_000
/** After a look-up that failed, sooner: a Service often has no endpoints while a fleet starts. */
const retryEveryMs = 2_000
/** Addresses taken from one answer. */
const addressesMax = 1_000

/**
 * All addresses of a host name; the literal itself for an address. Rejects as `dns.lookup` does.
 */
export type Lookup = (host: string) => Promise<readonly string[]>

export const systemLookup: Lookup = async host =>
  (await lookup(host, { all: true, verbatim: true })).map(entry => entry.address)

export interface NameDiscoveryPorts {
  readonly lookup: Lookup
}

/** Resolves a list of `host:port` and keeps the answers of names that fail later on. */
export class NameDiscovery implements Discovery {
  readonly name: string
  readonly #targets: readonly Address[]
  readonly #lookup: Lookup
  readonly #answers = new Map<string, readonly string[]>()
  #timer: NodeJS.Timeout | null = null
  #stopped = false

  constructor(name: string, targets: readonly Address[], ports: NameDiscoveryPorts) {
    this.name = name
    this.#targets = targets
    this.#lookup = ports.lookup
  }

  start(listener: DiscoveryListener): void {
    void this.#round(listener)
  }

  stop(): void {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #round(listener: DiscoveryListener): Promise<void> {
    const names = [...new Set(this.#targets.map(target => target.host))]
    const problems = await Promise.all(names.map(host => this.#resolve(host)))
    if (this.#stopped) return
    for (const text of problems) {
      if (text !== null) listener.failed({ source: this.name, text })
    }
    listener.found({ seeds: this.#seeds(), expected: null })
    if (names.every(host => isIP(host) !== 0)) return
    const failed = problems.some(text => text !== null)
    this.#timer = setTimeout(
      () => void this.#round(listener),
      failed ? retryEveryMs : resolveEveryMs,
    )
  }

  /** Returns what went wrong, or null. */
  async #resolve(host: string): Promise<string | null> {
    if (isIP(host) !== 0) {
      this.#answers.set(host, [host])
      return null
    }
    try {
      const found = await this.#lookup(host)
      this.#answers.set(host, found.slice(0, addressesMax))
      return null
    } catch (error) {
      return `${host}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`
    }
  }

  #seeds(): Address[] {
    return this.#targets.flatMap(target =>
      (this.#answers.get(target.host) ?? []).map(host => ({ host, port: target.port })),
    )
  }
}
