/**
 * The engine of `grapevine check`: every finding in files, directories and manifests. Files that
 * are checked together are judged together: rules against the identity of the sidecar beside them.
 */
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { RulesAssembly, type RulesContext, unknownContext } from './assemble-rules.js'
import { type ConfigDocument, documentsOf } from './documents.js'
import type { Environment } from './expand.js'
import { type Finding, hasErrors, sortFindings } from './finding.js'
import { unreadable } from './load.js'
import { contextOf, parseSidecarDocument } from './parse.js'
import { readSnapshot } from './snapshot.js'

export interface CheckResult {
  /** No errors; warnings do not count. */
  readonly ok: boolean
  /** In order of file and place. */
  readonly findings: readonly Finding[]
}

export interface CheckOptions {
  /** What `${VAR}` and `GRAPEVINE_…` are taken from. */
  readonly env?: Environment
}

/** Documents by what they would be merged with when mounted: their directory, or a manifest. */
type Groups = Map<string, ConfigDocument[]>

export async function checkFiles(
  paths: readonly string[],
  options: CheckOptions = {},
): Promise<CheckResult> {
  const findings: Finding[] = []
  const sidecars: ConfigDocument[] = []
  const groups: Groups = new Map()
  for (const path of paths) {
    const snapshot = await readSnapshot(path)
    if (snapshot.error !== null) findings.push(unreadable(path, snapshot.error))
    for (const file of snapshot.files) {
      const read = documentsOf(file)
      findings.push(...read.findings)
      for (const document of read.documents) {
        if (document.kind === 'sidecar') sidecars.push(document)
        else addTo(groups, document.manifest ?? dirname(file.name), document)
      }
    }
  }
  const context = checkSidecars(sidecars, options.env ?? {}, findings)
  for (const documents of groups.values()) {
    const assembly = new RulesAssembly()
    for (const document of documents) assembly.add(document)
    const result = assembly.finish(context)
    findings.push(...(result.ok ? result.warnings : result.findings))
  }
  return { ok: !hasErrors(findings), findings: sortFindings(findings) }
}

function addTo(groups: Groups, name: string, document: ConfigDocument): void {
  const group = groups.get(name)
  if (group === undefined) groups.set(name, [document])
  else group.push(document)
}

/** Reports on the sidecar files and returns what the first valid one says to rules. */
function checkSidecars(
  sidecars: readonly ConfigDocument[],
  env: Environment,
  findings: Finding[],
): RulesContext {
  let context: RulesContext | null = null
  for (const document of sidecars) {
    const result = parseSidecarDocument(document, { env, flags: {}, hostname: hostname() })
    if (!result.ok) {
      findings.push(...result.findings)
      continue
    }
    findings.push(...result.warnings)
    const inline = result.inlineRules
    if (inline !== null) findings.push(...(inline.ok ? inline.warnings : inline.findings))
    context ??= contextOf(result.config)
  }
  return context ?? unknownContext
}
