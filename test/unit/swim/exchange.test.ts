import { describe, expect, it } from 'vitest'
import { Keyring } from '../../../src/swim/codec/keyring.js'
import { encodeStream } from '../../../src/swim/codec/stream.js'
import { StreamDecoder } from '../../../src/swim/codec/stream-decoder.js'
import { createWire } from '../../../src/swim/codec/wire.js'
import type { Effect } from '../../../src/swim/effects.js'
import type { NodeRecord, StreamMessage } from '../../../src/swim/messages.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { createNode, swimOptions, type TestSettings, textBytes } from '../../helpers/swim-node.js'

const peer = { host: '10.0.0.9', port: 40_000 }
const key = new Uint8Array(32).fill(1)

function createStage(settings: TestSettings = {}) {
  const node = createNode(swimOptions('self', '127.0.0.1', settings))
  node.swim.start(0)
  node.swim.takeEffects()
  const wire = createWire({
    ...settings,
    keyring: new Keyring(settings.keys ?? []),
    entropy: length => new Uint8Array(length),
  })
  /** What a listener is asked, in one piece. */
  const ask = (bytes: Uint8Array) => {
    const stream = node.swim.acceptStream(peer, 0)!
    node.swim.handleStreamData(stream, bytes, 0)
    return { stream, effects: withoutNotices(node.swim.takeEffects()) }
  }
  const answer = (effects: readonly Effect[]) => {
    const written = effects.find(effect => effect.kind === 'writeStream')
    if (written?.kind !== 'writeStream') return null
    const result = new StreamDecoder(wire, 'dialler').push(written.bytes)
    if (result?.ok !== true) throw new Error('no readable answer')
    return result.message
  }
  return { ...node, wire, ask, answer }
}

function withoutNotices(effects: readonly Effect[]): Effect[] {
  return effects.filter(effect => effect.kind !== 'notice')
}

const kinds = (effects: readonly Effect[]) => effects.map(effect => effect.kind)

function record(name: string, change: Partial<NodeRecord> = {}): NodeRecord {
  return {
    name: name as MemberName,
    addressBytes: Uint8Array.of(10, 0, 0, 9),
    port: 7946,
    incarnation: 1,
    meta: null,
    state: 0,
    versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
    ...change,
  }
}

function pushPull(nodes: readonly NodeRecord[], userState = new Uint8Array(0)): StreamMessage {
  return { kind: 'pushPull', join: true, nodes, userState }
}

function ping(node: string): StreamMessage {
  return {
    kind: 'ping',
    node: node as MemberName,
    sequence: 77,
    sourceAddress: new Uint8Array(0),
    sourcePort: 0,
    sourceNode: '' as MemberName,
  }
}

describe('a listener', () => {
  it('answers a push/pull with what it knew before, then merges', () => {
    const { ask, answer, wire, delegate, swim } = createStage()
    delegate.state = textBytes('ours')
    const { effects } = ask(
      encodeStream(pushPull([record('peer')], textBytes('theirs')), wire, 'request'),
    )
    expect(kinds(effects)).toEqual(['writeStream', 'closeStream', 'memberChanged'])
    const reply = answer(effects)
    expect(reply).toMatchObject({ kind: 'pushPull', join: true, userState: textBytes('ours') })
    expect(reply?.kind === 'pushPull' && reply.nodes.map(node => node.name)).toEqual(['self'])
    expect(delegate.states).toEqual([{ state: textBytes('theirs'), join: true }])
    expect(swim.member('peer' as MemberName)?.state).toBe('alive')
  })

  it('reads a request byte by byte', () => {
    const { wire, swim } = createStage({ label: 'shop', keys: [key] })
    const bytes = encodeStream(pushPull([record('peer')]), wire, 'request')
    const stream = swim.acceptStream(peer, 0)!
    for (const byte of bytes) swim.handleStreamData(stream, Uint8Array.of(byte), 0)
    expect(swim.member('peer' as MemberName)?.state).toBe('alive')
  })

  it('acks a TCP ping for itself and stays silent for another name', () => {
    const { ask, answer, wire, swim } = createStage()
    const own = ask(encodeStream(ping('self'), wire, 'request')).effects
    expect(answer(own)).toEqual({ kind: 'ack', sequence: 77, payload: null })
    const other = ask(encodeStream(ping('somebody'), wire, 'request')).effects
    expect(kinds(other)).toEqual(['closeStream'])
    expect(swim.stats.droppedWrongName).toBe(1)
  })

  it('delivers a user message and ignores an empty one', () => {
    const { ask, wire, delegate, swim } = createStage()
    for (const text of ['hello', '']) {
      const message: StreamMessage = { kind: 'user', payload: textBytes(text) }
      expect(kinds(ask(encodeStream(message, wire, 'request')).effects)).toEqual(['closeStream'])
    }
    expect(delegate.messages).toEqual([textBytes('hello')])
    expect(swim.stats.userMessageBytesIn).toBe(5)
  })

  it('tells a plain dialler that it wants encryption, in an encrypted error', () => {
    const { ask, answer, swim } = createStage({ keys: [key] })
    const plain = createWire({ entropy: length => new Uint8Array(length) })
    const { effects } = ask(encodeStream(pushPull([]), plain, 'request'))
    expect(kinds(effects)).toEqual(['writeStream', 'closeStream'])
    expect(answer(effects)).toMatchObject({ kind: 'error' })
    expect(swim.stats.droppedNotEncrypted).toBe(1)
  })

  it('says nothing to a dialler of another label', () => {
    const { ask, swim } = createStage({ label: 'shop' })
    const other = createWire({ label: 'bank', entropy: length => new Uint8Array(length) })
    const { effects } = ask(encodeStream(pushPull([record('x')]), other, 'request'))
    expect(kinds(effects)).toEqual(['closeStream'])
    expect(swim.stats.droppedLabelMismatch).toBe(1)
    expect(swim.member('x' as MemberName)).toBeUndefined()
  })

  it('takes a connection that closes unused for a port probe, not for a fault', () => {
    const { swim } = createStage()
    const stream = swim.acceptStream(peer, 0)!
    swim.handleStreamEnd(stream, null, 0)
    expect(kinds(swim.takeEffects())).toEqual(['closeStream'])
    expect([swim.stats.streamErrors, swim.stats.streamsOpen]).toEqual([0, 0])
  })

  it('refuses the 129th stream and strangers, and has room again after time-outs', () => {
    const { swim } = createStage({ allowed: host => host === peer.host })
    expect(swim.acceptStream({ host: '192.0.2.1', port: 1 }, 0)).toBeNull()
    const streams = Array.from({ length: 129 }, () => swim.acceptStream(peer, 0))
    expect(streams.filter(stream => stream === null)).toHaveLength(1)
    expect(swim.stats.streamsRefused).toBe(2)
    swim.advance(10_000)
    expect(swim.stats.streamsOpen).toBe(0)
    expect(swim.acceptStream(peer, 10_000)).not.toBeNull()
  })

  it('ends a stream that sends more than an exchange may hold', () => {
    const { swim, wire } = createStage({ exchangeBytesMax: 1000, enableCompression: false })
    const stream = swim.acceptStream(peer, 0)!
    const bytes = encodeStream(pushPull([], new Uint8Array(5000)), wire, 'request')
    swim.handleStreamData(stream, bytes.subarray(0, 900), 0)
    swim.handleStreamData(stream, bytes.subarray(900, 1800), 0)
    expect(kinds(withoutNotices(swim.takeEffects()))).toEqual(['closeStream'])
    expect(swim.stats.droppedTooLarge).toBe(1)
  })

  it('ignores data of a stream that is over', () => {
    const { ask, wire, swim } = createStage()
    const { stream } = ask(encodeStream(ping('self'), wire, 'request'))
    swim.handleStreamData(stream, Uint8Array.of(1, 2, 3), 0)
    swim.handleStreamEnd(stream, 'reset', 0)
    expect(swim.takeEffects()).toEqual([])
  })

  it('replies but does not merge what the delegate or the versions forbid', () => {
    const { ask, answer, wire, delegate, swim } = createStage()
    delegate.mergeVeto = 'not ours'
    const vetoed = ask(encodeStream(pushPull([record('x')]), wire, 'request')).effects
    delegate.mergeVeto = null
    const future = record('y', { versions: Uint8Array.of(4, 5, 4, 0, 0, 0) })
    const unspeakable = ask(encodeStream(pushPull([future]), wire, 'request')).effects
    for (const effects of [vetoed, unspeakable]) {
      expect(answer(effects)).toMatchObject({ kind: 'pushPull' })
    }
    expect([...swim.members()]).toHaveLength(1)
    expect(swim.stats.mergesRefused).toBe(2)
  })
})

describe('a dialler', () => {
  const to = { host: '10.0.0.9', port: 7946 }

  function dial(settings: TestSettings = {}) {
    const stage = createStage(settings)
    stage.swim.join([to], 0)
    const [opened] = stage.swim.takeEffects()
    if (opened?.kind !== 'openStream') throw new Error('no stream')
    return { ...stage, opened }
  }

  it('joins: sends its state, merges the answer, reports', () => {
    const { swim, opened, wire, delegate } = dial()
    expect(opened).toMatchObject({ to, timeoutMs: 10_000 })
    const reply = encodeStream(pushPull([record('peer')], textBytes('s')), wire, 'reply')
    swim.handleStreamData(opened.stream, reply, 5)
    expect(kinds(swim.takeEffects())).toEqual(['closeStream', 'memberChanged', 'exchangeSettled'])
    expect(delegate.states).toEqual([{ state: textBytes('s'), join: true }])
  })

  it.each([
    ['the connection fails', 'connection refused', 'connection refused'],
    ['the peer closes without a word', null, 'closed without an answer'],
  ])('reports when %s', (_case, error, reported) => {
    const { swim, opened } = dial()
    swim.handleStreamEnd(opened.stream, error, 5)
    expect(swim.takeEffects()).toContainEqual({
      kind: 'exchangeSettled',
      to,
      error: reported,
    })
    expect(swim.stats.pushPullsFailed).toBe(1)
  })

  it('reports when nothing comes in time', () => {
    const { swim } = dial()
    swim.advance(10_000)
    expect(swim.takeEffects()).toContainEqual({ kind: 'exchangeSettled', to, error: 'timed out' })
  })

  it('passes on what the peer complains about', () => {
    const { swim, opened, wire } = dial()
    const complaint = encodeStream({ kind: 'error', text: 'no thanks' }, wire, 'reply')
    swim.handleStreamData(opened.stream, complaint, 5)
    expect(swim.takeEffects()).toContainEqual({
      kind: 'exchangeSettled',
      to,
      error: 'remote error: no thanks',
    })
  })

  it('insists on an encrypted answer', () => {
    const { swim, opened } = dial({ keys: [key] })
    const plain = createWire({ entropy: length => new Uint8Array(length) })
    swim.handleStreamData(opened.stream, encodeStream(pushPull([]), plain, 'reply'), 5)
    const settled = swim.takeEffects().find(effect => effect.kind === 'exchangeSettled')
    expect(settled).toMatchObject({
      error: 'encryption is configured but remote state is not encrypted',
    })
  })

  it('does not take another kind of answer', () => {
    const { swim, opened, wire } = dial()
    const ack = encodeStream({ kind: 'ack', sequence: 1, payload: null }, wire, 'reply')
    swim.handleStreamData(opened.stream, ack, 5)
    expect(swim.takeEffects()).toContainEqual({
      kind: 'exchangeSettled',
      to,
      error: 'unexpected answer: ack',
    })
  })

  it('opens at most 128 at once and reports the others', () => {
    const { swim } = createStage()
    swim.join(Array(130).fill(to), 0)
    const effects = swim.takeEffects()
    expect(effects.filter(effect => effect.kind === 'openStream')).toHaveLength(128)
    const settled = effects.filter(effect => effect.kind === 'exchangeSettled')
    expect(settled).toEqual(
      Array(2).fill({ kind: 'exchangeSettled', to, error: 'too many streams' }),
    )
  })

  it('leaves out an application state that is larger than an exchange', () => {
    const { swim, delegate } = createStage({ exchangeBytesMax: 1000 })
    delegate.state = new Uint8Array(600)
    swim.pushPull(to, 0)
    expect(swim.stats.localStateTooLarge).toBe(1)
    expect(swim.takeEffects()).toMatchObject([{ kind: 'openStream' }])
  })
})
