import { describe, expect, it } from 'vitest'
import { encodeMessage } from '../../../src/swim/codec/encode-message.js'
import { Keyring } from '../../../src/swim/codec/keyring.js'
import { decodePacket, encodePacket } from '../../../src/swim/codec/packet.js'
import { createWire } from '../../../src/swim/codec/wire.js'
import type { Effect } from '../../../src/swim/effects.js'
import type { PacketMessage } from '../../../src/swim/messages.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { SwimNetwork } from '../../helpers/swim-network.js'
import {
  aliveOf,
  createNode,
  swimOptions,
  type TestSettings,
  textBytes,
} from '../../helpers/swim-node.js'

const name = (text: string) => text as MemberName
const stranger = { host: '10.0.0.9', port: 5555 }
const keyA = new Uint8Array(32).fill(1)
const keyB = new Uint8Array(16).fill(2)

function wireOf(settings: TestSettings = {}) {
  const keyring = new Keyring(settings.keys ?? [])
  return createWire({ ...settings, keyring, entropy: length => new Uint8Array(length) })
}

/** A started node and a way to send it packets. */
function createStage(settings: TestSettings = {}) {
  const node = createNode(swimOptions('self', '10.0.0.1', settings))
  const { swim } = node
  swim.start(0)
  swim.takeEffects()
  const receive = (message: PacketMessage, sender = wireOf(settings), nowMs = 0) => {
    const packet = encodePacket([encodeMessage(message)], sender, { checksum: true })
    swim.handlePacket(packet, stranger, nowMs)
  }
  const sent = (effects: readonly Effect[] = swim.takeEffects()) =>
    effects.flatMap(effect => {
      if (effect.kind !== 'sendPacket') return []
      const packet = decodePacket(effect.bytes, wireOf(settings))
      if (!packet.ok) throw new Error(packet.error)
      return [{ to: effect.to, messages: packet.value.messages }]
    })
  return { ...node, receive, sent }
}

const ping = (node: string, source = true): PacketMessage => ({
  kind: 'ping',
  node: name(node),
  sequence: 9,
  sourceAddress: source ? Uint8Array.of(10, 0, 0, 77) : new Uint8Array(0),
  sourcePort: source ? 7000 : 0,
  sourceNode: name('asker'),
})

const indirectPing = (nack: boolean, target = Uint8Array.of(10, 0, 0, 50)): PacketMessage => ({
  kind: 'indirectPing',
  nack,
  node: name('target'),
  target,
  port: 7950,
  sequence: 31,
  sourceAddress: Uint8Array.of(10, 0, 0, 77),
  sourcePort: 7000,
  sourceNode: name('asker'),
})

describe('a node', () => {
  it('starts with itself as the only member and announces that', () => {
    const { swim } = createNode(swimOptions('self'))
    expect(swim.nextDeadlineMs()).toBe(Infinity)
    swim.start(0)
    expect(swim.takeEffects()).toMatchObject([
      { kind: 'memberChanged', change: 'join', member: { name: 'self', incarnation: 1 } },
    ])
    expect([...swim.members()]).toEqual([swim.self()])
  })

  it('does not read packets before it has started', () => {
    const { swim } = createNode(swimOptions('self'))
    swim.handlePacket(encodeMessage(aliveOf('n')), stranger, 0)
    expect([swim.acceptStream(stranger, 0), swim.takeEffects()]).toEqual([null, []])
  })

  it('refuses options that make no sense, as a bug of the caller', () => {
    expect(() => createNode(swimOptions('a/b'))).toThrow('name')
    expect(() => createNode(swimOptions('a', 'host.example'))).toThrow('IP address')
  })

  it.each([
    ['another label', { label: 'bank' }, 'droppedLabelMismatch'],
    ['no label', {}, 'droppedLabelMismatch'],
    ['no encryption', { label: 'shop' }, 'droppedEncryptionMalformed'],
    ['another key', { label: 'shop', keys: [keyB] }, 'droppedUndecryptable'],
  ] as const)('drops and counts packets with %s', (_case, settings, counter) => {
    const { swim, receive } = createStage({ label: 'shop', keys: [keyA] })
    receive(aliveOf('n'), wireOf(settings))
    expect(swim.member(name('n'))).toBeUndefined()
    const { stats } = swim
    const drops = Object.entries(stats).filter(([key, count]) => key.startsWith('dropped') && count)
    expect(drops).toEqual([[counter, 1]])
  })

  it.each([
    ['another key', [keyA], [keyB], 'none of our gossip keys opens it'],
    ['no key', [keyA], [], 'it is plain or damaged, and a gossip key is set here'],
  ])('says what to look at when a peer has %s', (_case, ours, theirs, hint) => {
    const { swim, receive } = createStage({ label: 'shop', keys: ours })
    receive(aliveOf('n'), wireOf({ label: 'shop', keys: theirs }))
    expect(swim.takeEffects()).toContainEqual(
      expect.objectContaining({ kind: 'notice', text: `ignored what a peer sent: ${hint}` }),
    )
  })

  it('tells of a flood of bad packets once in ten seconds, and counts each', () => {
    const { swim } = createStage()
    for (let i = 0; i < 1000; i++) swim.handlePacket(Uint8Array.of(99), stranger, i)
    const notices = swim.takeEffects().filter(effect => effect.kind === 'notice')
    expect(notices).toHaveLength(1)
    expect(swim.stats.droppedUnknownType).toBe(1000)
  })

  it('reads packets and accepts members of allowed addresses only', () => {
    const { swim, receive } = createStage({ allowed: host => host === stranger.host })
    receive(aliveOf('welcome', 9))
    receive(aliveOf('elsewhere', 8))
    swim.handlePacket(encodeMessage(aliveOf('spoofed')), { host: '192.0.2.1', port: 1 }, 0)
    expect([...swim.members()].map(member => member.name)).toEqual(['self', 'welcome'])
    expect(swim.stats.droppedNotAllowed).toBe(2)
  })

  it.each([
    ['no name', { node: name('') }, 'droppedNameMalformed'],
    ['a name without end', { node: name('x'.repeat(2000)) }, 'droppedNameMalformed'],
    ['a meta without end', { meta: new Uint8Array(5000) }, 'droppedMetaTooLarge'],
  ] as const)('does not store a member with %s', (_case, change, counter) => {
    const { swim, receive } = createStage()
    receive({ ...aliveOf('n'), ...change } as PacketMessage)
    expect([...swim.members()]).toHaveLength(1)
    expect(swim.stats[counter]).toBe(1)
  })

  it('lets the delegate refuse a member', () => {
    const { swim, delegate, receive } = createStage()
    delegate.aliveVeto = node => (node === 'n' ? 'not one of us' : null)
    receive(aliveOf('n'))
    expect(swim.member(name('n'))).toBeUndefined()
    expect(swim.stats.droppedVetoed).toBe(1)
  })
})

describe('pings', () => {
  it('are answered to the source they name, with the payload of the delegate', () => {
    const { receive, sent } = createStage()
    receive(ping('self'))
    const [answer] = sent()
    expect(answer?.to).toEqual({ host: '10.0.0.77', port: 7000 })
    expect(answer?.messages[0]).toEqual({ kind: 'ack', sequence: 9, payload: textBytes('pong') })
  })

  it('without a source, or for nobody in particular, are answered where they came from', () => {
    const { receive, sent } = createStage()
    receive(ping('', false))
    expect(sent()[0]?.to).toEqual(stranger)
  })

  it('for another name are not answered: the address may have changed hands', () => {
    const { swim, receive, sent } = createStage()
    receive(ping('former'))
    expect(sent()).toEqual([])
    expect(swim.stats.droppedWrongName).toBe(1)
  })

  it('are relayed on request, and the ack is passed back under the number of the asker', () => {
    const { receive, sent } = createStage()
    receive(indirectPing(true))
    const [relayed] = sent()
    expect(relayed?.to).toEqual({ host: '10.0.0.50', port: 7950 })
    expect(relayed?.messages[0]).toMatchObject({ kind: 'ping', node: 'target', sequence: 1 })
    receive({ kind: 'ack', sequence: 1, payload: textBytes('x') }, undefined, 100)
    const [back] = sent()
    expect(back).toMatchObject({ to: { host: '10.0.0.77', port: 7000 } })
    expect(back?.messages[0]).toEqual({ kind: 'ack', sequence: 31, payload: null })
  })

  it('that stay unanswered bring a nack at 80 % of the probe timeout, if one was asked for', () => {
    for (const nack of [true, false]) {
      const { swim, receive, sent } = createStage()
      receive(indirectPing(nack))
      swim.takeEffects()
      const answers = (nowMs: number) => {
        swim.advance(nowMs)
        return sent().flatMap(({ messages }) => messages.filter(({ kind }) => kind === 'nack'))
      }
      expect(answers(399), `nack ${nack}, early`).toEqual([])
      const expected = nack ? [{ kind: 'nack', sequence: 31 }] : []
      expect(answers(400), `nack ${nack}, due`).toEqual(expected)
      expect(answers(450), `nack ${nack}, later`).toEqual([])
    }
  })

  it('held open for others are bounded, forgotten in time, and never sent to addresses not allowed', () => {
    const { swim, receive } = createStage({
      relaysMax: 2,
      allowed: host => host.startsWith('10.0.0.'),
    })
    receive(indirectPing(false, Uint8Array.of(192, 0, 2, 1)))
    expect(swim.stats.droppedNotAllowed).toBe(1)
    for (let i = 0; i < 3; i++) receive(indirectPing(false))
    expect([swim.stats.relays, swim.stats.droppedRelaysMax]).toEqual([2, 1])
    swim.advance(500)
    receive(indirectPing(false), undefined, 500)
    expect(swim.stats.relays).toBe(3)
  })

  it('report the round trip and the payload to the delegate', () => {
    const network = new SwimNetwork({ latencyMs: 7 })
    network.add('a')
    network.add('b')
    network.join('b', 'a')
    network.run(2000)
    expect(network.get('a').delegate.pings[0]).toEqual({ name: 'b', rttMs: 14, payload: 'pong' })
  })

  it('an ack nobody waits for changes nothing', () => {
    const { receive, swim } = createStage()
    receive({ kind: 'ack', sequence: 1234, payload: null })
    receive({ kind: 'nack', sequence: 1234 })
    expect(swim.takeEffects()).toEqual([])
  })
})

describe('user messages', () => {
  it('are refused when they cannot go: unknown, self, too long', () => {
    const { swim, receive } = createStage({ exchangeBytesMax: 2000 })
    receive(aliveOf('peer'))
    const send = (to: string, length: number, mode: 'bestEffort' | 'reliable') =>
      swim.sendUserMessage(name(to), new Uint8Array(length), mode, 0)
    const room = swim.packetPayloadBytesMax()
    expect([
      send('nobody', 1, 'bestEffort'),
      send('self', 1, 'bestEffort'),
      send('peer', room + 1, 'bestEffort'),
      send('peer', 1001, 'reliable'),
      send('peer', room, 'bestEffort'),
      send('peer', 1000, 'reliable'),
    ]).toEqual([false, false, false, false, true, true])
    expect(swim.stats.userMessagesTooLarge).toBe(2)
  })

  it('arrive by packet, by stream and by gossip', () => {
    const network = new SwimNetwork()
    for (const node of ['a', 'b', 'c']) network.add(node)
    network.join('b', 'a')
    network.join('c', 'a')
    network.run(1000)
    network.act('a', swim => {
      swim.sendUserMessage(name('b'), textBytes('packet'), 'bestEffort', network.nowMs)
      swim.sendUserMessage(name('b'), textBytes('stream'), 'reliable', network.nowMs)
      swim.queueBroadcast(textBytes('gossip'), network.nowMs)
    })
    expect(network.get('a').swim.stats.userBroadcastQueueBytes).toBe('gossip'.length)
    network.run(2000)
    expect(network.get('a').swim.stats.userBroadcastQueueBytes).toBe(0)
    expect(network.get('b').swim.stats.userMessageBytesIn).toBeGreaterThanOrEqual(18)
    const received = (node: string) =>
      new Set(network.get(node).delegate.messages.map(bytes => new TextDecoder().decode(bytes)))
    expect(received('b')).toEqual(new Set(['packet', 'stream', 'gossip']))
    expect(received('c')).toEqual(new Set(['gossip']))
    expect(network.get('a').swim.stats.streamsOpen).toBe(0)
  })
})

describe('keys', () => {
  it('a fleet moves from one key to another without losing a message', () => {
    const network = new SwimNetwork()
    for (const node of ['a', 'b', 'c']) network.add(node, { keys: [keyA], label: 'shop' })
    network.join('b', 'a')
    network.join('c', 'a')
    network.runUntil(() => network.converged(), 5000)
    let sent = 0
    const talk = () => {
      sent += 1
      network.act('a', swim =>
        swim.sendUserMessage(name('b'), textBytes(`m${sent}`), 'bestEffort', network.nowMs),
      )
      network.run(network.nowMs + 50)
    }
    for (const ring of [[keyA, keyB], [keyB, keyA], [keyB]]) {
      for (const node of ['a', 'b', 'c']) {
        network.act(node, swim => swim.setKeyring(ring))
        for (let i = 0; i < 5; i++) talk()
      }
    }
    expect(network.get('b').delegate.messages).toHaveLength(sent)
    expect(network.get('b').swim.stats.droppedUndecryptable).toBe(0)
  })

  it('a ring that makes no sense leaves the old one in use', () => {
    const { swim, receive } = createStage({ keys: [keyA] })
    expect(swim.setKeyring([new Uint8Array(5)])).toBe('keyLength')
    receive(aliveOf('n'))
    expect(swim.member(name('n'))).toBeDefined()
  })

  it('shrink the room for user messages', () => {
    const { swim } = createStage()
    const plain = swim.packetPayloadBytesMax()
    swim.setKeyring([keyA])
    expect(plain - swim.packetPayloadBytesMax()).toBe(29)
  })
})

describe('leaving', () => {
  it('is settled when the message was sent its full number of times, and only once', () => {
    const settled: number[] = []
    const network: SwimNetwork = new SwimNetwork({
      observer: {
        effect: (_node, effect) => effect.kind === 'leaveSettled' && settled.push(network.nowMs),
      },
    })
    network.add('a')
    network.add('b')
    network.join('b', 'a')
    network.run(3000)
    network.act('b', swim => swim.leave(network.nowMs))
    network.act('b', swim => swim.leave(network.nowMs))
    network.run(6000)
    expect(settled).toHaveLength(1)
    expect(settled[0]! - 3000).toBeLessThan(1000)
    expect(network.get('a').swim.member(name('b'))?.state).toBe('left')
  })

  it('is settled at once when the others die meanwhile', () => {
    const { swim, receive } = createStage({ gossipNodes: 0 })
    receive(aliveOf('n'))
    swim.leave(0)
    expect(swim.takeEffects().map(effect => effect.kind)).not.toContain('leaveSettled')
    receive({ kind: 'dead', incarnation: 1, node: name('n'), from: name('x') })
    swim.advance(swim.nextDeadlineMs())
    expect(swim.takeEffects()).toContainEqual({ kind: 'leaveSettled' })
  })

  it('is final: no accusation and no alive brings the node back', () => {
    const { swim, receive } = createStage()
    swim.leave(0)
    receive({ ...aliveOf('self', 1), incarnation: 9 } as PacketMessage)
    receive({ kind: 'suspect', incarnation: 9, node: name('self'), from: name('x') })
    swim.updateMeta(0)
    expect(swim.self()).toMatchObject({ state: 'left', incarnation: 1 })
  })
})

describe('time', () => {
  it('the process that stood still reads its mail before it judges others', () => {
    const { swim, receive } = createStage({ disableTcpPings: true, pushPullIntervalMs: 0 })
    receive(aliveOf('n'))
    receive({ kind: 'suspect', incarnation: 1, node: name('n'), from: name('x') })
    swim.advance(500)
    // The suspicion runs out at 4 s; nothing happens here between 0.5 s and 20 s.
    swim.advance(20_000)
    expect(swim.member(name('n'))?.state).toBe('suspect')
    receive({ ...aliveOf('n'), incarnation: 2 } as PacketMessage, undefined, 20_050)
    swim.advance(20_100)
    expect(swim.member(name('n'))?.state).toBe('alive')
    expect(swim.stats.stalls).toBeGreaterThan(0)
  })

  it('a suspicion that nobody refuted after a stall runs out after the grace', () => {
    const { swim, receive } = createStage({ disableTcpPings: true, pushPullIntervalMs: 0 })
    receive(aliveOf('n'))
    receive({ kind: 'suspect', incarnation: 1, node: name('n'), from: name('x') })
    swim.advance(20_000)
    expect(swim.nextDeadlineMs()).toBeLessThanOrEqual(20_100)
    swim.advance(20_100)
    expect(swim.member(name('n'))?.state).toBe('dead')
  })

  it('after a stall an open probe still asks others and gives them their full time', () => {
    const { swim, receive, sent } = createStage({ disableTcpPings: true, pushPullIntervalMs: 0 })
    for (let i = 2; i < 6; i++) receive(aliveOf(`n${i}`, i))
    let pinged = -1
    for (let nowMs = 0; pinged < 0; nowMs = swim.nextDeadlineMs()) {
      swim.advance(nowMs)
      if (sent().some(({ messages }) => messages[0]?.kind === 'ping')) pinged = nowMs
    }
    swim.advance(pinged + 10_000)
    expect(swim.stats.probesFailed).toBe(0)
    expect(swim.stats.probesIndirect).toBe(1)
    swim.advance(pinged + 10_499)
    expect(swim.stats.probesFailed).toBe(0)
    swim.advance(pinged + 10_500)
    expect(swim.stats.probesFailed).toBe(1)
  })

  it('ticks missed during a stall are not made up for', () => {
    const { swim, receive, sent } = createStage({ pushPullIntervalMs: 0 })
    receive(aliveOf('n'))
    swim.advance(60_000)
    const pings = sent().filter(({ messages }) => messages[0]?.kind === 'ping')
    expect(pings.length).toBeLessThanOrEqual(1)
    expect(swim.nextDeadlineMs()).toBeGreaterThan(60_000)
  })

  it('advancing early does nothing', () => {
    const { swim } = createStage()
    const due = swim.nextDeadlineMs()
    swim.advance(due - 0.5)
    expect(swim.takeEffects()).toEqual([])
    expect(swim.nextDeadlineMs()).toBe(due)
  })
})

describe('the dead', () => {
  it('are forgotten after gossipToTheDeadTime, at the end of a probe round', () => {
    const network = new SwimNetwork()
    const settings = { gossipToTheDeadTimeMs: 5000, pushPullIntervalMs: 0 }
    for (const node of ['a', 'b', 'c']) network.add(node, settings)
    network.join('b', 'a')
    network.join('c', 'a')
    network.run(2000)
    network.kill('c')
    network.runUntil(() => network.view('a').length === 2, 20_000)
    const diedAtMs = network.nowMs
    expect(network.get('a').swim.member(name('c'))?.state).toBe('dead')
    network.runUntil(() => network.get('a').swim.member(name('c')) === undefined, 10_000)
    expect(network.nowMs - diedAtMs).toBeGreaterThan(4900)
    expect(network.get('a').swim.stats.membersReaped).toBe(1)
  })

  it('that were only cut off hear of it and refute', () => {
    const network = new SwimNetwork()
    for (const node of ['a', 'b', 'c']) network.add(node, { pushPullIntervalMs: 0 })
    network.join('b', 'a')
    network.join('c', 'a')
    network.run(2000)
    network.isBlocked = (from, to) => from.name === 'c' || to.name === 'c'
    network.runUntil(() => network.view('a').length === 2, 20_000)
    network.isBlocked = () => false
    network.runUntil(() => network.converged(), 5000)
    expect(network.get('c').swim.stats.refutations).toBeGreaterThan(0)
  })
})
