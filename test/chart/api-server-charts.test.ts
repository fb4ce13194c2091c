/**
 * The chart installed into a real API server, and the injector that it sets up called by it. The API
 * server runs no pods: the injector is started as its Deployment says, with its account's token.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { parse } from 'yaml'
import { annotations, containerName, labels } from '../../src/injector/names.js'
import { ensureBuilt, program } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'
import { TestCluster, whyNoCluster } from './cluster.js'
import { root } from './helm.js'
import { aliveAt, metricOf, namespace, PodFleet } from './pods.js'
import { SimpleProcess } from './simple-process.js'

const peers = inject('peers')
const reason = peers.helm === null ? 'helm is not to be had' : whyNoCluster(peers)

const release = 'grapevine'
const injectorName = 'grapevine-injector'
const webhookUrl = 'https://localhost:8443/mutate'

interface PodObject {
  readonly metadata: {
    readonly name: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly spec: {
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicy?: string }[]
    readonly containers: readonly { readonly name: string; readonly ports?: unknown }[]
    readonly [key: string]: unknown
  }
}

/** The pod that a Deployment's template of an application makes, fit for the restricted level. */
function applicationPod(name: string, more: Readonly<Record<string, string>>): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'shop', ...more } },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'shop',
          image: 'shop:1',
          ports: [{ name: 'http', containerPort: 3000 }],
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  }
}

describe.skipIf(reason !== null)(`the chart in a cluster${reason ? ` (${reason})` : ''}`, () => {
  let cluster: TestCluster
  let fleet: PodFleet
  let injector: SimpleProcess

  beforeAll(async () => {
    ensureBuilt()
    cluster = await TestCluster.start(peers)
    await cluster.makeNamespace(namespace, {
      [labels.injection]: 'enabled',
      'pod-security.kubernetes.io/enforce': 'restricted',
    })
    fleet = await PodFleet.create(cluster)
  })

  afterAll(async () => {
    await injector?.stop()
    await fleet?.stop()
    await cluster?.stop()
  })

  const helm = (...words: string[]) => cluster.inside(peers.helm!, [...words, '-n', namespace])

  async function get<T>(...words: string[]): Promise<T> {
    const text = await cluster.kubectl(['get', ...words, '-n', namespace, '-o', 'json'])
    return JSON.parse(text) as T
  }

  async function create(pod: object): Promise<PodObject> {
    const made = await cluster.kubectl(['create', '-f', '-', '-o', 'json'], JSON.stringify(pod))
    return JSON.parse(made) as PodObject
  }

  const settings = [
    ...['--set', `injector.webhook.url=${webhookUrl}`],
    ...['--set', 'injector.certificates.extraNames={localhost}'],
  ]

  it('is installed, every object accepted', async () => {
    const out = await helm('install', release, join(root, 'helm/grapevine'), ...settings)
    expect(out).toContain('STATUS: deployed')
    const { items } = await get<{ items: { kind: string; metadata: { name: string } }[] }>(
      'deployments,services,configmaps,secrets,roles,rolebindings,poddisruptionbudgets',
    )
    const names = items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names).toEqual(
      expect.arrayContaining([
        'Deployment grapevine-injector',
        'Service grapevine-gossip',
        'ConfigMap grapevine-config',
        'ConfigMap grapevine-rules',
        'Secret grapevine-keys',
        'PodDisruptionBudget grapevine-injector',
      ]),
    )
  })

  it('keeps the gossip key over an upgrade', async () => {
    const key = async () =>
      (await get<{ data: Record<string, string> }>('secret', 'grapevine-keys')).data
    const before = await key()
    expect(Buffer.from(before.gossip ?? '', 'base64').toString().length).toBeGreaterThan(40)
    const rules = { version: 1, rules: [{ name: 'api', key: ['global'], limit: '7/1s' }] }
    const out = await helm(
      ...['upgrade', release, join(root, 'helm/grapevine'), ...settings],
      ...['--set-json', `rules.content=${JSON.stringify(rules)}`],
    )
    expect(out).toContain('STATUS: deployed')
    expect(await key()).toEqual(before)
    const { data } = await get<{ data: Record<string, string> }>('configmap', 'grapevine-rules')
    expect(parse(data['rules.yaml'] ?? '')).toEqual(rules)
  })

  it('gives sidecars the right to find each other, and no other', async () => {
    const accountFiles = await cluster.serviceAccountFiles(namespace, 'default')
    const pods = await Promise.all([1, 2].map(index => fleet.start(index, { accountFiles })))
    await fleet.publish({ ready: pods })
    await until('they see each other', async () =>
      (await Promise.all(pods.map(aliveAt))).every(view => view.length === 2),
    )
    for (const pod of pods)
      expect(
        await metricOf(
          pod,
          'grapevine_kubernetes_errors_total{resource="endpointslices",reason="forbidden"}',
        ),
      ).toBe(0)
    const as = `--as=system:serviceaccount:${namespace}:default`
    for (const what of ['secrets', 'pods', 'configmaps']) {
      const answer = await cluster
        .kubectl(['auth', 'can-i', 'list', what, '-n', namespace, as])
        .catch((error: { stdout?: string }) => error.stdout ?? '')
      expect([what, answer.trim()]).toEqual([what, 'no'])
    }
  })

  it('runs an injector that makes its certificate and publishes the authority', async () => {
    const { data } = await get<{ data: Record<string, string> }>('configmap', injectorName)
    const file = join(cluster.directory, 'injector.yaml')
    writeFileSync(file, data['injector.yaml'] ?? '')
    const accountFiles = await cluster.serviceAccountFiles(namespace, injectorName)
    const command = [process.execPath, program, 'injector', '--config', file]
    injector = new SimpleProcess('ip', cluster.podCommand(accountFiles, command), {
      env: cluster.podEnvironment,
    })
    await until(
      'the authority is in the webhook',
      async () => {
        const found = await get<{ webhooks: { clientConfig: { caBundle?: string } }[] }>(
          'mutatingwebhookconfiguration',
          injectorName,
        )
        return found.webhooks.every(({ clientConfig }) => clientConfig.caBundle !== undefined)
      },
      30_000,
      500,
    )
    const { items } = await get<{ items: { data?: Record<string, string> }[] }>('secrets')
    const certificates = items
      .map(({ data }) => data?.['tls.crt'] ?? '')
      .filter(text => text !== '')
    expect(certificates).toHaveLength(1)
    expect(Buffer.from(certificates[0]!, 'base64').toString()).toContain('BEGIN CERTIFICATE')
  })

  it('patches a labelled pod, which the restricted level accepts', async () => {
    // The level is enforced: the same pod without its promises is refused.
    const lax = applicationPod('lax', {}) as { spec: { containers: object[] } }
    lax.spec.containers = [{ name: 'shop', image: 'shop:1' }]
    await expect(create(lax)).rejects.toThrow(/violates PodSecurity "restricted/)
    // The API server reads webhooks from a cache: the first pod may come before its bundle.
    let tries = 0
    const pod = await until(
      'a pod comes back patched',
      async () => {
        tries += 1
        const made = await create(applicationPod(`labelled-${tries}`, { [labels.inject]: 'true' }))
        return made.spec.initContainers !== undefined && made
      },
      60_000,
      500,
    )
    expect(pod.spec.initContainers).toEqual([
      expect.objectContaining({ name: containerName, restartPolicy: 'Always' }),
    ])
    expect(pod.spec.containers.map(({ name }) => name)).toEqual(['shop'])
    expect(pod.metadata.annotations).toHaveProperty([annotations.status])
    expect(pod.metadata.labels).toMatchObject({ app: 'shop', [labels.ring]: 'grapevine' })

    // A second pass, as after another injector: what has the sidecar already comes back as it went in.
    const again = { ...pod, metadata: { ...pod.metadata, name: 'second-pass' } }
    for (const key of ['uid', 'resourceVersion', 'creationTimestamp', 'managedFields'])
      delete (again.metadata as Record<string, unknown>)[key]
    expect((await create(again)).spec).toEqual(pod.spec)
  })

  it('leaves pods without the label alone', async () => {
    for (const [name, more] of [
      ['plain', {}],
      ['refused', { [labels.inject]: 'false' }],
    ] as const) {
      const { spec, metadata } = await create(applicationPod(name, more))
      expect(spec.initContainers).toBeUndefined()
      expect(spec.containers[0]?.ports).toMatchObject([{ name: 'http', containerPort: 3000 }])
      expect(metadata.annotations).toBeUndefined()
    }
  })

  it('does not hold pods back while the injector is down', async () => {
    expect(await injector.stop()).toBe(0)
    const startedMs = performance.now()
    const { spec } = await create(applicationPod('while-down', { [labels.inject]: 'true' }))
    expect(spec.initContainers).toBeUndefined()
    expect(performance.now() - startedMs).toBeLessThan(8_000)
  })

  it('is uninstalled, the keys kept and nothing else', async () => {
    await helm('uninstall', release)
    const { items } = await get<{ items: { kind: string; metadata: { name: string } }[] }>(
      'deployments,services,configmaps,secrets,roles,rolebindings,mutatingwebhookconfigurations',
      '-l',
      `app.kubernetes.io/instance=${release}`,
    )
    expect(items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'Secret grapevine-keys',
    ])
  })
})
