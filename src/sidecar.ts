/**
 * The sidecar in production: configuration and ports in, listeners and a node of the fleet out,
 * with the order in which they start and stop. What a part does is that part's business.
 *
 *   start  gossip port bound, core started -> telemetry, admin, api, proxy listen -> fleet joined
 *   stop   not ready, peers told -> proxy and api finish -> last totals, leave, checkpoint
 *          -> closed
 */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { readCounterSecret, readKeyring, readSecretText } from './config/secrets.js'
import type { ListenAddress, SidecarConfig } from './config/sidecar-config.js'
import type { Discovery } from './discovery/discovery.js'
import { preloadKubeClient } from './discovery/kube-api.js'
import type { KubernetesDiscovery } from './discovery/kubernetes.js'
import { Engine } from './engine.js'
import { GossipNode } from './gossip/gossip-node.js'
import { formatAddress } from './gossip/socket-address.js'
import { addAdmin, type ReloadOutcome } from './http/admin.js'
import { addCheckApi } from './http/check-api.js'
import { addForwardAuth } from './http/forward-auth.js'
import { JwtVerifier } from './http/jwt-verifier.js'
import { Readiness } from './http/readiness.js'
import { createServer, ListenError, listen, listenMessage } from './http/server.js'
import { addTelemetry } from './http/telemetry.js'
import { CidrSet, parseCidr } from './limiter/cidr.js'
import { DenialLog } from './metrics/denial-log.js'
import { Exporter } from './metrics/exporter.js'
import { setLogLevel } from './metrics/logger.js'
import type { Clock, Entropy, Random } from './ports.js'
import { ReverseProxy } from './proxy/proxy.js'
import { Checkpoint } from './sidecar/checkpoint.js'
import { makeDiscoveries } from './sidecar/discoveries.js'
import { GossipKeys } from './sidecar/gossip-keys.js'
import type { LiveRules } from './sidecar/live-rules.js'
import { proxyOptions } from './sidecar/proxy-seam.js'
import { publicConfig } from './sidecar/public-config.js'
import { StartError } from './sidecar/start-error.js'
import { version } from './version.js'

/** For what is left after `drainTimeout`, so that the exit comes within a second of it. */
const apiGraceMs = 200

export interface SidecarOptions {
  readonly config: SidecarConfig
  /** Loaded already, for better or worse. */
  readonly rules: LiveRules
  readonly startWallMs: number
}

export interface SidecarPorts {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly entropy: Entropy
}

/** Where the listeners are, `host:port` or `unix:PATH`. */
export interface SidecarAddresses {
  readonly gossip: string
  readonly telemetry: string
  readonly admin: string
  readonly api: string
  readonly proxy?: string
}

export class Sidecar {
  readonly addresses: SidecarAddresses
  readonly #options: SidecarOptions
  readonly #ports: SidecarPorts
  readonly #parts: Parts
  readonly #listeners: Listeners

  private constructor(
    options: SidecarOptions,
    ports: SidecarPorts,
    parts: Parts,
    listeners: Listeners,
    addresses: SidecarAddresses,
  ) {
    this.#options = options
    this.#ports = ports
    this.#parts = parts
    this.#listeners = listeners
    this.addresses = addresses
  }

  /** Rejects with a `StartError` or a `ListenError`, whose messages are for the user. */
  static async start(options: SidecarOptions, ports: SidecarPorts): Promise<Sidecar> {
    const { config, rules } = options
    if (config.discovery.kubernetes !== null) await preloadKubeClient()
    const discoveries = makeDiscoveries(config, ports)
    const node = await openNode(options, ports, discoveries.all)
    const parts = makeParts(options, ports, node, discoveries.kubernetes)
    node.start()
    await parts.checkpoint?.restore()
    const listeners = makeListeners(options, ports, parts)
    let addresses: SidecarAddresses
    try {
      addresses = await openListeners(config, listeners, node)
    } catch (error) {
      await Promise.all([
        closeListeners(listeners, 0),
        closeServers([listeners.telemetry], 0),
        node.close(),
      ])
      throw error
    }
    node.join()
    parts.checkpoint?.start()
    rules.start(next => node.perform(() => parts.engine.applyRules(next)))
    parts.keys.start(keys => node.perform(() => node.core.setKeyring(keys)))
    parts.readiness.rulesSettled()
    parts.readiness.listenersUp()
    return new Sidecar(options, ports, parts, listeners, addresses)
  }

  /** Reads rules and gossip keys again. */
  reload(): Promise<ReloadOutcome> {
    this.#parts.keys.reload()
    return this.#options.rules.reload()
  }

  /** Not ready any more, and peers know; everything is still served. */
  drain(): void {
    drain(this.#parts, this.#listeners)
  }

  /** Finishes what runs, for `drainTimeout` at most, tells the fleet, and closes everything. */
  async stop(): Promise<void> {
    const { config, rules } = this.#options
    const { node, keys, checkpoint } = this.#parts
    this.drain()
    rules.stop()
    keys.stop()
    node.flush()
    await closeListeners(this.#listeners, config.drainTimeoutMs)
    node.flush()
    await Promise.all([node.leave(), checkpoint?.stop()])
    await Promise.all([node.close(), closeServers([this.#listeners.telemetry], apiGraceMs)])
    this.#ports.log.info('stopped')
  }
}

/** What answers requests, whichever listener they come by. */
interface Parts {
  readonly node: GossipNode
  /** Null: not configured. */
  readonly kubernetes: KubernetesDiscovery | null
  readonly engine: Engine
  readonly jwt: JwtVerifier | null
  readonly trusted: CidrSet
  readonly readiness: Readiness
  readonly denials: DenialLog
  readonly keys: GossipKeys
  /** Null: not configured. */
  readonly checkpoint: Checkpoint | null
}

interface Listeners {
  readonly telemetry: FastifyInstance
  readonly admin: FastifyInstance
  readonly api: FastifyInstance
  readonly proxy: ReverseProxy | null
}

async function openNode(
  options: SidecarOptions,
  ports: SidecarPorts,
  discoveries: readonly Discovery[],
): Promise<GossipNode> {
  const { gossip, counters, node } = options.config
  const keys = readKeyring(gossip.encryptionKeys)
  if (!keys.ok) throw new StartError(`gossip.encryptionKeys: ${keys.error}`)
  const secret = counters.secret === null ? null : readCounterSecret(counters.secret)
  if (secret !== null && !secret.ok) throw new StartError(`counters.secret: ${secret.error}`)
  try {
    return await GossipNode.open(
      {
        node: node.name,
        startWallMs: options.startWallMs,
        bind: gossip.bind,
        advertise: gossip.advertise,
        label: gossip.label,
        keys: keys.value,
        allow: gossip.allow ?? [],
        counters: { keysMax: counters.keysMax, secret: secret?.value ?? null },
        rules: options.rules.rules,
        discoveries,
      },
      ports,
    )
  } catch (error) {
    const reason = error as NodeJS.ErrnoException
    if (reason.code === undefined) throw error
    throw new ListenError(listenMessage(reason, { kind: 'tcp', ...gossip.bind }, 'gossip'))
  }
}

function makeParts(
  options: SidecarOptions,
  ports: SidecarPorts,
  node: GossipNode,
  kubernetes: KubernetesDiscovery | null,
): Parts {
  const { config } = options
  const { log, clock } = ports
  const engine = new Engine({
    core: node.core,
    clock,
    wake: () => node.poke(),
    onFailure: error => log.error({ err: error }, 'the limiter failed; failureMode answers'),
  })
  const denials = new DenialLog(log)
  engine.setDenialListener(denials.denied)
  const networks = (config.proxy?.trustedProxies ?? []).map(text => {
    const network = parseCidr(text)
    if (network === null) throw new StartError(`proxy.trustedProxies: ${text} is no network`)
    return network
  })
  return {
    node,
    kubernetes,
    engine,
    denials,
    jwt: makeJwt(config, ports),
    trusted: new CidrSet(networks),
    readiness: new Readiness({ clock, synced: () => engine.synced() }),
    keys: new GossipKeys(config.gossip.encryptionKeys, log),
    checkpoint: makeCheckpoint(config, ports, node),
  }
}

function makeCheckpoint(
  { counters }: SidecarConfig,
  { log }: SidecarPorts,
  node: GossipNode,
): Checkpoint | null {
  if (counters.checkpointPath === null) return null
  return new Checkpoint(counters.checkpointPath, {
    log,
    exportTotals: () => node.perform((now, wall) => node.core.exportTotals(now, wall)),
    importTotals: bytes => node.perform((now, wall) => node.core.importTotals(bytes, now, wall)),
  })
}

function makeJwt(config: SidecarConfig, { log, clock }: SidecarPorts): JwtVerifier | null {
  const { jwt } = config.identity
  if (jwt === null) return null
  const secret = jwt.secret === null ? null : readSecretText(jwt.secret)
  if (secret !== null && !secret.ok) throw new StartError(`identity.jwt.secret: ${secret.error}`)
  const { jwks, issuer, audience } = jwt
  const options = { jwks, issuer, audience, secret: secret?.value ?? null }
  return new JwtVerifier(options, { clock, warn: message => log.warn(message) })
}

function makeListeners(options: SidecarOptions, ports: SidecarPorts, parts: Parts): Listeners {
  const { config, rules } = options
  const { log, clock, random } = ports
  const { engine, jwt, trusted, readiness, node } = parts
  const proxy =
    config.proxy === null
      ? null
      : new ReverseProxy(proxyOptions(config.proxy, config.headers, trusted), {
          engine,
          random,
          monotonicMs: () => clock.monotonicMs(),
          ...(jwt === null ? {} : { verifyToken: (token, ip) => jwt.claims(token, ip) }),
        })
  const listeners = {
    telemetry: createServer(log),
    admin: createServer(log),
    api: createServer(log),
    proxy,
  }
  const exporter = new Exporter({
    engine,
    config: () => rules.status(),
    denialsUnlogged: () => parts.denials.unlogged,
    sockets: () => node.stats().udp,
    proxy: proxy === null ? null : () => proxy.stats,
    tokens: jwt === null ? null : () => jwt.stats(),
    kubernetes: () => {
      const found = [parts.kubernetes?.stats() ?? null, rules.kubernetes()]
      return found.filter(stats => stats !== null)
    },
  })
  addTelemetry(listeners.telemetry, { exporter, readiness })
  addAdmin(listeners.admin, {
    engine,
    readiness,
    node: config.node.name,
    version,
    revealKeys: config.admin.revealKeys,
    trustedProxies: trusted,
    jwt,
    config: () => publicConfig(config),
    reload: () => {
      parts.keys.reload()
      return rules.reload()
    },
    rulesAccepted: () => rules.status().lastReloadSuccessful,
    drain: () => {
      if (!readiness.draining) log.info('draining; everything is still served')
      drain(parts, listeners)
    },
    setLogLevel: level => setLogLevel(log, level),
  })
  addCheckApi(listeners.api, { engine, trustedProxies: trusted, jwt })
  addForwardAuth(listeners.api, {
    engine,
    trustedProxies: trusted,
    jwt,
    headers: config.headers,
    random,
  })
  return listeners
}

async function openListeners(
  config: SidecarConfig,
  listeners: Listeners,
  node: GossipNode,
): Promise<SidecarAddresses> {
  const open = async (app: FastifyInstance, address: ListenAddress, name: string) =>
    addressText(await listen(app, address, name))
  const addresses = {
    gossip: formatAddress(node.address),
    telemetry: await open(listeners.telemetry, config.telemetry.listen, 'telemetry'),
    admin: await open(listeners.admin, config.admin.listen, 'admin'),
    api: await open(listeners.api, config.api.listen, 'api'),
  }
  if (listeners.proxy === null || config.proxy === null) return addresses
  try {
    return { ...addresses, proxy: formatAddress(await listeners.proxy.listen()) }
  } catch (error) {
    const reason = error as NodeJS.ErrnoException
    throw new ListenError(listenMessage(reason, { kind: 'tcp', ...config.proxy.listen }, 'proxy'))
  }
}

function addressText(address: ListenAddress): string {
  return address.kind === 'unix' ? `unix:${address.path}` : formatAddress(address)
}

function drain({ readiness, engine }: Parts, { proxy }: Listeners): void {
  if (readiness.draining) return
  readiness.startDraining()
  engine.setDraining()
  proxy?.drain()
}

/** All but telemetry, which answers probes to the end. */
async function closeListeners(listeners: Listeners, graceMs: number): Promise<void> {
  await Promise.all([
    listeners.proxy?.close(graceMs),
    closeServers([listeners.api, listeners.admin], graceMs),
  ])
}

/** Lets answers under way finish for up to `graceMs`, then cuts connections. */
async function closeServers(apps: readonly FastifyInstance[], graceMs: number): Promise<void> {
  const cut = setTimeout(() => {
    for (const app of apps) app.server.closeAllConnections()
  }, graceMs)
  await Promise.all(apps.map(app => app.close()))
  clearTimeout(cut)
}
