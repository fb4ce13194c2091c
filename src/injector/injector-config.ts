/** The injector's file (`grapevine injector --config`); `grapevine inject` reads a part of it. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Static, Type } from 'typebox'
import type { Finding } from '../config/finding.js'
import { readDuration, readListen } from '../config/grammar.js'
import { documentLocator, Reporter } from '../config/locator.js'
import { type GrammarName, GrammarText, grammars, Strict } from '../config/schema-terms.js'
import { type ListenAddress, type LogLevel, logLevels } from '../config/sidecar-config.js'
import { parseYaml } from '../config/yaml-text.js'
import { type SidecarSettings, SidecarSettingsSchema, withDefaults } from './sidecar-settings.js'

const ObjectName = Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$' })

/** `files`: somebody else (cert-manager) writes them. `self-managed`: the injector does it all. */
const Certificate = Type.Union([
  Strict({ source: Type.Literal('files'), directory: Type.String({ minLength: 1 }) }),
  Strict({
    source: Type.Literal('self-managed'),
    namespace: ObjectName,
    secret: ObjectName,
    service: ObjectName,
    webhook: ObjectName,
    /** Names beside the Service's, for a webhook that is called by URL. */
    names: Type.Optional(Type.Array(ObjectName, { maxItems: 16 })),
    lifetime: Type.Optional(GrammarText('duration')),
  }),
])

export const InjectorFile = Strict({
  version: Type.Literal(1),
  listen: Type.Optional(GrammarText('listen')),
  telemetry: Type.Optional(GrammarText('listen')),
  log: Type.Optional(Strict({ level: Type.Optional(Type.Enum([...logLevels])) })),
  /** Whether Services are read through the API, to report those that bypass the sidecar. */
  reportServices: Type.Optional(Type.Boolean()),
  certificate: Type.Optional(Certificate),
  sidecar: Type.Optional(SidecarSettingsSchema),
})

export type CertificateSource =
  | { readonly source: 'files'; readonly directory: string }
  | {
      readonly source: 'self-managed'
      readonly namespace: string
      readonly secret: string
      readonly service: string
      readonly webhook: string
      readonly names: readonly string[]
      readonly lifetimeMs: number
    }

export interface InjectorConfig {
  readonly listen: ListenAddress
  readonly telemetry: ListenAddress
  readonly logLevel: LogLevel
  readonly reportServices: boolean
  /** Null where the file has none: enough for `grapevine inject`. */
  readonly certificate: CertificateSource | null
  readonly sidecar: SidecarSettings
}

export type InjectorConfigResult =
  | { readonly ok: true; readonly config: InjectorConfig }
  | { readonly ok: false; readonly findings: readonly Finding[] }

export const injectorDefaults = {
  listen: '0.0.0.0:8443',
  telemetry: '0.0.0.0:7990',
  logLevel: 'info',
  /** Renewed after 60 days. */
  lifetime: '90d',
} as const

export function parseInjectorConfig(text: string, file: string): InjectorConfigResult {
  const { documents, findings } = parseYaml(text, file)
  const [document] = documents
  if (findings.length > 0 || document === undefined) {
    const empty = { level: 'error', code: 'empty', file, line: 1, column: 1, path: '' } as const
    return {
      ok: false,
      findings: findings.length > 0 ? findings : [{ ...empty, message: 'is empty' }],
    }
  }
  const report = new Reporter(documentLocator(file, document))
  if (!validate(document.value, report)) return { ok: false, findings: report.findings }
  return { ok: true, config: normal(document.value as Static<typeof InjectorFile>) }
}

function validate(value: unknown, report: Reporter): boolean {
  const ajv = new Ajv2020({ allErrors: true, strictTypes: false })
  ajv.addKeyword('x-expected')
  ajv.addKeyword({
    keyword: 'x-grammar',
    type: 'string',
    validate: (name: GrammarName, text: string) => grammars[name].read(text).ok,
  })
  const check = ajv.compile(InjectorFile)
  if (check(value)) return true
  for (const error of check.errors ?? []) {
    const path = error.instancePath
      .split('/')
      .slice(1)
      .map(step => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/')))
    const { additionalProperty } = error.params as { additionalProperty?: string }
    if (additionalProperty !== undefined) {
      report.errorAtKey([...path, additionalProperty], 'unknown-key', 'is not known here')
    } else {
      report.error(path, 'invalid', error.message ?? 'is not valid')
    }
  }
  return false
}

function normal(text: Static<typeof InjectorFile>): InjectorConfig {
  return {
    listen: listenOf(text.listen ?? injectorDefaults.listen),
    telemetry: listenOf(text.telemetry ?? injectorDefaults.telemetry),
    logLevel: text.log?.level ?? injectorDefaults.logLevel,
    reportServices: text.reportServices ?? false,
    certificate: certificateOf(text.certificate),
    sidecar: withDefaults(text.sidecar),
  }
}

function certificateOf(text: Static<typeof Certificate> | undefined): CertificateSource | null {
  if (text === undefined) return null
  if (text.source === 'files') return text
  const { lifetime, ...names } = text
  const read = readDuration(lifetime ?? injectorDefaults.lifetime)
  if (!read.ok) throw new Error(`broken invariant: the schema let a duration through: ${lifetime}`)
  return { ...names, names: names.names ?? [], lifetimeMs: read.value }
}

function listenOf(text: string): ListenAddress {
  const read = readListen(text)
  if (!read.ok) throw new Error(`broken invariant: the schema let an address through: ${text}`)
  return read.value
}
