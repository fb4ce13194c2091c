/**
 * The configuration documents of a file: the file itself, or the entries of the ConfigMap manifests
 * in it. Pure. Places inside an entry are places in the manifest.
 */
import { type Fields, isMap, textOf } from '../lib/untrusted.js'
import type { ConfigPath, Finding } from './finding.js'
import { documentLocator, type Located, type Locator, placeWithin } from './locator.js'
import { RulesFile } from './rules-schema.js'
import { SidecarFile } from './sidecar-schema.js'
import type { ConfigKind } from './validate.js'
import { parseYaml, type ScalarText, type YamlDocument } from './yaml-text.js'

/** A file by the name it is shown under, and its text. */
export interface ConfigFile {
  readonly name: string
  readonly text: string
}

export interface ConfigDocument {
  /** The file, and the entry of a manifest. */
  readonly name: string
  readonly kind: ConfigKind
  readonly value: unknown
  readonly locator: Locator
  /** The manifest that the document is an entry of; null for a file of its own. */
  readonly manifest: string | null
}

export interface Documents {
  readonly documents: readonly ConfigDocument[]
  /** Errors that keep documents from being read at all. */
  readonly findings: readonly Finding[]
}

const rulesOnly = new Set(Object.keys(RulesFile.properties).filter(key => key !== 'version'))
const sidecarOnly = new Set(
  Object.keys(SidecarFile.properties).filter(key => key !== 'version' && !rulesOnly.has(key)),
)

/** Keys of the rules file, without `version`: in a sidecar file these are the inline rules. */
export const inlineKeys: ReadonlySet<string> = rulesOnly

/** A rules file has some key of rules and none of the sidecar's. */
export function kindOf(value: unknown): ConfigKind {
  const keys = isMap(value) ? Object.keys(value) : []
  if (keys.some(key => sidecarOnly.has(key))) return 'sidecar'
  return keys.some(key => rulesOnly.has(key)) ? 'rules' : 'sidecar'
}

/** Every configuration document in `file`; at least one finding when there is none. */
export function documentsOf(file: ConfigFile): Documents {
  const { documents, findings } = parseYaml(file.text, file.name)
  if (findings.some(isFatal)) return { documents: [], findings }
  const filled = documents.filter(document => document.value !== null)
  if (filled.some(document => isManifest(document.value))) {
    return manifestDocuments(file, filled, findings)
  }
  const [first, second] = filled
  if (first === undefined) {
    return failed(file.name, 'empty', 'is empty, expected at least "version: 1"')
  }
  if (second !== undefined) {
    const message = 'a second document; a configuration file is one document'
    return failed(file.name, 'documents', message, second.valueAt([]))
  }
  const locator = documentLocator(file.name, first)
  const kind = kindOf(first.value)
  const name = file.name
  return { documents: [{ name, kind, value: first.value, locator, manifest: null }], findings }
}

/** A key that stands twice leaves the rest of its document readable. */
function isFatal(finding: Finding): boolean {
  return finding.code !== 'duplicate-key'
}

function failed(
  file: string,
  code: string,
  message: string,
  place = { line: 1, column: 1 },
): Documents {
  return {
    documents: [],
    findings: [{ level: 'error', code, file, ...place, path: '', message }],
  }
}

function isManifest(value: unknown): boolean {
  return isMap(value) && typeof value.kind === 'string' && typeof value.apiVersion === 'string'
}

function manifestDocuments(
  file: ConfigFile,
  documents: readonly YamlDocument[],
  outer: readonly Finding[],
): Documents {
  const found: ConfigDocument[] = []
  const findings: Finding[] = [...outer]
  for (const document of documents) {
    for (const [path, manifest] of configMaps(document.value, [])) {
      const name = isMap(manifest.metadata) ? textOf(manifest.metadata.name) : ''
      const entries = isMap(manifest.data) ? Object.entries(manifest.data) : []
      for (const [entry, text] of entries) {
        if (!/\.ya?ml$/.test(entry) || typeof text !== 'string') continue
        const scalar = document.scalarAt([...path, 'data', entry])
        if (scalar === null) continue
        const inner = entryDocument(file.name, name, entry, text, scalar)
        found.push(...inner.documents)
        findings.push(...inner.findings)
      }
    }
  }
  if (found.length > 0 || findings.length > 0) return { documents: found, findings }
  const message = 'no ConfigMap in this file has an entry *.yaml with a configuration of ours'
  return failed(file.name, 'no-entries', message)
}

/** ConfigMaps in a manifest, lists opened. */
function configMaps(value: unknown, path: ConfigPath): (readonly [ConfigPath, Fields])[] {
  if (!isMap(value)) return []
  if (value.kind === 'ConfigMap') return [[path, value]]
  if (!Array.isArray(value.items)) return []
  return value.items.flatMap((item, index) => configMaps(item, [...path, 'items', index]))
}

/** The document in one entry; none when the entry is somebody else's YAML. */
function entryDocument(
  file: string,
  configMap: string,
  entry: string,
  text: string,
  scalar: ScalarText,
): Documents {
  const name = `${file} (${entry})`
  const { documents, findings } = parseYaml(text, name)
  const outside = (at: Located): Located => ({ file: name, ...placeWithin(scalar, at) })
  const moved = findings.map(found => ({ ...found, ...outside(found) }))
  if (findings.some(isFatal)) return { documents: [], findings: moved }
  const [first, ...rest] = documents.filter(document => document.value !== null)
  if (first === undefined || rest.length > 0 || !isOurs(first.value)) {
    return { documents: [], findings: [] }
  }
  // Broken YAML is reported whoever it belongs to; the rest only of entries that are ours.
  const inner = documentLocator(name, first)
  const locator: Locator = {
    valueAt: path => outside(inner.valueAt(path)),
    keyAt: path => outside(inner.keyAt(path)),
  }
  const manifest = `${file} ${configMap}`
  return {
    documents: [{ name, kind: kindOf(first.value), value: first.value, locator, manifest }],
    findings: moved,
  }
}

function isOurs(value: unknown): boolean {
  if (!isMap(value) || isManifest(value)) return false
  const keys = Object.keys(value)
  const ours = keys.filter(key => rulesOnly.has(key) || sidecarOnly.has(key))
  return ours.length > 0 || value.version === 1
}
