/**
 * The injector as a process: a certificate, kept fresh; the webhook, served with it; telemetry.
 * Telemetry listens first, so that a missing certificate shows as not ready instead of as silence.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { formatAddress } from '../gossip/socket-address.js'
import { createServer, ListenError, listen } from '../http/server.js'
import { addTelemetry } from '../http/telemetry.js'
import type { Clock, Entropy } from '../ports.js'
import { certificateFacts } from './certificate.js'
import { reconcile, type ServingPair } from './certificate-keeper.js'
import type { Cluster } from './cluster.js'
import type { CertificateSource, InjectorConfig } from './injector-config.js'
import { InjectorCounts, injectorRegistry } from './injector-metrics.js'
import { ServiceCache } from './service-cache.js'
import { createWebhook, type Webhook } from './webhook-server.js'

export interface InjectorPorts {
  readonly log: Logger
  readonly clock: Clock
  readonly entropy: Entropy
  /** Null: neither the certificate nor Services need the API. */
  readonly cluster: Cluster | null
}

/** How often the certificate is looked at, and how soon again after a failure, in milliseconds. */
const lookMs = 20_000
const retryMs = 3_000

export class Injector {
  readonly counts = new InjectorCounts()
  readonly #config: InjectorConfig
  readonly #source: CertificateSource
  readonly #ports: InjectorPorts
  readonly #telemetry: FastifyInstance
  #webhook: Webhook | null = null
  #webhookAddress: string | null = null
  #telemetryAddress = ''
  #pair: ServingPair | null = null
  #timer: NodeJS.Timeout | null = null
  #looking: Promise<void> | null = null
  #started = false
  #stopped = false

  private constructor(config: InjectorConfig, source: CertificateSource, ports: InjectorPorts) {
    this.#config = config
    this.#source = source
    this.#ports = ports
    this.#telemetry = createServer(ports.log)
  }

  /** Resolves when telemetry is up and the certificate was looked for once. */
  static async start(
    config: InjectorConfig,
    source: CertificateSource,
    ports: InjectorPorts,
  ): Promise<Injector> {
    const injector = new Injector(config, source, ports)
    try {
      await injector.#openTelemetry()
      await injector.look()
    } catch (error) {
      await injector.stop()
      throw error
    }
    injector.#started = true
    return injector
  }

  /** `host:port` of both listeners; the webhook's is null until there is a certificate. */
  get addresses(): { readonly webhook: string | null; readonly telemetry: string } {
    return { webhook: this.#webhookAddress, telemetry: this.#telemetryAddress }
  }

  /** Looks at the certificate now. Also runs by itself, every `lookMs`. */
  async look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    await this.#looking
  }

  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#looking?.catch(() => {})
    await Promise.all([this.#webhook?.app.close(), this.#telemetry.close()])
  }

  async #openTelemetry(): Promise<void> {
    const registry = injectorRegistry(this.counts)
    const notYet = () =>
      this.#stopped ? 'stopping' : this.#webhook === null ? 'no certificate yet' : null
    addTelemetry(this.#telemetry, {
      exporter: { contentType: registry.contentType, scrape: () => registry.metrics() },
      readiness: { startup: () => null, ready: notYet },
    })
    this.#telemetryAddress = formatAddressOf(
      await listen(this.#telemetry, this.#config.telemetry, 'telemetry'),
    )
  }

  async #look(): Promise<void> {
    const { log } = this.#ports
    let nextMs = lookMs
    try {
      await this.#take(await this.#read())
    } catch (error) {
      // A port that is taken at the start is the user's to know; later it may become free.
      if (error instanceof ListenError && !this.#started) throw error
      this.counts.certificateFailures++
      log.warn({ reason: String(error) }, 'the certificate could not be looked after')
      nextMs = retryMs
    }
    if (this.#stopped) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.look(), nextMs)
  }

  async #read(): Promise<ServingPair> {
    const source = this.#source
    const { cluster, clock, entropy } = this.#ports
    if (source.source === 'files') return await readPair(source.directory)
    if (cluster === null) throw new Error('broken invariant: self-managed needs a cluster')
    return await reconcile(
      { dnsNames: serviceNames(source), lifetimeMs: source.lifetimeMs },
      { cluster, wallMs: () => clock.wallMs(), entropy },
    )
  }

  async #take(pair: ServingPair): Promise<void> {
    if (pair.cert === this.#pair?.cert && pair.key === this.#pair.key) return
    if (this.#webhook === null) await this.#openWebhook(pair)
    else this.#webhook.use(pair)
    this.#pair = pair
    this.counts.certificateReloads++
    this.counts.certificateNotAfterMs = pair.notAfterMs
    this.#ports.log.info({ until: new Date(pair.notAfterMs) }, 'certificate taken into use')
  }

  async #openWebhook(pair: ServingPair): Promise<void> {
    const { log, clock, cluster } = this.#ports
    const cache = new ServiceCache({
      read: async namespace =>
        this.#config.reportServices && cluster !== null ? await cluster.services(namespace) : [],
      monotonicMs: () => clock.monotonicMs(),
      failed: error => {
        this.counts.serviceLookupFailures++
        log.debug({ reason: String(error) }, 'Services could not be read')
      },
    })
    const webhook = createWebhook(
      pair,
      { settings: this.#config.sidecar },
      { log, counts: this.counts, services: namespace => cache.services(namespace) },
    )
    const address = await listen(webhook.app, this.#config.listen, 'webhook')
    this.#webhook = webhook
    this.#webhookAddress = formatAddressOf(address)
    log.info({ webhook: this.#webhookAddress }, 'listening')
  }
}

/** As cert-manager and `kubernetes.io/tls` Secrets name them. */
async function readPair(directory: string): Promise<ServingPair> {
  const [cert, key] = await Promise.all([
    readFile(join(directory, 'tls.crt'), 'utf8'),
    readFile(join(directory, 'tls.key'), 'utf8'),
  ])
  const facts = certificateFacts(cert)
  if (facts === null) throw new Error(`${join(directory, 'tls.crt')} holds no certificate`)
  return { cert, key, notAfterMs: facts.notAfterMs }
}

/** What the API server calls a Service by, and its other names. */
function serviceNames({ service, namespace, names }: SelfManaged): string[] {
  const name = `${service}.${namespace}.svc`
  return [name, `${service}.${namespace}`, service, `${name}.cluster.local`, ...names]
}

type SelfManaged = Extract<CertificateSource, { source: 'self-managed' }>

function formatAddressOf(address: Awaited<ReturnType<typeof listen>>): string {
  return address.kind === 'unix' ? `unix:${address.path}` : formatAddress(address)
}
