/** Rules in a ConfigMap of a real API server: watched through the API, and mounted as a directory. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { ensureBuilt } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'
import { TestCluster, whyNoCluster } from './cluster.js'
import {
  account,
  ask,
  bindingOf,
  discoveryRole,
  metricOf,
  namespace,
  PodFleet,
  serviceAccount,
} from './pods.js'

const peers = inject('peers')
const reason = whyNoCluster(peers)

const configMap = 'shop-rules'
/** An edit is in force within seconds; the rest is for the machine. */
const patienceMs = 20_000

const rulesRole = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'grapevine-rules', namespace },
  rules: [
    {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: [configMap],
      verbs: ['get', 'list', 'watch'],
    },
    { apiGroups: [''], resources: ['events'], verbs: ['create'] },
  ],
}

const rulesText = (limit: string) =>
  `version: 1\nrules:\n  - { name: api, key: [global], limit: ${limit} }\n`

/** The kubelet's way: a new directory, and one link that is renamed over the old one. */
class MountedConfigMap {
  readonly directory: string
  #version = 0

  constructor(directory: string) {
    this.directory = directory
    mkdirSync(directory)
  }

  write(data: Readonly<Record<string, string>>): void {
    this.#version += 1
    const folder = `..2026_${this.#version}`
    mkdirSync(join(this.directory, folder))
    for (const [key, text] of Object.entries(data)) {
      writeFileSync(join(this.directory, folder, key), text)
      if (this.#version === 1) symlinkSync(join('..data', key), join(this.directory, key))
    }
    symlinkSync(folder, join(this.directory, '..data_tmp'))
    renameSync(join(this.directory, '..data_tmp'), join(this.directory, '..data'))
  }
}

interface Event {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string }
}

describe.skipIf(reason !== null)(`rules in a ConfigMap${reason ? ` (${reason})` : ''}`, () => {
  let cluster: TestCluster
  let fleet: PodFleet
  let mount: MountedConfigMap
  let watching: SidecarProcess
  let mounting: SidecarProcess

  beforeAll(async () => {
    ensureBuilt()
    cluster = await TestCluster.start(peers)
    await cluster.makeNamespace(namespace)
    await cluster.apply(serviceAccount(account), discoveryRole, rulesRole)
    await cluster.apply(
      bindingOf('grapevine-discovery', account),
      bindingOf('grapevine-rules', account),
    )
    await apply(rulesText('100/1h'))
    fleet = await PodFleet.create(cluster)
    mount = new MountedConfigMap(join(cluster.directory, 'rules'))
    await sync()
    const accountFiles = await cluster.serviceAccountFiles(namespace, account)
    const discovery = 'discovery: { kubernetes: { service: grapevine-gossip } }'
    watching = await fleet.start(1, {
      accountFiles,
      lines: '',
      flags: ['--rules-from', configMap],
    })
    mounting = await fleet.start(2, {
      accountFiles,
      lines: discovery,
      flags: ['--rules', mount.directory],
      environment: { POD_NAME: 'pod-2', POD_NAMESPACE: namespace },
    })
  })

  afterAll(async () => {
    await fleet?.stop()
    await cluster?.stop()
  })

  async function apply(text: string): Promise<void> {
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: configMap, namespace },
      data: { 'rules.yaml': text },
    })
  }

  /** What the kubelet does a minute later at most: the object's data become files. */
  async function sync(): Promise<void> {
    const text = await cluster.kubectl([
      'get',
      'configmap',
      configMap,
      '-n',
      namespace,
      '-o',
      'json',
    ])
    mount.write((JSON.parse(text) as { data: Record<string, string> }).data)
  }

  async function limitOf(pod: SidecarProcess): Promise<number> {
    const { text } = await ask(pod.addresses.api, '/v1/check', { rule: 'api', cost: 0 })
    return (JSON.parse(text) as { limit: number }).limit
  }

  async function events(): Promise<Event[]> {
    const text = await cluster.kubectl(['get', 'events', '-n', namespace, '-o', 'json'])
    return (JSON.parse(text) as { items: Event[] }).items
  }

  const successful = (pod: SidecarProcess) =>
    metricOf(pod, 'grapevine_config_last_reload_successful')

  it('are in force from the start', async () => {
    expect([await limitOf(watching), await limitOf(mounting)]).toEqual([100, 100])
    expect([await successful(watching), await successful(mounting)]).toEqual([1, 1])
  })

  it('are in force within seconds of an edit, and lose no count', async () => {
    const consumed = { rule: 'api', cost: 30 }
    for (const pod of [watching, mounting]) await ask(pod.addresses.api, '/v1/check', consumed)
    await apply(rulesText('200/1h'))
    await until(
      'the watching pod has the new limit',
      async () => (await limitOf(watching)) === 200,
      patienceMs,
    )
    expect(await limitOf(mounting)).toBe(100)
    await sync()
    await until(
      'the mounting pod has the new limit',
      async () => (await limitOf(mounting)) === 200,
      patienceMs,
    )
    for (const pod of [watching, mounting]) {
      const { text } = await ask(pod.addresses.api, '/v1/check', { rule: 'api', cost: 0 })
      expect((JSON.parse(text) as { remaining: number }).remaining).toBeLessThan(200 - 25)
    }
  })

  it('that are invalid change nothing, and are told by metric and Event', async () => {
    await apply(rulesText('often'))
    await sync()
    for (const pod of [watching, mounting])
      await until(`${pod.name} says so`, async () => (await successful(pod)) === 0, patienceMs)
    expect([await limitOf(watching), await limitOf(mounting)]).toEqual([200, 200])
    const told = await until('both Events are there', async () => {
      const found = (await events()).filter(event => event.reason === 'InvalidRules')
      return found.length >= 2 && found
    })
    const uid = await cluster.kubectl([
      ...['get', 'configmap', configMap, '-n', namespace, '-o', 'jsonpath={.metadata.uid}'],
    ])
    expect(told.map(({ involvedObject }) => involvedObject)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'ConfigMap', name: configMap, uid }),
        expect.objectContaining({ kind: 'Pod', name: 'pod-2' }),
      ]),
    )
    for (const { message } of told) expect(message).toMatch(/rules\.yaml\)?:3:\d+: error: .*limit/)
  })

  it('that are deleted change nothing either', async () => {
    await apply(rulesText('300/1h'))
    await until('valid ones are back', async () => (await limitOf(watching)) === 300, patienceMs)
    expect(await successful(watching)).toBe(1)
    await cluster.kubectl(['delete', 'configmap', configMap, '-n', namespace])
    await until('it is noticed', async () => (await successful(watching)) === 0, patienceMs)
    expect(await limitOf(watching)).toBe(300)
    await apply(rulesText('400/1h'))
    await until('they are there again', async () => (await limitOf(watching)) === 400, patienceMs)
  })

  it('stay while the API is away, and are followed again when it is back', async () => {
    await cluster.killApi()
    await until('it is missed', async () => {
      const reason = 'grapevine_kubernetes_errors_total{resource="configmaps",reason="connect"}'
      return (await metricOf(watching, reason)) > 0
    })
    expect([await limitOf(watching), await successful(watching)]).toEqual([400, 1])
    await cluster.startApi()
    await apply(rulesText('500/1h'))
    await until('the edit is followed', async () => (await limitOf(watching)) === 500, patienceMs)
  })

  it('let a pod start open while the API is away', async () => {
    await cluster.killApi()
    const accountFiles = join(cluster.directory, 'nobody')
    mkdirSync(accountFiles)
    for (const [name, text] of [
      ['token', 'x'],
      ['namespace', namespace],
      ['ca.crt', ''],
    ] as const)
      writeFileSync(join(accountFiles, name), text)
    const pod = await fleet.start(3, {
      accountFiles,
      lines: `rulesFrom: { configMap: ${configMap} }`,
    })
    expect((await ask(pod.addresses.telemetry, '/startupz')).status).toBe(200)
    expect(await successful(pod)).toBe(0)
  })
})
