/**
 * Keeps knocking at the addresses that discovery named. memberlist never contacts anybody by itself
 * that it has forgotten, so a fleet that fell apart stays apart unless somebody does this.
 */
import type { Random } from '../ports.js'
import type { Address } from '../vocabulary.js'
import { sameAddress } from './discovery.js'

/** A named address without a live member behind it is asked this often (counters.md §5). */
export const silentEveryMs = 1_000
/** Named addresses with a live member are asked this often, a few at a time. */
export const refreshEveryMs = 30_000
/** Addresses asked per round, so that a stale list of a thousand costs no more than a short one. */
const perRoundMax = 8
const refreshedMax = 3
/** Exchanges under way per address: one may hang in a connect that nobody answers. */
const underWayMax = 2

export interface RejoinerPorts {
  readonly random: Random
  /** Addresses at which a member is alive now. */
  readonly alive: () => readonly Address[]
  /** Starts a state exchange with each; `settled` reports how each one ended. */
  readonly join: (addresses: readonly Address[]) => void
}

export class Rejoiner {
  readonly #self: Address
  readonly #ports: RejoinerPorts
  readonly #underWay = new Map<string, number>()
  #seeds: readonly Address[] = []
  #silentTimer: NodeJS.Timeout | null = null
  #refreshTimer: NodeJS.Timeout | null = null

  constructor(self: Address, ports: RejoinerPorts) {
    this.#self = self
    this.#ports = ports
  }

  start(): void {
    this.#later('silent')
    this.#later('refresh')
  }

  stop(): void {
    if (this.#silentTimer !== null) clearTimeout(this.#silentTimer)
    if (this.#refreshTimer !== null) clearTimeout(this.#refreshTimer)
    this.#seeds = []
  }

  /** Replaces the list and knocks at once at those that are not there yet. */
  setSeeds(seeds: readonly Address[]): void {
    this.#seeds = seeds.filter(seed => !sameAddress(seed, this.#self))
    this.knockAtSilent()
  }

  /** Tells how an exchange ended, well or not. */
  settled(to: Address): void {
    const text = keyOf(to)
    const left = (this.#underWay.get(text) ?? 0) - 1
    if (left > 0) this.#underWay.set(text, left)
    else this.#underWay.delete(text)
  }

  knockAtSilent(): void {
    const alive = new Set(this.#ports.alive().map(keyOf))
    this.#join(this.#pick(seed => !alive.has(keyOf(seed)), perRoundMax))
  }

  refresh(): void {
    this.#join(this.#pick(() => true, refreshedMax))
  }

  #pick(wanted: (seed: Address) => boolean, countMax: number): Address[] {
    const free = this.#seeds.filter(
      seed => wanted(seed) && (this.#underWay.get(keyOf(seed)) ?? 0) < underWayMax,
    )
    const picked: Address[] = []
    while (picked.length < countMax && free.length > 0) {
      const index = Math.floor(this.#ports.random() * free.length)
      picked.push(...free.splice(index, 1))
    }
    return picked
  }

  #join(addresses: readonly Address[]): void {
    if (addresses.length === 0) return
    for (const address of addresses) {
      this.#underWay.set(keyOf(address), (this.#underWay.get(keyOf(address)) ?? 0) + 1)
    }
    this.#ports.join(addresses)
  }

  /** Jittered by a quarter either way, so that a fleet that started together does not knock so. */
  #later(what: 'silent' | 'refresh'): void {
    const jitter = 0.75 + this.#ports.random() / 2
    if (what === 'silent') {
      this.#silentTimer = setTimeout(() => {
        this.knockAtSilent()
        this.#later('silent')
      }, silentEveryMs * jitter)
    } else {
      this.#refreshTimer = setTimeout(() => {
        this.refresh()
        this.#later('refresh')
      }, refreshEveryMs * jitter)
    }
  }
}

function keyOf(address: Address): string {
  return `${address.host} ${address.port}`
}
