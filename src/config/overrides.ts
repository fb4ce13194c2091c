/**
 * Flags and environment variables that replace values of the sidecar file: flags win over the
 * environment, the environment over the file. The table is printed in docs/config.md.
 */
import type { Environment } from './expand.js'
import { formatPath } from './finding.js'

/** How the text of an override becomes a value: as it is, or a comma-separated list, … */
type OverrideKind = 'text' | 'list' | 'number' | 'boolean'

export interface Override {
  readonly path: readonly [string, string?]
  /** Without the leading dashes. */
  readonly flag: string
  readonly env: string
  readonly kind: OverrideKind
}

function override(
  path: readonly [string, string?],
  name: string,
  kind: OverrideKind = 'text',
): Override {
  const env = `GRAPEVINE_${name.toUpperCase().replaceAll('-', '_')}`
  return { path, flag: name, env, kind }
}

export const overrides: readonly Override[] = [
  override(['node', 'name'], 'node'),
  override(['proxy', 'listen'], 'proxy-listen'),
  override(['proxy', 'upstream'], 'proxy-upstream'),
  override(['proxy', 'trustedProxies'], 'proxy-trusted-proxies', 'list'),
  override(['api', 'listen'], 'api-listen'),
  override(['telemetry', 'listen'], 'telemetry-listen'),
  override(['admin', 'listen'], 'admin-listen'),
  override(['admin', 'revealKeys'], 'admin-reveal-keys', 'boolean'),
  override(['gossip', 'bind'], 'gossip-bind'),
  override(['gossip', 'advertise'], 'gossip-advertise'),
  override(['gossip', 'label'], 'gossip-label'),
  override(['gossip', 'encryptionKeys'], 'gossip-encryption-keys', 'list'),
  override(['gossip', 'allow'], 'gossip-allow', 'list'),
  override(['counters', 'keys'], 'counters-keys', 'number'),
  override(['counters', 'secret'], 'counters-secret'),
  override(['counters', 'checkpoint'], 'counters-checkpoint'),
  override(['discovery', 'static'], 'discovery-static', 'list'),
  override(['discovery', 'dns'], 'discovery-dns'),
  override(['rulesFrom', 'configMap'], 'rules-from'),
  override(['headers', 'ietf'], 'headers-ietf'),
  override(['headers', 'legacy'], 'headers-legacy'),
  override(['headers', 'reset'], 'headers-reset'),
  override(['onStartupError'], 'on-startup-error'),
  override(['drainTimeout'], 'drain-timeout'),
  override(['log', 'level'], 'log-level'),
]

/** Flag values by flag name, without dashes; `config` and `rules` are the command line's own. */
export type Flags = Readonly<Record<string, string | undefined>>

export interface Overridden {
  readonly value: unknown
  /** What set each replaced value, by its path. */
  readonly origins: ReadonlyMap<string, string>
}

/**
 * `value`, a map, with what `env` and `flags` say put over it. Anything else is returned as it is.
 */
export function applyOverrides(value: unknown, env: Environment, flags: Flags): Overridden {
  const origins = new Map<string, string>()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { value, origins }
  const root: Record<string, unknown> = { ...value }
  for (const entry of overrides) {
    const fromFlag = flags[entry.flag]
    const text = fromFlag ?? env[entry.env]
    // An empty variable is how a manifest says "not set".
    if (text === undefined || (text === '' && fromFlag === undefined)) continue
    const [section, key] = entry.path
    const replaced = readOverride(text, entry.kind)
    if (key === undefined) root[section] = replaced
    else root[section] = { ...asMap(root[section]), [key]: replaced }
    const origin = fromFlag === undefined ? entry.env : `--${entry.flag}`
    origins.set(formatPath(entry.path.filter(step => step !== undefined)), origin)
  }
  return { value: root, origins }
}

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** Texts that do not fit their kind are kept, for validation to report. */
function readOverride(text: string, kind: OverrideKind): unknown {
  switch (kind) {
    case 'list':
      return text
        .split(',')
        .map(part => part.trim())
        .filter(part => part !== '')
    case 'number':
      return /^\d+$/.test(text) ? Number(text) : text
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'text':
      return text
  }
}

/** Values whose text form, as `${VAR}` leaves it, stands for a number or a truth value. */
export function retypeExpanded(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const root: Record<string, unknown> = { ...value }
  for (const { path, kind } of overrides) {
    const [section, key] = path
    if (key === undefined || (kind !== 'number' && kind !== 'boolean')) continue
    const map = root[section]
    if (typeof map !== 'object' || map === null || Array.isArray(map)) continue
    const text = (map as Record<string, unknown>)[key]
    if (typeof text === 'string') root[section] = { ...map, [key]: readOverride(text, kind) }
  }
  return root
}
