import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { unknownContext } from '../../../src/config/assemble-rules.js'
import type { Snapshot } from '../../../src/config/snapshot.js'
import { KubeError } from '../../../src/discovery/kube-api.js'
import { createLogger } from '../../../src/metrics/logger.js'
import { ConfigMapSource } from '../../../src/sidecar/config-map-source.js'
import { LiveRules } from '../../../src/sidecar/live-rules.js'
import { RulesEvents } from '../../../src/sidecar/rules-events.js'
import { FakeKubeApi, listOf, objectOf } from '../../helpers/fake-kube-api.js'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const pass = (durationMs: number) => vi.advanceTimersByTimeAsync(durationMs)

const rulesText = (limit: string) =>
  `version: 1\nrules: [{ name: api, key: [global], limit: ${limit} }]\n`

const configMap = (version: string, data: unknown) =>
  objectOf('rules', version, { data, metadata: { name: 'rules', uid: 'u-1' } })

function world() {
  const api = new FakeKubeApi()
  const troubles: string[] = []
  const source = new ConfigMapSource(
    { configMap: 'rules', namespace: null, failed: text => troubles.push(text) },
    { api, clock: { monotonicMs: () => Date.now() }, random: () => 0.5 },
  )
  return { api, troubles, source }
}

describe('rules from a ConfigMap', () => {
  it('are its *.yaml entries, by name, each shown with the name of the object', async () => {
    const { api, source } = world()
    api.answers = [
      configMap('1', {
        'b.yaml': 'B',
        'a.yml': 'A',
        'readme.txt': 'no',
        '.c.yaml': 'no',
        'd.yaml': 7,
      }),
    ]
    const { files, error } = await source.read()
    expect({ files, error }).toEqual({
      files: [
        { name: 'configmap rules (a.yml)', text: 'A' },
        { name: 'configmap rules (b.yaml)', text: 'B' },
      ],
      error: null,
    })
    expect(api.lists[0]!.path).toBe('/api/v1/namespaces/shop/configmaps/rules')
  })

  it.each([
    ['it is missing', new KubeError('missing', '404'), 'configmap rules does not exist'],
    [
      'the API says no',
      new KubeError('forbidden', '403 no'),
      'configmap rules cannot be read: 403 no',
    ],
    ['it has no data', configMap('1', undefined), 'configmap rules has no entry *.yaml'],
    ['no entry is ours', configMap('1', { x: '' }), 'configmap rules has no entry *.yaml'],
    ['it is no object', 'text', 'configmap rules has no entry *.yaml'],
  ])('are an error when %s', async (_, answer, error) => {
    const { api, source } = world()
    api.answers = [answer]
    expect(await source.read()).toMatchObject({ files: [], error })
  })

  it('are watched by name, so that a Role for the one object is enough', async () => {
    const { api, source } = world()
    api.answers = [listOf('5', configMap('4', { 'a.yaml': 'one' }))]
    const seen: Snapshot[] = []
    const watch = source.watch(snapshot => seen.push(snapshot))
    await pass(0)
    api.event('MODIFIED', configMap('6', { 'a.yaml': 'two' }))
    api.event('DELETED', configMap('7', { 'a.yaml': 'two' }))
    expect(seen.map(({ files, error }) => error ?? files[0]?.text)).toEqual([
      'one',
      'two',
      'configmap rules does not exist',
    ])
    for (const { query, path } of [api.lists[0]!, api.watches[0]!]) {
      expect(path).toBe('/api/v1/namespaces/shop/configmaps')
      expect(query.fieldSelector).toBe('metadata.name=rules')
    }
    watch.close()
    await pass(60_000)
    expect(seen).toHaveLength(3)
  })

  it('stay as they were while invalid ones stand there, and while the API is away', async () => {
    const { api, source } = world()
    const refused: string[] = []
    const log = createLogger({ level: 'silent', node: 'pod-1' })
    const options = { source, inline: false, load: {}, context: unknownContext }
    const rules = new LiveRules(options, {
      log,
      clock: { wallMs: () => Date.now() },
      refused: (_, errors) => refused.push(...errors),
    })
    const first = configMap('4', { 'a.yaml': rulesText('10/1s') })
    api.answers = [first, listOf('5', first)]
    expect(await rules.reload()).toMatchObject({ ok: true })
    const good = rules.rules.hash
    const applied: number[] = []
    rules.start(next => applied.push(next.hash))
    await pass(0)
    // The list brings what is in use already: nothing happens.
    expect([applied, rules.status().reloadsSucceeded]).toEqual([[], 1])

    api.event('MODIFIED', configMap('6', { 'a.yaml': rulesText('often') }))
    expect(applied).toEqual([])
    expect(rules.rules.hash).toBe(good)
    expect(rules.status()).toMatchObject({ lastReloadSuccessful: false, reloadsFailed: 1 })
    expect(refused).toHaveLength(1)
    expect(refused[0]).toMatch(/^configmap rules \(a\.yaml\):2:\d+: error: .*limit/)

    api.break()
    await pass(60_000)
    expect(rules.status()).toMatchObject({ reloadsSucceeded: 1, reloadsFailed: 1 })
    api.event('MODIFIED', configMap('8', { 'a.yaml': rulesText('20/1s') }))
    expect(applied).toEqual([rules.rules.hash])
    expect(rules.rules.hash).not.toBe(good)
    expect(rules.status().lastReloadSuccessful).toBe(true)
    rules.stop()
  })
})

describe('an Event of invalid rules', () => {
  function events(api: FakeKubeApi) {
    const { source } = world()
    const warned: string[] = []
    return {
      warned,
      events: new RulesEvents(
        { about: () => source.reference(), node: 'pod-1' },
        { api, wallMs: () => 1_700_000_000_000, warn: text => warned.push(text) },
      ),
    }
  }

  it('is about the ConfigMap, and says where the mistake is', async () => {
    const api = new FakeKubeApi()
    await events(api).events.refused('0123456789abcdef0123', ['a.yaml:1:2: error: no'])
    expect(api.posts).toHaveLength(1)
    expect(api.posts[0]!.path).toBe('/api/v1/namespaces/shop/events')
    expect(api.posts[0]!.body).toMatchObject({
      kind: 'Event',
      metadata: { name: 'rules.0123456789abcdef', namespace: 'shop' },
      involvedObject: { apiVersion: 'v1', kind: 'ConfigMap', name: 'rules', namespace: 'shop' },
      type: 'Warning',
      reason: 'InvalidRules',
      message: 'invalid rules, those in force stay: a.yaml:1:2: error: no',
      source: { component: 'grapevine', host: 'pod-1' },
      firstTimestamp: '2023-11-14T22:13:20.000Z',
    })
  })

  it('is made once for the same content, and again for other content', async () => {
    const api = new FakeKubeApi()
    const { events: told } = events(api)
    for (const digest of ['one', 'one', 'two']) await told.refused(digest, ['no'])
    expect(
      api.posts.map(({ body }) => (body as { metadata: { name: string } }).metadata.name),
    ).toEqual(['rules.one', 'rules.two'])
  })

  it('that another pod has made already is no trouble; one that may not be made is told once', async () => {
    const api = new FakeKubeApi()
    const { events: told, warned } = events(api)
    api.postError = new KubeError('conflict', '409 exists')
    await told.refused('one', ['no'])
    expect(warned).toEqual([])
    api.postError = new KubeError('forbidden', '403 may not')
    await told.refused('two', ['no'])
    await told.refused('three', ['no'])
    expect(warned).toEqual(['no Event could be created: 403 may not'])
  })

  it('is cut to what the API takes', async () => {
    const api = new FakeKubeApi()
    await events(api).events.refused('one', [`x${'y'.repeat(5_000)}`])
    expect((api.posts[0]!.body as { message: string }).message).toHaveLength(1_000)
  })
})
