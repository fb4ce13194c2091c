/**
 * What the sidecar of one pod is to look like: the injector's settings, and what the pod's
 * annotations say over them. The `sidecar` values of both charts have the same keys.
 */
import { type Static, Type } from 'typebox'
import { readDuration } from '../config/grammar.js'
import { GrammarText, Strict } from '../config/schema-terms.js'
import { logLevels } from '../config/sidecar-config.js'
import { parseCidr } from '../limiter/cidr.js'
import { version } from '../version.js'
import { annotations, domain, optionAnnotations } from './names.js'

const quantityPattern = '^[0-9]+(\\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i)?$'
const Quantity = Type.Union([
  Type.String({ pattern: quantityPattern, maxLength: 32 }),
  Type.Number({ exclusiveMinimum: 0 }),
])
// A DNS label short enough that `<ring>-gossip` is one too.
const ringPattern = '^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$'
const objectNamePattern = '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$'

const Resources = Strict({
  requests: Type.Optional(
    Strict({ cpu: Type.Optional(Quantity), memory: Type.Optional(Quantity) }),
  ),
  limits: Type.Optional(Strict({ cpu: Type.Optional(Quantity), memory: Type.Optional(Quantity) })),
})

export const SidecarSettingsSchema = Strict({
  image: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
  imagePullPolicy: Type.Optional(Type.Enum(['Always', 'IfNotPresent', 'Never'])),
  ring: Type.Optional(Type.String({ pattern: ringPattern })),
  mode: Type.Optional(Type.Enum(['proxy', 'decision'])),
  nativeSidecar: Type.Optional(Type.Boolean()),
  /** A YAML file may well have a number here. */
  appPort: Type.Optional(
    Type.Union([Type.String({ maxLength: 15 }), Type.Integer({ minimum: 1, maximum: 65535 })]),
  ),
  appProtocol: Type.Optional(Type.Enum(['http', 'h2c'])),
  logLevel: Type.Optional(Type.Enum(['', ...logLevels])),
  trustedProxies: Type.Optional(Type.Array(GrammarText('cidr'), { maxItems: 1000 })),
  configMap: Type.Optional(Type.String({ maxLength: 253 })),
  rulesConfigMap: Type.Optional(Type.String({ maxLength: 253 })),
  watchRules: Type.Optional(Type.Boolean()),
  keysSecret: Type.Optional(Type.String({ maxLength: 253 })),
  apiToken: Type.Optional(Type.Boolean()),
  drainWait: Type.Optional(GrammarText('duration')),
  prometheusAnnotations: Type.Optional(Type.Boolean()),
  resources: Type.Optional(Resources),
})

export type SidecarSettingsText = Static<typeof SidecarSettingsSchema>

/** Quantities, as `100m` and `128Mi`; a whole number of CPUs or bytes may be a number. */
interface Amounts {
  readonly cpu?: string | number
  readonly memory?: string | number
}

export interface SidecarSettings {
  readonly image: string
  readonly imagePullPolicy: string
  /** Which pods share limits; names the objects that the sidecar mounts. */
  readonly ring: string
  /** `proxy`: takes over the application's port. `decision`: answers questions on loopback only. */
  readonly mode: 'proxy' | 'decision'
  /** As an init container that keeps running (Kubernetes 1.29 and newer), or an ordinary one. */
  readonly nativeSidecar: boolean
  /** Name or number of the application's port; '' finds the only candidate. */
  readonly appPort: string
  readonly appProtocol: 'http' | 'h2c'
  /** '' leaves it to the sidecar's file. */
  readonly logLevel: string
  readonly trustedProxies: readonly string[]
  /** Objects to mount; '' means the ring's. */
  readonly configMap: string
  readonly rulesConfigMap: string
  /** Rules are watched through the API, which needs a right, instead of mounted. */
  readonly watchRules: boolean
  readonly keysSecret: string
  /** Whether the sidecar gets a service account token, which discovery through the API needs. */
  readonly apiToken: boolean
  /** How long preStop waits after readiness fell, for load balancers to notice. */
  readonly drainWait: string
  readonly prometheusAnnotations: boolean
  readonly resources: {
    readonly requests?: Amounts
    readonly limits?: Amounts
  }
}

/** conventions.md §5.4: no CPU limit, since a throttled sidecar delays the application. */
export const settingsDefaults: SidecarSettings = {
  image: `grapevine:${version}`,
  imagePullPolicy: 'IfNotPresent',
  ring: 'grapevine',
  mode: 'proxy',
  nativeSidecar: true,
  appPort: '',
  appProtocol: 'http',
  logLevel: '',
  trustedProxies: [],
  configMap: '',
  rulesConfigMap: '',
  watchRules: false,
  keysSecret: '',
  apiToken: true,
  drainWait: '5s',
  prometheusAnnotations: false,
  resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
}

export function withDefaults(text: SidecarSettingsText | undefined): SidecarSettings {
  const appPort = String(text?.appPort ?? settingsDefaults.appPort)
  return { ...settingsDefaults, ...text, appPort } as SidecarSettings
}

type Change = Partial<SidecarSettings> | string
type Reader = (text: string, settings: SidecarSettings) => Change

const readers: Readonly<Record<string, Reader>> = {
  [annotations.ring]: text => matching('ring', text, ringPattern),
  [annotations.mode]: text => oneOf('mode', text, ['proxy', 'decision']),
  [annotations.appPort]: text =>
    /^([a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?|[1-9][0-9]{0,4})$/.test(text)
      ? { appPort: text }
      : 'expected the name or the number of a port',
  [annotations.appProtocol]: text => oneOf('appProtocol', text, ['http', 'h2c']),
  [annotations.nativeSidecar]: text =>
    text === 'true' || text === 'false'
      ? { nativeSidecar: text === 'true' }
      : 'expected "true" or "false"',
  [annotations.logLevel]: text => oneOf('logLevel', text, logLevels),
  [annotations.trustedProxies]: readNetworks,
  [annotations.image]: text => (/^\S{1,512}$/.test(text) ? { image: text } : 'expected an image'),
  [annotations.config]: text => matching('configMap', text, objectNamePattern),
  [annotations.rules]: text => matching('rulesConfigMap', text, objectNamePattern),
  [annotations.cpuRequest]: resource('requests', 'cpu'),
  [annotations.memoryRequest]: resource('requests', 'memory'),
  [annotations.cpuLimit]: resource('limits', 'cpu'),
  [annotations.memoryLimit]: resource('limits', 'memory'),
}

export type AnnotatedSettings =
  | { readonly ok: true; readonly settings: SidecarSettings; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly error: string }

/** `base` with the options in a pod's annotations put over it. */
export function annotatedSettings(
  base: SidecarSettings,
  found: Readonly<Record<string, string>>,
): AnnotatedSettings {
  let settings = base
  for (const [name, read] of Object.entries(readers)) {
    const text = found[name]
    if (text === undefined) continue
    const change = read(text.trim(), settings)
    if (typeof change === 'string') {
      return { ok: false, error: `annotation ${name}: ${change}, got ${JSON.stringify(text)}` }
    }
    settings = { ...settings, ...change }
  }
  const unknown = Object.keys(found).filter(
    name =>
      name.startsWith(`${domain}/`) &&
      name !== annotations.status &&
      !optionAnnotations.includes(name),
  )
  return { ok: true, settings, warnings: unknown.map(name => `annotation ${name} is not known`) }
}

function matching(key: keyof SidecarSettings, text: string, pattern: string): Change {
  return new RegExp(pattern).test(text) ? { [key]: text } : 'expected the name of an object'
}

function oneOf(key: keyof SidecarSettings, text: string, words: readonly string[]): Change {
  return words.includes(text) ? { [key]: text } : `expected ${words.join(' or ')}`
}

function resource(kind: 'requests' | 'limits', name: 'cpu' | 'memory'): Reader {
  return (text, { resources }) =>
    new RegExp(quantityPattern).test(text)
      ? { resources: { ...resources, [kind]: { ...resources[kind], [name]: text } } }
      : 'expected a quantity, as 100m or 128Mi'
}

function readNetworks(text: string): Change {
  const networks = text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
  const wrong = networks.find(network => parseCidr(network) === null)
  return wrong === undefined ? { trustedProxies: networks } : 'expected networks in CIDR form'
}

/** Seconds of a duration that the settings' schema let through. */
export function durationSeconds(text: string): number {
  const read = readDuration(text)
  return read.ok ? Math.ceil(Number(read.value) / 1000) : 0
}
