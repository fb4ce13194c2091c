import { describe, expect, it } from 'vitest'
import type { NetworkSpec } from '../../../src/simulator/scenario.js'
import { SeededRandom } from '../../../src/simulator/seeded-random.js'
import { SimNetwork } from '../../../src/simulator/sim-network.js'

const quiet: NetworkSpec = {
  latencyMs: 2,
  jitterMs: 1,
  loss: 0,
  duplicate: 0,
  reorder: 0,
  mtuBytes: 1472,
}

function network(parts: Partial<NetworkSpec>, calm = false) {
  const arrivals: { delayMs: number; slot: number }[] = []
  const net = new SimNetwork(
    { ...quiet, ...parts },
    3,
    new SeededRandom(1).stream(),
    (delayMs, slot) => arrivals.push({ delayMs, slot }),
  )
  net.calm = calm
  return { net, arrivals }
}

const payload = Uint8Array.of(1, 2, 3)

describe('SimNetwork', () => {
  it('delivers what was sent, between latency - jitter and latency + jitter', () => {
    const { net, arrivals } = network({})
    for (let i = 0; i < 1000; i++) net.send(0, 1, 10, 11, payload)
    for (const { delayMs } of arrivals) {
      expect(delayMs).toBeGreaterThanOrEqual(1)
      expect(delayMs).toBeLessThanOrEqual(3)
    }
    expect(net.take(arrivals[0]!.slot)).toEqual({ sender: 10, receiver: 11, bytes: payload })
    expect(net.counts).toMatchObject({ packets: 1000, bytes: 3000, lost: 0 })
  })

  it('uses a slot again only after its packet was taken', () => {
    const { net, arrivals } = network({})
    net.send(0, 1, 0, 1, payload)
    net.send(0, 1, 0, 1, payload)
    expect(arrivals.map(({ slot }) => slot)).toEqual([0, 1])
    net.take(0)
    net.send(0, 1, 0, 1, payload)
    expect(arrivals.at(-1)?.slot).toBe(0)
  })

  it('loses, duplicates and holds back the given shares', () => {
    const { net, arrivals } = network({ loss: 0.3, duplicate: 0.2, reorder: 0.1 })
    for (let i = 0; i < 10_000; i++) net.send(0, 1, 0, 1, payload)
    expect(Math.abs(net.counts.lost - 3000)).toBeLessThan(200)
    expect(Math.abs(net.counts.duplicated - 2000)).toBeLessThan(200)
    expect(arrivals).toHaveLength(10_000 - net.counts.lost + net.counts.duplicated)
    const late = arrivals.filter(({ delayMs }) => delayMs > 3).length
    expect(Math.abs(late / arrivals.length - 0.1)).toBeLessThan(0.02)
  })

  it('cuts one direction until it was mended as often as cut', () => {
    const { net, arrivals } = network({})
    net.cut(0, 1)
    net.cut(0, 1)
    net.mend(0, 1)
    net.send(0, 1, 0, 1, payload)
    net.send(1, 0, 1, 0, payload)
    expect(arrivals).toHaveLength(1)
    net.mend(0, 1)
    net.send(0, 1, 0, 1, payload)
    expect(arrivals).toHaveLength(2)
    expect(net.counts.cut).toBe(1)
  })

  it('drops what is larger than the MTU', () => {
    const { net, arrivals } = network({})
    net.send(0, 1, 0, 1, new Uint8Array(1473))
    net.send(0, 1, 0, 1, new Uint8Array(1472))
    expect(arrivals).toHaveLength(1)
    expect(net.counts.oversize).toBe(1)
  })

  it('neither loses nor counts while calm', () => {
    const { net, arrivals } = network({ loss: 1, duplicate: 1 }, true)
    net.send(0, 1, 0, 1, payload)
    expect(arrivals).toHaveLength(1)
    expect(net.counts).toMatchObject({ packets: 0, bytes: 0, lost: 0, duplicated: 0 })
  })
})
