/**
 * This process as a node of the fleet: sockets, core and driver put together, peers looked for, and
 * the way out (last totals, leave). Knows nothing of HTTP.
 */
import type { Logger } from 'pino'
import { Core } from '../core.js'
import type { Discovered, Discovery } from '../discovery/discovery.js'
import { joinDiscovered, sameAddress } from '../discovery/discovery.js'
import { Rejoiner } from '../discovery/rejoiner.js'
import type { RuleSet } from '../limiter/rule.js'
import type { Clock, Entropy, Random } from '../ports.js'
import { lanDefaults } from '../swim/options.js'
import { version } from '../version.js'
import type { Address, MemberName } from '../vocabulary.js'
import { AllowList } from './allow-list.js'
import { GossipDriver, type GossipStats, type Notice } from './gossip-driver.js'
import { bindGossipSockets, type GossipSockets } from './gossip-sockets.js'
import { defaultAdvertiseHost, formatAddress } from './socket-address.js'

/**
 * A dead name may come back at another address after this, in milliseconds. Our own restarts take a
 * new name and need it not; a Go member that restarts does. Above the time a suspicion lasts.
 */
const deadNodeReclaimTimeMs = 10_000
/** Buffers below this lose packets when a pod pauses for a moment; worth a warning. */
const receiveBufferLowBytes = 400_000
/** How long the first state pull is waited for, in milliseconds (product.md §6). */
const syncTimeoutMs = 2_000
/** A leave is told within two to four gossip rounds of 200 ms in fleets below a hundred. */
const leaveTimeoutMs = 700
/** Addresses named in one log line. */
const peersToldMax = 5
/** Node names are cut to leave room for the suffix within memberlist's 128 bytes. */
const nodeNameCharsMax = 100

export interface GossipNodeOptions {
  readonly node: string
  readonly startWallMs: number
  readonly bind: Address
  /** Null: the bound address, or this machine's own behind a wildcard. */
  readonly advertise: Address | null
  readonly label: string
  /** AES keys, the first encrypts; empty: plain. */
  readonly keys: readonly Uint8Array[]
  /** Networks in CIDR form whose packets are read; empty: any. */
  readonly allow: readonly string[]
  readonly counters: { readonly keysMax: number; readonly secret: Uint8Array | null }
  readonly rules: RuleSet
  readonly discoveries: readonly Discovery[]
}

export interface GossipNodePorts {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly entropy: Entropy
}

export class GossipNode {
  readonly core: Core
  /** What is bound, with the real port. */
  readonly address: Address
  readonly advertise: Address
  readonly #driver: GossipDriver
  readonly #discoveries: readonly Discovery[]
  readonly #reports = new Map<Discovery, Discovered>()
  readonly #rejoiner: Rejoiner
  readonly #log: Logger
  #onLeft: (() => void) | null = null
  #syncTimer: NodeJS.Timeout | null = null

  private constructor(options: GossipNodeOptions, ports: GossipNodePorts, sockets: GossipSockets) {
    const { clock, random, entropy } = ports
    this.#log = ports.log
    this.address = sockets.address
    this.advertise = advertised(options.advertise, sockets.address)
    this.#discoveries = options.discoveries
    const allow = new AllowList(options.allow)
    this.core = new Core(
      {
        node: options.node,
        version,
        startWallMs: options.startWallMs,
        swim: {
          ...lanDefaults,
          deadNodeReclaimTimeMs,
          name: wireName(options.node, entropy),
          advertise: this.advertise,
          label: options.label,
          keys: options.keys,
          allowed: host => allow.admits(host),
        },
        counters: options.counters,
        rules: options.rules,
      },
      { random, entropy },
    )
    this.#driver = new GossipDriver(
      { allow: options.allow },
      { core: this.core, sockets, clock, onNotice: notice => this.#notice(notice) },
    )
    this.#rejoiner = new Rejoiner(this.advertise, {
      random,
      alive: () => this.#aliveAddresses(),
      join: addresses => this.perform(now => this.core.join(addresses, now)),
    })
    if (sockets.receiveBufferBytes < receiveBufferLowBytes) {
      ports.log.warn(
        { bytes: sockets.receiveBufferBytes },
        'small UDP receive buffer: raise net.core.rmem_max to lose fewer packets',
      )
    }
  }

  /** Binds the port; rejects with the system's error when it is taken. */
  static async open(options: GossipNodeOptions, ports: GossipNodePorts): Promise<GossipNode> {
    return new GossipNode(options, ports, await bindGossipSockets(options.bind))
  }

  /** Readies the core, so that it can decide; nothing is read or sent yet. */
  start(): void {
    this.perform((now, wall) => this.core.start(now, wall))
  }

  /** Joins in: time runs, packets are read, peers are looked for. */
  join(): void {
    this.#driver.start()
    // Until the first state is in, the core admits an even share only; alone, there is none to wait
    // for.
    if (this.#discoveries.length === 0) this.#assumeSynced()
    else this.#syncTimer = setTimeout(() => this.#giveUpWaiting(), syncTimeoutMs)
    this.#rejoiner.start()
    for (const discovery of this.#discoveries) {
      discovery.start({
        found: discovered => this.#found(discovery, discovered),
        failed: problem => this.#log.warn(problem, 'discovery failed; the last known peers stay'),
      })
    }
  }

  /** Runs a call on the core and carries out what it asks for. */
  perform<T>(call: (monotonicMs: number, wallMs: number) => T): T {
    return this.#driver.perform(call)
  }

  /** To be called after each decision. */
  poke(): void {
    this.#driver.poke()
  }

  stats(): GossipStats {
    return this.#driver.stats()
  }

  /** Sends the last totals to every peer. */
  flush(): void {
    this.perform((now, wall) => this.core.flush(now, wall))
  }

  /** Says goodbye; resolves when that was told often enough, or after a bounded time. */
  async leave(): Promise<void> {
    this.#stopLooking()
    await new Promise<void>(resolve => {
      const late = setTimeout(resolve, leaveTimeoutMs)
      this.#onLeft = () => {
        clearTimeout(late)
        resolve()
      }
      this.perform(now => this.core.leave(now))
    })
  }

  /** Closes the sockets without another word. */
  async close(): Promise<void> {
    this.#stopLooking()
    await this.#driver.close()
  }

  #stopLooking(): void {
    if (this.#syncTimer !== null) clearTimeout(this.#syncTimer)
    this.#rejoiner.stop()
    for (const discovery of this.#discoveries) discovery.stop()
  }

  /** Waited long enough: from now on this node decides by what it knows. */
  #giveUpWaiting(): void {
    const { seeds } = joinDiscovered([...this.#reports.values()])
    const peers = seeds.filter(seed => !sameAddress(seed, this.advertise))
    if (peers.length > 0 && this.#aliveAddresses().length === 0) {
      const fields = { peers: peers.slice(0, peersToldMax).map(formatAddress), count: peers.length }
      this.#log.warn(fields, 'no peer answers yet; asking on, every second')
    }
    this.#assumeSynced()
  }

  #assumeSynced(): void {
    this.perform(() => this.core.assumeSynced())
  }

  #found(discovery: Discovery, discovered: Discovered): void {
    this.#reports.set(discovery, discovered)
    const { seeds, expected } = joinDiscovered([...this.#reports.values()])
    this.perform(now => this.core.setExpectedPeers(expected, now))
    this.#rejoiner.setSeeds(seeds)
  }

  #aliveAddresses(): Address[] {
    return this.core
      .members()
      .filter(member => member.state === 'alive' && !member.self)
      .map(member => member.address)
  }

  #notice(notice: Notice): void {
    switch (notice.kind) {
      case 'memberChanged': {
        const { name, address } = notice.member
        const fields = { change: notice.change, member: name, address: formatAddress(address) }
        this.#log[notice.change === 'update' ? 'debug' : 'info'](fields, 'member changed')
        break
      }
      case 'memberConflict':
        this.#log.warn(
          {
            member: notice.existing.name,
            address: formatAddress(notice.existing.address),
            other: formatAddress(notice.other.address),
          },
          'two nodes claim one name',
        )
        break
      case 'exchangeSettled':
        this.#rejoiner.settled(notice.to)
        if (notice.error !== null) {
          const fields = { address: formatAddress(notice.to), error: notice.error }
          this.#log.debug(fields, 'state exchange failed')
        }
        break
      case 'leaveSettled':
        this.#onLeft?.()
        break
      case 'notice':
        this.#log[notice.level](notice.fields, notice.text)
        break
    }
  }
}

function advertised(configured: Address | null, bound: Address): Address {
  if (configured !== null) {
    return configured.port === 0 ? { ...configured, port: bound.port } : configured
  }
  return { host: defaultAdvertiseHost(bound.host), port: bound.port }
}

/**
 * The memberlist name: the node's, and a suffix drawn at each start, since memberlist ignores a
 * dead name at a new address for about a minute (product.md §8).
 */
function wireName(node: string, entropy: Entropy): MemberName {
  const suffix = Buffer.from(entropy(4)).toString('hex')
  const plain = node.replace(/[^\x21-\x2e\x30-\x7e]/g, '_').slice(0, nodeNameCharsMax)
  return `${plain}-${suffix}` as MemberName
}
