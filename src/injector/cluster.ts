/**
 * What the injector asks of the Kubernetes API, and the client that asks it. The client is loaded
 * when the first cluster is made: it takes most of a second and 70 MiB.
 */
import { readService, type ServicePorts } from './pod-template.js'

export interface StoredSecret {
  /** File name to content. */
  readonly data: Readonly<Record<string, string>>
  /** What `writeSecret` must be given, so that two writers do not overwrite each other. */
  readonly revision: string
}

export interface Cluster {
  /** Null: there is no such secret. */
  readSecret(): Promise<StoredSecret | null>
  /** False: somebody else wrote it since `revision` was read. */
  writeSecret(data: Readonly<Record<string, string>>, revision: string): Promise<boolean>
  /** The authorities (PEM) that the API server trusts for the webhook; one text per webhook. */
  readBundles(): Promise<readonly string[]>
  writeBundles(authorities: string): Promise<void>
  services(namespace: string): Promise<readonly ServicePorts[]>
}

export interface ClusterNames {
  readonly namespace: string
  readonly secret: string
  readonly webhook: string
}

/** Longest wait for one answer of the API, in milliseconds. */
const answerTimeoutMs = 10_000
/** Most Services that are read of a namespace. */
const servicesMax = 500

const conflict = 409
const notFound = 404

export async function connectCluster(names: ClusterNames): Promise<Cluster> {
  const k8s = await import('@kubernetes/client-node')
  const config = new k8s.KubeConfig()
  config.loadFromDefault()
  const core = config.makeApiClient(k8s.CoreV1Api)
  const admission = config.makeApiClient(k8s.AdmissionregistrationV1Api)
  const { namespace, secret: secretName, webhook } = names
  const readWebhook = () => within(admission.readMutatingWebhookConfiguration({ name: webhook }))
  return {
    async readSecret() {
      const found = await orNull(
        notFound,
        within(core.readNamespacedSecret({ name: secretName, namespace })),
      )
      if (found === null) return null
      const data = Object.entries(found.data ?? {}).map(
        ([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')] as const,
      )
      return {
        data: Object.fromEntries(data),
        revision: found.metadata?.resourceVersion ?? '',
      }
    },
    async writeSecret(data, revision) {
      const found = await within(core.readNamespacedSecret({ name: secretName, namespace }))
      if (found.metadata?.resourceVersion !== revision) return false
      const encoded = Object.entries(data).map(
        ([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')] as const,
      )
      const body = { ...found, data: { ...found.data, ...Object.fromEntries(encoded) } }
      const written = await orNull(
        conflict,
        within(core.replaceNamespacedSecret({ name: secretName, namespace, body })),
      )
      return written !== null
    },
    async readBundles() {
      const found = await readWebhook()
      return (found.webhooks ?? []).map(({ clientConfig }) =>
        Buffer.from(clientConfig.caBundle ?? '', 'base64').toString('utf8'),
      )
    },
    async writeBundles(authorities) {
      const body = await readWebhook()
      const caBundle = Buffer.from(authorities, 'utf8').toString('base64')
      for (const entry of body.webhooks ?? []) entry.clientConfig.caBundle = caBundle
      // Losing a race is as good as winning it: the next look sees whether the bundle is right.
      await orNull(
        conflict,
        within(admission.replaceMutatingWebhookConfiguration({ name: webhook, body })),
      )
    },
    async services(of) {
      const list = await within(core.listNamespacedService({ namespace: of, limit: servicesMax }))
      return list.items.flatMap(item => readService(item) ?? [])
    },
  }
}

async function orNull<T>(code: number, asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if ((error as { code?: unknown }).code === code) return null
    throw error
  }
}

function within<T>(asked: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the API gave no answer')), answerTimeoutMs)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
