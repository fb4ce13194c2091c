/**
 * One node of Grapevine's own memberlist as a program, with the flags, orders and reports of
 * `go-peer/README.md`, so that a test drives both kinds alike.
 *
 *   node --import tsx test/interop/ts-peer.ts --name a --label x
 */
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type GossipCore, GossipDriver, type Notice } from '../../src/gossip/gossip-driver.js'
import { bindGossipSockets, type GossipSockets } from '../../src/gossip/gossip-sockets.js'
import { systemClock } from '../../src/gossip/system-clock.js'
import type { Delegate } from '../../src/swim/delegate.js'
import type { Effect } from '../../src/swim/effects.js'
import type { Member } from '../../src/swim/member.js'
import { lanDefaults, localDefaults, wanDefaults } from '../../src/swim/options.js'
import { Swim } from '../../src/swim/protocol.js'
import type { Address, MemberName } from '../../src/vocabulary.js'

const { values: flags } = parseArgs({
  options: {
    name: { type: 'string', default: '' },
    bind: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '0' },
    join: { type: 'string', default: '' },
    keys: { type: 'string', default: '' },
    label: { type: 'string', default: '' },
    preset: { type: 'string', default: 'local' },
    meta: { type: 'string', default: '' },
    state: { type: 'string', default: '' },
    compress: { type: 'boolean', default: false },
    protocol: { type: 'string', default: '2' },
    reclaim: { type: 'string', default: '0' },
    retransmit: { type: 'string', default: '' },
    loss: { type: 'string', default: '0' },
    log: { type: 'boolean', default: false },
  },
})

const presets = { lan: lanDefaults, wan: wanDefaults, local: localDefaults } as const

function report(line: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ ...line, ms: Date.now() })}\n`)
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'base64'))

function describe(member: Member) {
  const { host, port } = member.address
  return {
    name: member.name,
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    meta: base64(member.meta),
    versions: [...member.versions.subarray(0, 3)],
  }
}

function parseAddress(text: string): Address {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) }
}

/** The application's side: keeps meta and state, reports what it is told. */
class Application implements Delegate {
  meta = new Uint8Array(Buffer.from(flags.meta))
  state = new Uint8Array(Buffer.from(flags.state))
  received = 0

  nodeMeta(): Uint8Array {
    return this.meta
  }

  notifyMessage(message: Uint8Array): void {
    this.received += 1
    if (this.received <= 1000) report({ event: 'message', data: base64(message) })
  }

  getBroadcasts(): readonly Uint8Array[] {
    return []
  }

  localState(): Uint8Array {
    return this.state
  }

  mergeRemoteState(state: Uint8Array, join: boolean): void {
    report({ event: 'state', data: base64(state), join })
  }
}

/** Drops a share of outgoing packets, and all for addresses that were cut off, as the Go peer does. */
class LossyCore implements GossipCore {
  loss = Number(flags.loss)
  /** Addresses, as host:port, that nothing reaches. */
  cut: ReadonlySet<string> = new Set()
  readonly #swim: Swim

  constructor(swim: Swim) {
    this.#swim = swim
  }

  handlePacket(bytes: Uint8Array, from: Address, nowMs: number): void {
    this.#swim.handlePacket(bytes, from, nowMs)
  }

  acceptStream(from: Address, nowMs: number) {
    return this.#swim.acceptStream(from, nowMs)
  }

  handleStreamData(stream: number, bytes: Uint8Array, nowMs: number): void {
    this.#swim.handleStreamData(stream, bytes, nowMs)
  }

  handleStreamEnd(stream: number, error: string | null, nowMs: number): void {
    this.#swim.handleStreamEnd(stream, error, nowMs)
  }

  advance(nowMs: number): void {
    this.#swim.advance(nowMs)
  }

  nextDeadlineMs(): number {
    return this.#swim.nextDeadlineMs()
  }

  takeEffects(): readonly Effect[] {
    const effects = this.#swim.takeEffects()
    if (this.loss === 0 && this.cut.size === 0) return effects
    return effects.filter(effect => {
      if (effect.kind !== 'sendPacket' && effect.kind !== 'openStream') return true
      if (this.cut.has(`${effect.to.host}:${effect.to.port}`)) return false
      return effect.kind === 'openStream' || Math.random() >= this.loss
    })
  }
}

interface Order {
  readonly order: string
  readonly id: number
  readonly to: string
  readonly data: string
  readonly reliable: boolean
  readonly count: number
  readonly loss: number
}

class Peer {
  readonly #app = new Application()
  readonly #swim: Swim
  readonly #core: LossyCore
  readonly #driver: GossipDriver
  /** Answers owed for joins under way, by address. */
  readonly #joins = new Map<string, Order>()
  #leave: Order | null = null

  constructor(sockets: GossipSockets) {
    this.#swim = new Swim(
      {
        ...presets[flags.preset as keyof typeof presets],
        name: flags.name as MemberName,
        advertise: sockets.address,
        label: flags.label,
        keys: flags.keys === '' ? [] : flags.keys.split(',').map(bytesOf),
        enableCompression: flags.compress,
        compressUserPackets: flags.compress,
        protocolVersion: Number(flags.protocol),
        ...(flags.retransmit === '' ? {} : { retransmitMult: Number(flags.retransmit) }),
        deadNodeReclaimTimeMs: Number(flags.reclaim),
      },
      {
        random: Math.random,
        entropy: length => new Uint8Array(randomBytes(length)),
        delegate: this.#app,
      },
    )
    this.#core = new LossyCore(this.#swim)
    this.#driver = new GossipDriver(
      { allow: [] },
      {
        core: this.#core,
        sockets,
        clock: systemClock,
        onNotice: notice => this.#notice(notice),
      },
    )
  }

  start(): void {
    this.#swim.start(systemClock.monotonicMs())
    this.#driver.start()
    report({ event: 'ready', node: describe(this.#swim.self()) })
    const join = flags.join.split(',').filter(text => text !== '')
    if (join.length > 0) this.#driver.perform(now => this.#swim.join(join.map(parseAddress), now))
  }

  #notice(notice: Notice): void {
    switch (notice.kind) {
      case 'memberChanged':
        report({ event: notice.change, node: describe(notice.member) })
        return
      case 'memberConflict':
        report({
          event: 'conflict',
          existing: describe(notice.existing),
          other: describe(notice.other),
        })
        return
      case 'exchangeSettled': {
        const address = `${notice.to.host}:${notice.to.port}`
        const order = this.#joins.get(address)
        this.#joins.delete(address)
        if (order) this.#answer(order, { contacted: notice.error ? 0 : 1 }, notice.error)
        return
      }
      case 'leaveSettled':
        if (this.#leave) this.#answer(this.#leave, {}, null)
        return
      case 'notice':
        if (flags.log) process.stderr.write(`${notice.text} ${JSON.stringify(notice.fields)}\n`)
    }
  }

  #answer(order: Order, more: Record<string, unknown>, error: string | null): void {
    report({
      event: 'answer',
      order: order.order,
      id: order.id,
      ok: error === null,
      ...(error === null ? {} : { error }),
      ...more,
    })
  }

  readonly #orders: Record<string, (order: Order) => void> = {
    members: order => this.#members(order),
    join: order => {
      const address = parseAddress(order.to)
      this.#joins.set(`${address.host}:${address.port}`, order)
      this.#driver.perform(now => this.#swim.join([address], now))
    },
    send: order => this.#answer(order, {}, this.#send(order, bytesOf(order.data))),
    flood: order => this.#flood(order),
    meta: order => {
      this.#app.meta = bytesOf(order.data)
      this.#driver.perform(now => this.#swim.updateMeta(now))
      this.#answer(order, {}, null)
    },
    state: order => {
      this.#app.state = bytesOf(order.data)
      this.#answer(order, {}, null)
    },
    broadcast: order => {
      this.#driver.perform(now => this.#swim.queueBroadcast(bytesOf(order.data), now))
      this.#answer(order, {}, null)
    },
    loss: order => {
      this.#core.loss = order.loss
      this.#answer(order, {}, null)
    },
    cut: order => {
      this.#core.cut = new Set(order.to.split(',').filter(address => address !== ''))
      this.#answer(order, {}, null)
    },
    received: order => this.#answer(order, { messages: this.#app.received }, null),
    leave: order => {
      this.#leave = order
      this.#driver.perform(now => this.#swim.leave(now))
    },
    stop: () => {
      report({ event: 'end' })
      process.exit(0)
    },
  }

  obey(order: Order): void {
    const known = this.#orders[order.order]
    if (known) known(order)
    else this.#answer(order, {}, `unknown order ${order.order}`)
  }

  #members(order: Order): void {
    const living = [...this.#swim.members()].filter(
      member => member.state === 'alive' || member.state === 'suspect',
    )
    const members = living.map(describe)
    this.#answer(order, { members, health: this.#swim.healthScore() }, null)
  }

  #send(order: Order, data: Uint8Array): string | null {
    const mode = order.reliable ? 'reliable' : 'bestEffort'
    const sent = this.#driver.perform(now =>
      this.#swim.sendUserMessage(order.to as MemberName, data, mode, now),
    )
    return sent ? null : `no living member ${order.to}`
  }

  /** As fast as the loop turns: a batch, then a turn for the sockets. */
  #flood(order: Order): void {
    const data = bytesOf(order.data)
    const started = systemClock.monotonicMs()
    let left = order.count
    const batch = () => {
      for (let n = Math.min(64, left); n > 0; n -= 1, left -= 1) this.#send(order, data)
      if (left > 0) setImmediate(batch)
      else this.#answer(order, { seconds: (systemClock.monotonicMs() - started) / 1000 }, null)
    }
    batch()
  }
}

const peer = new Peer(await bindGossipSockets({ host: flags.bind, port: Number(flags.port) }))
peer.start()
const lines = createInterface({ input: process.stdin })
lines.on('line', line => peer.obey(JSON.parse(line) as Order))
lines.on('close', () => process.exit(0))
