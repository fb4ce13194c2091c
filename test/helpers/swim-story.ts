/**
 * Protocol stories that anyone can read: a script of orders, each followed by the whole trace of
 * what it caused. `UPDATE_SCRIPTS=1` writes the traces anew; read the difference before believing
 * it.
 *
 *     node a [setting=value …]     starts a node        run 500           lets 500 ms pass
 *     join b a                     push/pull            kill a            no process any more
 *     block a b udp|tcp|all        one direction        heal              no blocks, no loss
 *     leave a | meta a TEXT        broadcast a TEXT     send a b best|stream TEXT
 *     restart a HOST               same name, new life  members a         its table
 *     forge b suspect|dead c INC FROM                   a message from nowhere to b
 *
 * Trace lines: `at  from > to  parts` for packets, `at  from = to  message` for streams (`x`
 * instead of `>` or `=`: lost), `at  node: what it learnt`.
 */

import { encodeMessage } from '../../src/swim/codec/encode-message.js'
import { decodePacket } from '../../src/swim/codec/packet.js'
import { StreamDecoder } from '../../src/swim/codec/stream-decoder.js'
import { createWire } from '../../src/swim/codec/wire.js'
import type { Effect } from '../../src/swim/effects.js'
import { memberStateOf, type PacketMessage, type StreamMessage } from '../../src/swim/messages.js'
import { optionErrors, type SwimSettings } from '../../src/swim/options.js'
import type { MemberName } from '../../src/vocabulary.js'
import { type NetworkNode, SwimNetwork, type Transport } from './swim-network.js'
import { bytesText, swimOptions, type TestSettings, textBytes } from './swim-node.js'

const wire = createWire({ entropy: length => new Uint8Array(length) })

export interface StoryStep {
  readonly order: string
  readonly trace: readonly string[]
}

/** Order lines and their traces, blank lines and comments kept as orders without a trace. */
export function parseStory(text: string): StoryStep[] {
  const steps: { order: string; trace: string[] }[] = []
  for (const line of text.replace(/\n$/, '').split('\n')) {
    if (line.startsWith('  ')) steps.at(-1)?.trace.push(line)
    else steps.push({ order: line, trace: [] })
  }
  return steps
}

export function formatStory(steps: readonly StoryStep[]): string {
  return `${steps.flatMap(({ order, trace }) => [order, ...trace]).join('\n')}\n`
}

export class Story {
  readonly #lines: string[] = []
  readonly #network: SwimNetwork
  readonly #blocks = new Set<string>()

  constructor() {
    this.#network = new SwimNetwork({
      seed: 42,
      latencyMs: 5,
      observer: {
        packet: (from, to, bytes, lost) => this.#tellPacket(from, to, bytes, lost),
        stream: (from, to, bytes, request) => this.#tellStream(from, to, bytes, request),
        effect: (node, effect) => this.#tellEffect(node, effect),
      },
    })
    this.#network.isBlocked = (from, to, transport) => this.#isBlocked(from, to, transport)
  }

  /** Carries out one order; the trace it left. */
  play(order: string): string[] {
    if (order !== '' && !order.startsWith('#')) this.#carryOut(order)
    return this.#lines.splice(0)
  }

  #carryOut(order: string): void {
    const [verb, first = '', second = '', ...rest] = order.split(' ')
    const network = this.#network
    const words = [second, ...rest].join(' ')
    switch (verb) {
      case 'node':
        network.add(first, settingsOf([second, ...rest]))
        break
      case 'restart':
        network.kill(first)
        network.add(first, settingsOf(rest), second)
        break
      case 'run':
        network.run(network.nowMs + Number(first))
        break
      case 'join':
        network.join(first, second)
        break
      case 'kill':
        network.kill(first)
        break
      case 'block':
        for (const transport of transportsOf(rest[0]))
          this.#blocks.add(`${first} ${second} ${transport}`)
        break
      case 'heal':
        this.#blocks.clear()
        break
      case 'leave':
        network.act(first, swim => swim.leave(network.nowMs))
        break
      case 'meta':
        network.get(first).delegate.meta = textBytes(words)
        network.act(first, swim => swim.updateMeta(network.nowMs))
        break
      case 'broadcast':
        network.act(first, swim => swim.queueBroadcast(textBytes(words), network.nowMs))
        break
      case 'send':
        this.#send(first, second, rest)
        break
      case 'forge':
        this.#forge(first, second, rest)
        break
      case 'members':
        this.#tellMembers(first)
        break
      default:
        throw new Error(`unknown order: ${order}`)
    }
  }

  #send(from: string, to: string, [mode, ...words]: string[]): void {
    const network = this.#network
    network.act(from, swim => {
      const reliable = mode === 'stream' ? 'reliable' : 'bestEffort'
      const message = textBytes(words.join(' '))
      const sent = swim.sendUserMessage(to as MemberName, message, reliable, network.nowMs)
      if (!sent) this.#tell(`${from}: not sent`)
    })
  }

  #forge(to: string, kind: string, [node, incarnation, from]: string[]): void {
    if (kind !== 'suspect' && kind !== 'dead') throw new Error(`cannot forge ${kind}`)
    const bytes = encodeMessage({
      kind,
      node: node as MemberName,
      incarnation: Number(incarnation),
      from: from as MemberName,
    })
    const stranger = { host: '192.0.2.1', port: 1 }
    const { nowMs } = this.#network
    this.#network.act(to, swim => swim.handlePacket(bytes, stranger, nowMs))
  }

  #isBlocked(from: NetworkNode, to: NetworkNode, transport: Transport): boolean {
    return this.#blocks.has(`${from.name} ${to.name} ${transport}`)
  }

  #tell(text: string): void {
    const seconds = (this.#network.nowMs / 1000).toFixed(3)
    this.#lines.push(`  ${seconds.padStart(7)}  ${text}`)
  }

  #tellPacket(from: NetworkNode, to: NetworkNode | null, bytes: Uint8Array, lost: boolean): void {
    const packet = decodePacket(bytes, wire)
    if (!packet.ok) throw new Error(`undecodable packet: ${packet.error}`)
    const parts = packet.value.messages.map(packetText).join(' | ')
    this.#tell(`${from.name} ${lost ? 'x' : '>'} ${to?.name ?? '?'}  ${parts}`)
  }

  #tellStream(
    from: NetworkNode,
    to: NetworkNode | null,
    bytes: Uint8Array,
    request: boolean,
  ): void {
    const result = new StreamDecoder(wire, request ? 'listener' : 'dialler').push(bytes)
    if (result === null || !result.ok) throw new Error('undecodable stream')
    const lost = to === null || !to.running || this.#isBlocked(from, to, 'tcp')
    this.#tell(`${from.name} ${lost ? 'x' : '='} ${to?.name ?? '?'}  ${streamText(result.message)}`)
  }

  #tellEffect(node: NetworkNode, effect: Effect): void {
    switch (effect.kind) {
      case 'memberChanged': {
        const { name, state, meta } = effect.member
        const detail = effect.change === 'update' ? ` "${bytesText(meta)}"` : ` (${state})`
        this.#tell(`${node.name}: ${effect.change} ${name}${detail}`)
        break
      }
      case 'memberConflict':
        this.#tell(
          `${node.name}: conflict over ${effect.existing.name}, ` +
            `${effect.existing.address.host} against ${effect.other.address.host}`,
        )
        break
      case 'exchangeSettled':
        this.#tell(`${node.name}: exchange with ${effect.to.host} ${effect.error ?? 'done'}`)
        break
      case 'leaveSettled':
        this.#tell(`${node.name}: left`)
        break
      case 'notice':
        if (effect.level !== 'debug') {
          const fields = Object.entries(effect.fields).map(([name, value]) => `${name}=${value}`)
          this.#tell(`${node.name}: ${effect.level} ${effect.text} ${fields.join(' ')}`.trimEnd())
        }
        break
      default:
        break
    }
  }

  #tellMembers(name: string): void {
    for (const member of this.#network.get(name).swim.members()) {
      this.#tell(
        `${member.name} ${member.state}@${member.incarnation} ${member.address.host}`.trimEnd(),
      )
    }
  }
}

function transportsOf(word: string | undefined): readonly Transport[] {
  return word === 'udp' || word === 'tcp' ? [word] : ['udp', 'tcp']
}

/** `name=value` with numbers and booleans; unknown names are errors of the script. */
function settingsOf(words: readonly string[]): TestSettings {
  const known = swimOptions('x') as unknown as Record<string, unknown>
  const pairs = words
    .filter(word => word !== '')
    .map(word => {
      const [name = '', value = ''] = word.split('=')
      if (!(name in known)) throw new Error(`unknown setting: ${name}`)
      return [name, JSON.parse(value)] as const
    })
  const settings = Object.fromEntries(pairs) as Partial<SwimSettings>
  const errors = optionErrors(swimOptions('x', '10.0.0.1', settings))
  if (errors.length > 0) throw new Error(errors.join('; '))
  return settings
}

function packetText(message: PacketMessage): string {
  switch (message.kind) {
    case 'ping':
      return `ping ${message.node} #${message.sequence}`
    case 'indirectPing':
      return `ping-req ${message.node} #${message.sequence}${message.nack ? '' : ' (no nack)'}`
    case 'ack':
    case 'nack':
      return `${message.kind} #${message.sequence}`
    case 'alive':
      return `alive ${message.node}@${message.incarnation}`
    case 'suspect':
    case 'dead':
      return `${message.kind} ${message.node}@${message.incarnation} by ${message.from}`
    case 'user':
      return `user "${bytesText(message.payload)}"`
  }
}

function streamText(message: StreamMessage): string {
  if (message.kind === 'pushPull') {
    const nodes = message.nodes
      .map(node => `${node.name} ${memberStateOf(node.state)}@${node.incarnation}`)
      .sort()
    return `push/pull${message.join ? ' (join)' : ''}: ${nodes.join(', ')}`
  }
  if (message.kind === 'error') return `error "${message.text}"`
  return packetText(message)
}
