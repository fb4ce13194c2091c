/** Hostile counter messages: whatever the bytes, a table stays sound and nothing throws. */
import { expect, it } from 'vitest'
import { readMessage } from '../../src/counters/counter-codec.js'
import { CounterFleet, seededRandom } from '../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../helpers/rules.js'

const budgetMs = 4000
const quiet = {
  header: () => undefined,
  clock: () => undefined,
  shape: () => true,
  counter: () => undefined,
  entry: () => undefined,
  counterEnd: () => undefined,
}

/** Messages of all kinds and families, to be mangled. */
function samples(): Uint8Array[] {
  const fleet = new CounterFleet({
    pods: 2,
    rules: rulesOf(
      ruleOf('bucket', { limit: limitOf(10, 1000) }),
      ruleOf('fixed', { limit: limitOf(10, 1000), algorithm: 'fixed-window' }),
      ruleOf('log', { limit: limitOf(10, 60_000), algorithm: 'sliding-log' }),
      ruleOf('gauge', { limit: null, concurrency: 3 }),
    ),
  })
  for (const rule of ['bucket', 'fixed', 'log', 'gauge'])
    for (let n = 0; n < 6; n++) fleet.request(0, rule, [`k${n % 2}`])
  fleet.run(300)
  const { replicator } = fleet.pods[0]!
  const sent: Uint8Array[] = []
  replicator.flush(fleet.nowMs, fleet.wallMs, (_to, payload) => sent.push(payload))
  return [
    ...sent,
    replicator.localState(true, fleet.nowMs, fleet.wallMs, 1 << 20),
    replicator.exportTotals(fleet.nowMs, fleet.wallMs),
  ]
}

function mangled(bytes: Uint8Array, random: () => number): Uint8Array {
  const copy = bytes.slice(0, random() < 0.3 ? Math.floor(random() * bytes.length) : bytes.length)
  const changes = Math.floor(random() * 6)
  for (let n = 0; n < changes && copy.length > 5; n++) {
    // The first bytes are left alone most of the time: behind them is what is to be reached.
    const place = random() < 0.1 ? 0 : 5
    copy[place + Math.floor(random() * (copy.length - place))] = Math.floor(random() * 256)
  }
  return copy
}

it('mangled messages leave a pod sound, in its bounds and able to decide', () => {
  const random = seededRandom(20261130)
  const valid = samples()
  const fleet = new CounterFleet({
    pods: 1,
    keysMax: 128,
    rules: rulesOf(
      ruleOf('bucket', { limit: limitOf(10, 1000) }),
      ruleOf('log', { limit: limitOf(10, 60_000), algorithm: 'sliding-log' }),
    ),
  })
  const pod = fleet.pods[0]!
  const endsAt = performance.now() + budgetMs
  let rounds = 0
  for (; rounds < 60_000 && performance.now() < endsAt; rounds++) {
    const bytes = mangled(valid[rounds % valid.length]!, random)
    const atMs = 1000 + rounds / 10
    const wallMs = fleet.wallMs + atMs
    if (random() < 0.5) pod.replicator.handleMessage(bytes, atMs, wallMs)
    else pod.replicator.mergeRemoteState(bytes, false, atMs, wallMs)
    if (rounds % 50 === 0) {
      const rule = rounds % 100 === 0 ? 'bucket' : 'log'
      const decision = pod.limiter.check(rule, ['k0'], 1, 'check', atMs, wallMs)!
      expect(Number.isFinite(decision.remaining)).toBe(true)
      expect(decision.remaining).toBeGreaterThanOrEqual(0)
      expect(Number.isFinite(decision.retryAfterMs)).toBe(true)
    }
    if (rounds % 1000 === 0) pod.table.assertInvariants()
  }
  pod.table.assertInvariants()
  expect(rounds).toBeGreaterThan(1000)
  expect(pod.replicator.messagesIgnored).toBeGreaterThan(rounds / 20)
})

it('random bytes behind a good header are read to an end', () => {
  const random = seededRandom(7)
  for (let n = 0; n < 20_000; n++) {
    const bytes = Uint8Array.from({ length: 5 + Math.floor(random() * 60) }, () => random() * 256)
    bytes.set([0x67, 0x76, 1, 1 + (n % 3), 0])
    expect(['ok', 'malformed']).toContain(readMessage(bytes, quiet))
  }
})
