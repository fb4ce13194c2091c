/**
 * Texts to configuration, pure: `load.ts` reads the files. Nothing here throws on any text; a
 * result is either usable or a list of findings with places.
 */
import {
  RulesAssembly,
  type RulesContext,
  type RulesResult,
  unknownContext,
} from './assemble-rules.js'
import { type ConfigDocument, type ConfigFile, documentsOf, inlineKeys } from './documents.js'
import { type Environment, expandVariables } from './expand.js'
import { type Finding, hasErrors, sortFindings } from './finding.js'
import { overriddenLocator, Reporter } from './locator.js'
import { normalSidecar } from './normal-sidecar.js'
import { applyOverrides, type Flags, retypeExpanded } from './overrides.js'
import type { RulesText } from './rules-schema.js'
import { checkSidecar } from './sidecar-checks.js'
import type { SidecarConfig } from './sidecar-config.js'
import type { SidecarText } from './sidecar-schema.js'
import { reportSidecarSurprises } from './sidecar-surprises.js'
import { reportUnsupported } from './unsupported.js'
import { validate } from './validate.js'

export interface SidecarOptions {
  readonly env: Environment
  /** Flags of the command line by name without dashes, see `overrides.ts`. */
  readonly flags: Flags
  /** Names the node when neither file nor environment does. */
  readonly hostname: string
}

export type SidecarResult =
  | {
      readonly ok: true
      readonly config: SidecarConfig
      /** Rules that stand in the sidecar file itself; null when none do. May have failed alone. */
      readonly inlineRules: RulesResult | null
      readonly warnings: readonly Finding[]
    }
  | { readonly ok: false; readonly findings: readonly Finding[] }

/** Rules from files that are merged in the order given. Manifests give their rules entries. */
export function parseRules(
  files: readonly ConfigFile[],
  context: RulesContext = unknownContext,
): RulesResult {
  const assembly = new RulesAssembly()
  for (const file of files) {
    const { documents, findings } = documentsOf(file)
    assembly.fail(findings)
    for (const document of documents) {
      if (document.manifest === null || document.kind === 'rules') assembly.add(document)
    }
  }
  return assembly.finish(context)
}

/** The sidecar's configuration from its file, or from the one sidecar entry of a manifest. */
export function parseSidecar(file: ConfigFile, options: SidecarOptions): SidecarResult {
  const { documents, findings } = documentsOf(file)
  const document = documents.find(({ manifest, kind }) => manifest === null || kind === 'sidecar')
  if (document !== undefined) {
    const result = parseSidecarDocument(document, options)
    if (findings.length === 0) return result
    return {
      ok: false,
      findings: sortFindings([...findings, ...(result.ok ? [] : result.findings)]),
    }
  }
  if (findings.length > 0) return { ok: false, findings: sortFindings(findings) }
  const place = { file: file.name, line: 1, column: 1, path: '' }
  const message = 'no entry of this manifest is a sidecar configuration'
  return { ok: false, findings: [{ level: 'error', code: 'no-entries', ...place, message }] }
}

export function parseSidecarDocument(
  document: ConfigDocument,
  options: SidecarOptions,
): SidecarResult {
  const expanding = new Reporter(document.locator)
  const expanded = expandVariables(document.value, options.env, expanding, inlineKeys)
  const { value, origins } = applyOverrides(retypeExpanded(expanded), options.env, options.flags)
  const report = new Reporter(overriddenLocator(document.locator, origins))
  // What a variable should have said cannot be judged, but the rest of the file can.
  report.findings.push(...expanding.findings.filter(({ path }) => !origins.has(path)))
  const unset = new Set(report.findings.map(({ path }) => path))
  const checked = new Reporter(report.locator)
  validate('sidecar', value, checked)
  reportUnsupported(value, checked)
  report.findings.push(...checked.findings.filter(({ path }) => !unset.has(path)))
  const own = report.findings.filter(finding => !isInline(finding))
  const inline = report.findings.filter(isInline)
  if (own.length > 0) return { ok: false, findings: sortFindings(report.findings) }
  return finishSidecar(value as SidecarText, report.locator, inline, options)
}

function finishSidecar(
  text: SidecarText,
  locator: Reporter['locator'],
  inline: readonly Finding[],
  options: SidecarOptions,
): SidecarResult {
  const report = new Reporter(locator)
  const config = normalSidecar(text, options.hostname)
  checkSidecar(text, config, report)
  if (hasErrors(report.findings)) {
    return { ok: false, findings: sortFindings([...report.findings, ...inline]) }
  }
  reportSidecarSurprises(config, report)
  const given = [...inlineKeys].some(key => Object.hasOwn(text, key))
  const inlineRules = given ? inlineResult(text, inline, config, locator) : null
  return { ok: true, config, inlineRules, warnings: sortFindings(report.findings) }
}

function inlineResult(
  text: SidecarText,
  findings: readonly Finding[],
  config: SidecarConfig,
  locator: Reporter['locator'],
): RulesResult {
  const assembly = new RulesAssembly()
  assembly.fail(findings)
  if (findings.length === 0) assembly.addValid(text as RulesText, new Reporter(locator))
  return assembly.finish(contextOf(config))
}

/** What rules may know of the sidecar they are for. */
export function contextOf(config: SidecarConfig): RulesContext {
  const seeds = config.discovery.static.length
  return {
    jwt: config.identity.jwt !== null,
    trustedProxies: (config.proxy?.trustedProxies.length ?? 0) > 0,
    pods: seeds > 0 ? seeds : null,
    proxy: config.proxy !== null,
  }
}

function isInline(finding: Finding): boolean {
  return inlineKeys.has(/^\w*/.exec(finding.path)![0])
}
