import { describe, expect, it } from 'vitest'
import type { Effect } from '../../../src/swim/effects.js'
import { retransmitLimit } from '../../../src/swim/scaling.js'
import { SwimNetwork } from '../../helpers/swim-network.js'

function createCluster(size: number, network: SwimNetwork): void {
  for (let i = 0; i < size; i++) network.add(`node-${i}`)
  for (let i = 1; i < size; i++) network.join(`node-${i}`, 'node-0')
}

/** Who was declared dead, as `observer: subject`. */
function deathsInto(deaths: string[]) {
  return {
    effect(node: { readonly name: string }, effect: Effect) {
      if (effect.kind === 'memberChanged' && effect.change === 'leave') {
        deaths.push(`${node.name}: ${effect.member.name}`)
      }
    },
  }
}

describe('a cluster in one process', () => {
  it('of 100 nodes converges after all have joined one of them', () => {
    const network = new SwimNetwork({ seed: 11 })
    createCluster(100, network)
    const tookMs = network.runUntil(() => network.converged(), 30_000)
    expect(tookMs).toBeLessThan(10_000)
    for (const { name, swim } of network.nodes.values()) {
      expect({ name, members: swim.stats.members, dropped: swim.stats.droppedMembersMax }).toEqual({
        name,
        members: 100,
        dropped: 0,
      })
    }
  })

  it('at rest each node sends one ping and one ack per probe interval, and no gossip', () => {
    const network = new SwimNetwork({ seed: 12 })
    createCluster(100, network)
    network.runUntil(() => network.converged(), 30_000)
    network.run(network.nowMs + 20_000)
    const before = new Map([...network.nodes].map(([name, node]) => [name, { ...node.swim.stats }]))
    const seconds = 60
    network.run(network.nowMs + seconds * 1000)
    let packets = 0
    for (const [name, { swim }] of network.nodes) {
      const old = before.get(name)!
      expect(swim.stats.messagesOutPing - old.messagesOutPing, `${name} pings`).toBe(seconds)
      expect(swim.stats.probesIndirect - old.probesIndirect, `${name} indirect`).toBe(0)
      packets += swim.stats.packetsOut - old.packetsOut
    }
    // The original's load: one ping sent and one received and answered, on average, per interval.
    expect(packets / network.nodes.size / seconds).toBeCloseTo(2, 1)
  })

  it('one piece of news costs each node at most its retransmit limit in messages', () => {
    const network = new SwimNetwork({ seed: 13 })
    createCluster(100, network)
    network.runUntil(() => network.converged(), 30_000)
    network.run(network.nowMs + 20_000)
    const sent = () => [...network.nodes.values()].map(node => node.swim.stats.messagesOutAlive)
    const before = sent()
    const news = network.get('node-7')
    news.delegate.meta = new TextEncoder().encode('changed')
    network.act('node-7', swim => swim.updateMeta(network.nowMs))
    const knows = () =>
      [...network.nodes.values()].every(node => node.swim.member('node-7' as never)?.meta.length)
    const spreadMs = network.runUntil(knows, 5000)
    network.run(network.nowMs + 10_000)
    const limit = retransmitLimit(4, 100)
    for (const [index, count] of sent().entries()) {
      expect(count - before[index]!, `node ${index}`).toBeLessThanOrEqual(limit)
    }
    // Three peers every 200 ms: log4(100) = 3.3 rounds, twice that with the repeats wasted.
    expect(spreadMs).toBeLessThan(2000)
  })

  it('notices a crash in the time that the suspicion formula gives', () => {
    const deaths: string[] = []
    const network = new SwimNetwork({ seed: 14, observer: deathsInto(deaths) })
    createCluster(30, network)
    network.runUntil(() => network.converged(), 30_000)
    network.run(network.nowMs + 10_000)
    network.kill('node-5')
    const tookMs = network.runUntil(() => network.converged(), 40_000)
    // A probe finds it within a second or two, confirmations cut the suspicion to 5.9 s.
    expect(tookMs).toBeGreaterThan(5908)
    expect(tookMs).toBeLessThan(12_000)
    expect(new Set(deaths.map(death => death.split(': ')[1]))).toEqual(new Set(['node-5']))
  })

  it('30 % packet loss kills nobody: relays, TCP and refutations hold', () => {
    const deaths: string[] = []
    const network = new SwimNetwork({ seed: 15, observer: deathsInto(deaths) })
    createCluster(30, network)
    network.runUntil(() => network.converged(), 90_000)
    network.loss = 0.3
    network.run(network.nowMs + 120_000)
    // The TCP ping passes where packets get lost, so no probe fails for good.
    expect(deaths).toEqual([])
    expect(network.converged()).toBe(true)
    const rescued = [...network.nodes.values()].map(
      ({ swim }) => swim.stats.probesRescuedByStream + swim.stats.probesRescuedLate,
    )
    expect(rescued.reduce((sum, count) => sum + count)).toBeGreaterThan(100)
  })

  it('30 % loss without TCP: suspicions as often as SWIM says, and few refutations come too late', () => {
    const deaths: string[] = []
    const network = new SwimNetwork({ seed: 16, observer: deathsInto(deaths) })
    for (let i = 0; i < 30; i++) network.add(`node-${i}`, { disableTcpPings: true })
    for (let i = 1; i < 30; i++) network.join(`node-${i}`, 'node-0')
    network.runUntil(() => network.converged(), 90_000)
    network.loss = 0.3
    const probes = () => {
      let sent = 0
      let failed = 0
      for (const { swim } of network.nodes.values()) {
        sent += swim.stats.probes
        failed += swim.stats.probesFailed
      }
      return { sent, failed }
    }
    const before = probes()
    network.run(network.nowMs + 120_000)
    const after = probes()
    // Direct: 1 - q^2 fail. Each relay: 1 - q^4 fail. With q = 0.7 and three relays: 0.224.
    const formula = (1 - 0.7 ** 2) * (1 - 0.7 ** 4) ** 3
    const share = (after.failed - before.failed) / (after.sent - before.sent)
    expect(share).toBeGreaterThan(formula * 0.8)
    expect(share).toBeLessThan(formula * 1.2)
    // A death here is a refutation that missed an observer: e^-(sends that arrive) of all
    // suspicions.
    let suspicions = 0
    for (const { swim } of network.nodes.values()) suspicions += swim.stats.suspicions
    const allowed = suspicions * Math.exp(-0.7 * retransmitLimit(4, 30))
    expect(deaths.length).toBeLessThanOrEqual(allowed)
    network.loss = 0
    network.runUntil(() => network.converged(), 60_000)
  })
})
