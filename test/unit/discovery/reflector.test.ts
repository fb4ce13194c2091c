import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KubeError } from '../../../src/discovery/kube-api.js'
import { Reflector, retryDelayMs } from '../../../src/discovery/reflector.js'
import { FakeKubeApi, listOf, objectOf } from '../../helpers/fake-kube-api.js'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function world(objectsMax = 10) {
  const api = new FakeKubeApi()
  const seen: string[][] = []
  const failures: string[] = []
  const reflector = new Reflector(
    {
      resource: 'endpointslices',
      path: async from => `/things/${await from.namespace()}`,
      query: { labelSelector: 'a=b' },
      objectsMax,
    },
    { api, clock: { monotonicMs: () => Date.now() }, random: () => 0.5 },
  )
  const start = async () => {
    reflector.start({
      changed: objects => seen.push(objects.map(({ metadata }) => metadata.name)),
      failed: text => failures.push(text),
    })
    await pass(0)
  }
  return { api, seen, failures, reflector, start }
}

const pass = (durationMs: number) => vi.advanceTimersByTimeAsync(durationMs)

describe('a reflector', () => {
  it('lists once, then watches from the version of the list', async () => {
    const { api, seen, start } = world()
    api.answers = [listOf('7', objectOf('b', '5'), objectOf('a', '6'))]
    await start()
    expect(seen).toEqual([['a', 'b']])
    expect(api.lists).toEqual([
      {
        path: '/things/shop',
        query: { labelSelector: 'a=b', limit: '500', resourceVersion: '0' },
      },
    ])
    expect(api.watches).toEqual([
      {
        path: '/things/shop',
        query: {
          labelSelector: 'a=b',
          watch: 'true',
          allowWatchBookmarks: 'true',
          timeoutSeconds: '240',
          resourceVersion: '7',
        },
      },
    ])
  })

  it('reads a list page by page', async () => {
    const { api, seen, start } = world()
    const first = {
      metadata: { resourceVersion: '7', continue: 'more' },
      items: [objectOf('a', '1')],
    }
    api.answers = [first, listOf('7', objectOf('b', '2'))]
    await start()
    expect(seen).toEqual([['a', 'b']])
    expect(api.lists[1]!.query).toEqual({ labelSelector: 'a=b', limit: '500', continue: 'more' })
  })

  it('follows what is added, changed and deleted', async () => {
    const { api, seen, reflector, start } = world()
    api.answers = [listOf('7', objectOf('a', '5'))]
    await start()
    api.event('ADDED', objectOf('b', '8'))
    api.event('MODIFIED', objectOf('b', '9'))
    api.event('DELETED', objectOf('a', '10'))
    expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b'], ['b']])
    expect(reflector.stats()).toMatchObject({ objects: 1, events: 3, lists: 1, failures: {} })
  })

  it('goes on from the last version it heard of, bookmarks included, without listing', async () => {
    const { api, seen, start } = world()
    api.answers = [listOf('7', objectOf('a', '5'))]
    await start()
    api.event('BOOKMARK', { metadata: { resourceVersion: '50' } })
    expect(seen).toEqual([['a']])
    api.break()
    await pass(200)
    expect(api.lists).toHaveLength(1)
    expect(api.watches[1]!.query.resourceVersion).toBe('50')
  })

  it.each([
    [
      'the watch is refused with 410',
      (api: FakeKubeApi) => {
        api.refusals = [new KubeError('expired', '410')]
        api.end()
      },
    ],
    ['an event says 410', (api: FakeKubeApi) => api.event('ERROR', { code: 410, message: 'old' })],
    ['an event says 500', (api: FakeKubeApi) => api.event('ERROR', { code: 500, message: 'no' })],
    ['an event is no JSON', (api: FakeKubeApi) => api.line('{"type":"ADD')],
    ['an event has no object', (api: FakeKubeApi) => api.event('ADDED', {})],
    ['an event is of a new kind', (api: FakeKubeApi) => api.event('RENAMED', objectOf('a', '8'))],
  ])('lists anew, not from a cache, when %s', async (_, trouble) => {
    const { api, seen, start } = world()
    api.answers = [listOf('7', objectOf('a', '5')), listOf('90', objectOf('c', '80'))]
    await start()
    trouble(api)
    await pass(1_000)
    expect(seen.at(-1)).toEqual(['c'])
    expect(api.lists[1]!.query).toEqual({ labelSelector: 'a=b', limit: '500' })
    expect(api.watches.at(-1)!.query.resourceVersion).toBe('90')
    expect(api.watching).toBe(true)
  })

  it('keeps what it knows while the API is dead for hours, and tells of it once', async () => {
    const { api, seen, failures, reflector, start } = world()
    api.answers = [listOf('7', objectOf('a', '5'))]
    await start()
    api.refusals = Array.from({ length: 1_000 }, () => new KubeError('connect', 'refused'))
    api.end()
    await pass(4 * 3_600_000)
    expect(seen).toEqual([['a']])
    expect(failures).toEqual(['endpointslices: connect: refused'])
    expect(reflector.stats().silentMs).toBeGreaterThan(4 * 3_600_000 - 1_000)
    // Four hours at one try per 30 s, and the quicker ones at first.
    expect(api.watches.length).toBeGreaterThan(480)
    expect(api.watches.length).toBeLessThan(600)
    api.refusals = []
    await pass(40_000)
    api.event('ADDED', objectOf('b', '8'))
    expect(seen.at(-1)).toEqual(['a', 'b'])
  })

  it('asks a server that comes back after 30 s within 2.5 s', async () => {
    const { api, reflector, start } = world()
    api.answers = [listOf('7')]
    await start()
    api.refusals = Array.from({ length: 1_000 }, () => new KubeError('connect', 'refused'))
    api.break()
    await pass(30_000)
    api.refusals = []
    await pass(2_500)
    expect(api.watching).toBe(true)
    expect(reflector.stats().silentMs).toBeLessThan(2_500)
  })

  it('does not storm a server that ends every watch at once', async () => {
    const { api, start } = world()
    api.answers = [listOf('7')]
    await start()
    for (let second = 0; second < 600; second += 1) {
      if (api.watching) api.end()
      await pass(1_000)
    }
    expect(api.watches.length).toBeLessThan(110)
  })

  it('asks again at once, nearly, when a long watch ends', async () => {
    const { api, start } = world()
    api.answers = [listOf('7')]
    await start()
    for (let round = 0; round < 5; round += 1) {
      await pass(240_000)
      api.end()
      await pass(200)
      expect(api.watches).toHaveLength(round + 2)
    }
  })

  it('waits as long as a throttling API asks for', async () => {
    const { api, start } = world()
    api.answers = [listOf('7')]
    await start()
    api.refusals = [new KubeError('throttled', '429', 20_000)]
    api.end()
    await pass(15_000)
    expect(api.watches).toHaveLength(2)
    await pass(6_000)
    expect(api.watches).toHaveLength(3)
  })

  it('counts what fails by reason, and tells each new trouble', async () => {
    const { api, failures, reflector, start } = world()
    api.answers = [
      new KubeError('forbidden', 'may not'),
      new KubeError('forbidden', 'may not'),
      { kind: 'Nonsense' },
      listOf('7'),
    ]
    await start()
    await pass(2_000)
    expect(reflector.stats().failures).toEqual({ forbidden: 2, malformed: 1 })
    expect(failures).toEqual([
      'endpointslices: forbidden: may not',
      'endpointslices: malformed: the answer is not a list of objects',
    ])
    expect(api.watching).toBe(true)
  })

  it('keeps no more objects than it may, and counts the others', async () => {
    const { api, seen, reflector, start } = world(2)
    api.answers = [listOf('7', objectOf('a', '1'), objectOf('b', '2'), objectOf('c', '3'))]
    await start()
    api.event('ADDED', objectOf('d', '8'))
    api.event('MODIFIED', objectOf('b', '9'))
    expect(seen.at(-1)).toEqual(['a', 'b'])
    expect(reflector.stats()).toMatchObject({ objects: 2, ignored: 2 })
  })

  it('reports nothing and asks nothing after it was stopped', async () => {
    const { api, seen, failures, reflector, start } = world()
    api.answers = [listOf('7')]
    await start()
    reflector.stop()
    await pass(3_600_000)
    expect({ seen, failures, lists: api.lists.length, watches: api.watches.length }).toEqual({
      seen: [[]],
      failures: [],
      lists: 1,
      watches: 1,
    })
  })
})

describe('the wait after trouble', () => {
  it.each([
    [0, 200],
    [3_200, 200],
    [32_000, 2_000],
    [480_000, 30_000],
    [86_400_000, 30_000],
  ])('that lasts %i ms is %i ms, give or take a quarter', (troubledMs, delayMs) => {
    expect(retryDelayMs(troubledMs, () => 0.5)).toBe(delayMs)
    expect(retryDelayMs(troubledMs, () => 0)).toBe(delayMs * 0.75)
    expect(retryDelayMs(troubledMs, () => 1)).toBe(delayMs * 1.25)
  })
})
