import { describe, expect, it } from 'vitest'
import { encodeMessage } from '../../../src/swim/codec/encode-message.js'
import { Keyring } from '../../../src/swim/codec/keyring.js'
import { decodePacket, encodePacket } from '../../../src/swim/codec/packet.js'
import { createWire } from '../../../src/swim/codec/wire.js'
import type { Member } from '../../../src/swim/member.js'
import type { PacketMessage } from '../../../src/swim/messages.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { aliveOf, createNode, swimOptions } from '../../helpers/swim-node.js'

const name = (text: string) => text as MemberName
const wire = createWire({ keyring: new Keyring([]), entropy: length => new Uint8Array(length) })

function stage() {
  const { swim, delegate } = createNode(swimOptions('self', '10.0.0.1'))
  const answers: string[] = []
  Object.assign(delegate, { notifyAnswer: (member: Member) => answers.push(member.name) })
  const relay = { host: '10.0.0.3', port: 7946 }
  const receive = (message: PacketMessage) =>
    swim.handlePacket(encodePacket([encodeMessage(message)], wire, { checksum: false }), relay, 0)
  swim.start(0)
  receive(aliveOf('target', 2))
  receive(aliveOf('relay', 3))
  swim.takeEffects()
  const sent = () =>
    swim.takeEffects().flatMap(effect => {
      if (effect.kind !== 'sendPacket') return []
      const packet = decodePacket(effect.bytes, wire)
      if (!packet.ok) throw new Error(packet.error)
      return packet.value.messages.map(message => ({ to: effect.to.host, message }))
    })
  return { swim, receive, sent, answers }
}

describe('a member that is asked', () => {
  it('gets a ping, and another member is asked to ping it under the same number', () => {
    const { swim, sent } = stage()
    swim.ask(name('target'), 10)
    const questions = sent().filter(({ message }) => /ping/i.test(message.kind))
    expect(questions).toMatchObject([
      { to: '10.0.0.2', message: { kind: 'ping', node: 'target' } },
      { to: '10.0.0.3', message: { kind: 'indirectPing', node: 'target', port: 7946 } },
    ])
    const numbers = questions.map(({ message }) => 'sequence' in message && message.sequence)
    expect(numbers[0]).toBe(numbers[1])
  })

  it('is told of when an answer comes, whoever brings it, and once', () => {
    const { swim, receive, sent, answers } = stage()
    swim.ask(name('target'), 10)
    const question = sent().find(({ message }) => message.kind === 'ping')?.message
    const sequence = question?.kind === 'ping' ? question.sequence : -1
    receive({ kind: 'ack', sequence: sequence + 1, payload: null })
    expect(answers).toEqual([])
    receive({ kind: 'ack', sequence, payload: null })
    receive({ kind: 'ack', sequence, payload: null })
    expect(answers).toEqual(['target'])
  })

  it('is not suspected when it does not answer, and nobody is asked who is not known', () => {
    const { swim, sent } = stage()
    swim.ask(name('nobody'), 10)
    swim.ask(name('self'), 10)
    expect(sent()).toEqual([])
    swim.ask(name('target'), 10)
    expect(swim.member(name('target'))?.state).toBe('alive')
    expect(swim.stats.probesFailed).toBe(0)
  })
})

it('tells whether a packet was one of this ring', () => {
  const { swim, receive } = stage()
  expect(receive(aliveOf('third', 4))).toBe(true)
  expect(swim.handlePacket(Uint8Array.of(255, 1, 2), { host: '10.0.0.9', port: 1 }, 0)).toBe(false)
})
