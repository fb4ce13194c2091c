/**
 * One real node among stubs, as the Go library was measured (`observedTimelines` of the vectors).
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { encodeMessage } from '../../../src/swim/codec/encode-message.js'
import { decodePacket } from '../../../src/swim/codec/packet.js'
import { createWire } from '../../../src/swim/codec/wire.js'
import type { Effect } from '../../../src/swim/effects.js'
import type { PacketMessage } from '../../../src/swim/messages.js'
import { createNode, swimOptions } from '../../helpers/swim-node.js'

const wire = createWire({ entropy: length => new Uint8Array(length) })
const silentHost = '10.0.0.5'

interface Run {
  readonly independentConfirmations: number
  readonly nacksSent: boolean
  readonly directPing: number
  readonly indirectPingsToThreePeers: number
  readonly tcpFallbackDial: number
  readonly suspected: number
  readonly declaredDead: number
  readonly healthScoreAfter: number
}

const vectors = JSON.parse(
  readFileSync(new URL('../../fixtures/memberlist-vectors.json', import.meta.url), 'utf8'),
)
const runs: readonly Run[] = vectors.observedTimelines[0].runs

/**
 * Five stubs at 10.0.0.1 to .5; the last one never answers. Times are those of the silent one's
 * first ping.
 */
class Stage {
  readonly #node = createNode(swimOptions('self'))
  readonly #run: Run
  #nowMs = 0
  #firstPingMs = Number.NaN
  readonly times = { indirect: [] as number[], dial: 0, suspected: 0, dead: 0, score: -1 }

  constructor(run: Run) {
    this.#run = run
    this.#node.swim.start(0)
    for (let i = 1; i <= 5; i++) {
      this.#receive({
        kind: 'alive',
        incarnation: 1,
        node: `stub-${i}` as never,
        addressBytes: Uint8Array.of(10, 0, 0, i),
        port: 7946,
        meta: null,
        versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
      })
    }
  }

  play(untilMs: number): void {
    const { swim } = this.#node
    while (this.#nowMs < untilMs && this.times.dead === 0) {
      this.#nowMs = Math.max(this.#nowMs, swim.nextDeadlineMs())
      swim.advance(this.#nowMs)
      // Before the effects: the ack of the next probe already mends the score.
      const silent = swim.member('stub-5' as never)
      if (silent?.state === 'suspect' && this.times.suspected === 0) this.#confirm()
      for (const effect of swim.takeEffects()) this.#handle(effect)
    }
  }

  #confirm(): void {
    this.times.suspected = this.#since()
    this.times.score = this.#node.swim.healthScore()
    for (let i = 1; i <= this.#run.independentConfirmations; i++) {
      const from = `stub-${i}` as never
      this.#receive({ kind: 'suspect', incarnation: 1, node: 'stub-5' as never, from })
    }
  }

  #handle(effect: Effect): void {
    if (effect.kind === 'openStream' && effect.to.host === silentHost) {
      this.times.dial ||= this.#since()
    } else if (effect.kind === 'memberChanged' && effect.change === 'leave') {
      this.times.dead = this.#since()
    } else if (effect.kind === 'sendPacket') {
      const packet = decodePacket(effect.bytes, wire)
      if (!packet.ok) throw new Error(packet.error)
      for (const message of packet.value.messages) this.#answer(effect.to.host, message)
    }
  }

  #answer(host: string, message: PacketMessage): void {
    if (message.kind === 'ping' && host === silentHost) {
      if (Number.isNaN(this.#firstPingMs)) this.#firstPingMs = this.#nowMs
    } else if (message.kind === 'ping') {
      this.#receive({ kind: 'ack', sequence: message.sequence, payload: null })
    } else if (message.kind === 'indirectPing') {
      if (this.times.suspected === 0) this.times.indirect.push(this.#since())
      if (this.#run.nacksSent) this.#receive({ kind: 'nack', sequence: message.sequence })
    }
  }

  #receive(message: PacketMessage): void {
    const from = { host: '10.0.0.1', port: 7946 }
    this.#node.swim.handlePacket(encodeMessage(message), from, this.#nowMs)
  }

  #since(): number {
    return this.#nowMs - this.#firstPingMs
  }
}

/** What scheduling added to the measurements. */
const noiseMs = 6

describe('a node measured among stubs keeps the times of the Go library', () => {
  it.each(runs)('$independentConfirmations confirmations, nacks $nacksSent', run => {
    const stage = new Stage(run)
    stage.play(60_000)
    const { indirect, dial, suspected, dead, score } = stage.times
    expect(indirect).toHaveLength(3)
    for (const [what, oursMs, measured] of [
      ['first indirect ping', indirect[0]!, run.indirectPingsToThreePeers],
      ['last indirect ping', indirect[2]!, run.indirectPingsToThreePeers],
      ['TCP ping', dial, run.tcpFallbackDial],
      ['suspicion', suspected, run.suspected],
      ['death', dead, run.declaredDead],
    ] as const) {
      expect(Math.abs(oursMs - measured * 1000), what).toBeLessThanOrEqual(noiseMs)
    }
    expect(score).toBe(run.healthScoreAfter)
  })

  it('there are four measured runs', () => {
    expect(runs).toHaveLength(4)
  })
})
