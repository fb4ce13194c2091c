import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Discovered, DiscoveryProblem } from '../../../src/discovery/discovery.js'
import { joinDiscovered } from '../../../src/discovery/discovery.js'
import { dnsDiscovery } from '../../../src/discovery/dns.js'
import { resolveEveryMs } from '../../../src/discovery/name-lookup.js'
import { staticDiscovery } from '../../../src/discovery/static.js'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function recorder() {
  const found: Discovered[] = []
  const problems: DiscoveryProblem[] = []
  return {
    found,
    problems,
    listener: {
      found: (discovered: Discovered) => found.push(discovered),
      failed: (problem: DiscoveryProblem) => problems.push(problem),
    },
  }
}

test('static addresses are reported once and never looked up', async () => {
  const { found, listener } = recorder()
  const lookup = vi.fn()
  const discovery = staticDiscovery(
    [
      { host: '127.0.0.1', port: 7946 },
      { host: '::1', port: 7947 },
    ],
    lookup,
  )
  discovery.start(listener)
  await vi.advanceTimersByTimeAsync(10 * resolveEveryMs)
  expect(found).toEqual([
    {
      seeds: [
        { host: '127.0.0.1', port: 7946 },
        { host: '::1', port: 7947 },
      ],
      expected: null,
    },
  ])
  expect(lookup).not.toHaveBeenCalled()
})

test('an empty static list is reported too', async () => {
  const { found, listener } = recorder()
  staticDiscovery([]).start(listener)
  await vi.advanceTimersByTimeAsync(0)
  expect(found).toEqual([{ seeds: [], expected: null }])
})

test('a DNS name yields all its addresses, and again every 30 s', async () => {
  const { found, listener } = recorder()
  const answers = [['10.0.0.1', '10.0.0.2'], ['10.0.0.3']]
  const discovery = dnsDiscovery('gossip.shop.svc', 7946, async () => answers.shift()!)
  discovery.start(listener)
  await vi.advanceTimersByTimeAsync(resolveEveryMs - 1)
  expect(found.map(one => one.seeds.map(seed => seed.host))).toEqual([['10.0.0.1', '10.0.0.2']])
  await vi.advanceTimersByTimeAsync(1)
  expect(found[1]).toEqual({ seeds: [{ host: '10.0.0.3', port: 7946 }], expected: null })
  discovery.stop()
})

test('a name that fails keeps its last addresses, says so, and is tried again soon', async () => {
  const { found, problems, listener } = recorder()
  let failing = false
  const discovery = dnsDiscovery('gossip.shop.svc', 7946, async () => {
    if (failing) throw Object.assign(new Error('no'), { code: 'ENOTFOUND' })
    return ['10.0.0.1']
  })
  discovery.start(listener)
  await vi.advanceTimersByTimeAsync(0)
  failing = true
  await vi.advanceTimersByTimeAsync(resolveEveryMs)
  expect(problems).toEqual([{ source: 'dns gossip.shop.svc', text: 'gossip.shop.svc: ENOTFOUND' }])
  expect(found[1]).toEqual(found[0])
  failing = false
  await vi.advanceTimersByTimeAsync(2_000)
  expect(found).toHaveLength(3)
  discovery.stop()
})

test('a stopped discovery reports nothing more, not even a look-up under way', async () => {
  const { found, listener } = recorder()
  let answer: (hosts: string[]) => void = () => {}
  const discovery = dnsDiscovery('gossip', 7946, () => new Promise(resolve => (answer = resolve)))
  discovery.start(listener)
  discovery.stop()
  answer(['10.0.0.1'])
  await vi.advanceTimersByTimeAsync(10 * resolveEveryMs)
  expect(found).toEqual([])
})

test('several discoveries add up, and one that knows who is expected decides that', () => {
  const one = { host: '10.0.0.1', port: 1 }
  const two = { host: '10.0.0.2', port: 1 }
  expect(
    joinDiscovered([
      { seeds: [one, two], expected: null },
      { seeds: [two], expected: [two] },
    ]),
  ).toEqual({ seeds: [one, two], expected: [two] })
  expect(joinDiscovered([{ seeds: [one, one], expected: null }])).toEqual({
    seeds: [one],
    expected: null,
  })
})
