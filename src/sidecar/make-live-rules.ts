/** From flags and configuration to the rules in force: which source, and who hears of a refusal. */
import type { Logger } from 'pino'
import type { LoadSidecarOptions } from '../config/load.js'
import { contextOf } from '../config/parse.js'
import type { SidecarConfig } from '../config/sidecar-config.js'
import { ClusterApi } from '../discovery/kube-api.js'
import type { Clock, Random } from '../ports.js'
import { ConfigMapSource, type ObjectReference } from './config-map-source.js'
import { LiveRules } from './live-rules.js'
import { RulesEvents } from './rules-events.js'
import { fileSource, type RulesSource } from './rules-source.js'

export interface LiveRulesParts {
  readonly config: SidecarConfig
  /** File or directory of `--rules`; null: not given. */
  readonly rulesPath: string | null
  readonly configPath: string
  /** What the sidecar file was read with. */
  readonly load: LoadSidecarOptions
}

export interface LiveRulesWorld {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

/** A flag is stronger than `rulesFrom`, and that than rules in the sidecar file itself. */
export function makeLiveRules(parts: LiveRulesParts, world: LiveRulesWorld): LiveRules {
  const { config, rulesPath, configPath, load } = parts
  const { log, clock, random } = world
  const options = { load, context: contextOf(config) }
  const api = new ClusterApi()
  if (rulesPath === null && config.rulesFrom !== null) {
    const source = new ConfigMapSource(
      { ...config.rulesFrom, failed: text => log.warn({ text }, 'rules cannot be watched') },
      { api, clock, random },
    )
    const refused = events(api, parts, world, () => source.reference())
    return new LiveRules({ ...options, source, inline: false }, { log, clock, refused })
  }
  const inline = rulesPath === null
  const source: RulesSource = fileSource(rulesPath ?? configPath)
  const pod = podReference(load.env?.POD_NAME, load.env?.POD_NAMESPACE, load.env?.POD_UID)
  // Whoever does not use the API otherwise must not be made to load its client.
  if (pod === null || config.discovery.kubernetes === null) {
    return new LiveRules({ ...options, source, inline }, { log, clock })
  }
  const refused = events(api, parts, world, async () => ({
    ...pod,
    namespace: pod.namespace ?? (await api.namespace()),
  }))
  return new LiveRules({ ...options, source, inline }, { log, clock, refused })
}

function events(
  api: ClusterApi,
  { config }: LiveRulesParts,
  { log, clock }: LiveRulesWorld,
  about: () => Promise<ObjectReference>,
): (digest: string, errors: readonly string[]) => void {
  const told = new RulesEvents(
    { about, node: config.node.name },
    { api, wallMs: () => clock.wallMs(), warn: text => log.warn(text) },
  )
  return (digest, errors) => void told.refused(digest, errors)
}

function podReference(name?: string, namespace?: string, uid?: string) {
  if (name === undefined || name === '') return null
  const own = namespace === undefined || namespace === '' ? null : namespace
  const known = uid === undefined || uid === '' ? {} : { uid }
  return { apiVersion: 'v1', kind: 'Pod', name, namespace: own, ...known } as const
}
