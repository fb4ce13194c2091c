/**
 * A file of manifests with the sidecar put into every pod template of it. What is not changed stays
 * byte for byte; in what is changed, comments and order are kept and aliases are written out. Pure.
 */
import { type Document, isMap as isYamlMap, LineCounter, parseAllDocuments } from 'yaml'
import { depthMax, textLengthMax } from '../config/yaml-text.js'
import { fieldsOf, isMap, textOf } from '../lib/untrusted.js'
import { expandAliases } from './expand-aliases.js'
import { injectSidecar } from './inject-sidecar.js'
import { jsonPatch, pointerSteps } from './json-patch.js'
import { readPodTemplate, readService, type ServicePorts } from './pod-template.js'
import type { SidecarSettings } from './sidecar-settings.js'

export type InjectedDocuments =
  | {
      readonly ok: true
      readonly text: string
      /** One line for every workload found: what was done with it. */
      readonly notes: readonly string[]
      /** Warnings and templates that could not be injected. */
      readonly warnings: readonly string[]
      readonly failures: readonly string[]
    }
  | { readonly ok: false; readonly error: string }

/** Where each kind keeps its pod template. */
const templatePaths: ReadonlyMap<string, readonly string[]> = new Map([
  ['Pod', []],
  ['PodTemplate', ['template']],
  ['Deployment', ['spec', 'template']],
  ['StatefulSet', ['spec', 'template']],
  ['DaemonSet', ['spec', 'template']],
  ['ReplicaSet', ['spec', 'template']],
  ['ReplicationController', ['spec', 'template']],
  ['Job', ['spec', 'template']],
  ['CronJob', ['spec', 'jobTemplate', 'spec', 'template']],
])

/** Reads `text`, named `file` in messages, and injects into all of it. */
export function injectDocuments(
  text: string,
  file: string,
  settings: SidecarSettings,
): InjectedDocuments {
  if (text.length > textLengthMax) return { ok: false, error: `${file}: longer than it may be` }
  let documents: Document.Parsed[]
  try {
    documents = readDocuments(text, file)
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) }
  }
  const objects = documents.flatMap(document => flatten(document.toJS() as unknown, []))
  const services = objects.flatMap(({ value }) => {
    const service = value.kind === 'Service' ? readService(value) : null
    return service === null ? [] : [{ service, namespace: namespaceOf(value) }]
  })
  const report: Report = { notes: [], warnings: [], failures: [] }
  const pieces = documents.map((document, index) => {
    const start = index === 0 ? 0 : document.range[0]
    const end = documents[index + 1]?.range[0] ?? text.length
    const changed = injectDocument(document, settings, services, report)
    return changed ? document.toString({ lineWidth: 0 }) : text.slice(start, end)
  })
  return { ok: true, text: pieces.join(''), ...report }
}

interface Report {
  readonly notes: string[]
  readonly warnings: string[]
  readonly failures: string[]
}

interface Found {
  /** Steps from the document's root; more than none inside a List. */
  readonly path: readonly (string | number)[]
  readonly value: Record<string, unknown>
}

function readDocuments(text: string, file: string): Document.Parsed[] {
  const lineCounter = new LineCounter()
  const parsed = parseAllDocuments(text, { lineCounter, prettyErrors: true, merge: true })
  if (!Array.isArray(parsed)) return []
  for (const document of parsed) {
    const [error] = document.errors
    if (error !== undefined) throw new Error(`${file}: ${error.message}`)
    // Aliases are looked up here, within the parser's own bound against bombs.
    document.toJS({ maxAliasCount: 100 })
  }
  return parsed as Document.Parsed[]
}

/** The objects of a document: itself, or the items of a List. */
function flatten(value: unknown, path: readonly (string | number)[]): Found[] {
  if (!isMap(value) || path.length > depthMax) return []
  if (Array.isArray(value.items) && /List$/.test(textOf(value.kind))) {
    return value.items.flatMap((item, index) => flatten(item, [...path, 'items', index]))
  }
  return [{ path, value }]
}

function namespaceOf(value: Record<string, unknown>): string {
  return textOf(fieldsOf(value.metadata).namespace)
}

/** Changes `document` where it holds pod templates; true if it did. */
function injectDocument(
  document: Document,
  settings: SidecarSettings,
  services: readonly { readonly service: ServicePorts; readonly namespace: string }[],
  report: Report,
): boolean {
  let changed = false
  for (const { path, value } of flatten(document.toJS() as unknown, [])) {
    const kind = textOf(value.kind)
    const steps = templatePaths.get(kind)
    if (steps === undefined) continue
    const { name, generateName } = fieldsOf(value.metadata)
    const title = `${kind.toLowerCase()}/${textOf(name ?? generateName)}`
    const template = readPodTemplate(valueAt(value, steps))
    if (typeof template === 'string') {
      report.failures.push(`${title}: ${template}`)
      continue
    }
    const near = services
      .filter(({ namespace }) => namespace === namespaceOf(value))
      .map(({ service }) => service)
    const result = injectSidecar(template, settings, near)
    if (result.kind === 'failed') {
      report.failures.push(`${title}: ${result.error}`)
    } else if (result.kind === 'skipped') {
      report.notes.push(`${title}: left as it is: ${result.text}`)
    } else {
      expandAliases(document)
      applyTo(document, [...path, ...steps], jsonPatch(template, result.template))
      const { targetPort } = result
      const hint = targetPort === null ? '' : `; in its Service: targetPort: ${targetPort}`
      report.notes.push(`${title}: sidecar added${hint}`)
      report.warnings.push(...result.warnings.map(warning => `${title}: ${warning}`))
      changed = true
    }
  }
  return changed
}

function valueAt(value: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>((part, step) => (isMap(part) ? part[step] : undefined), value)
}

/** Applies patch operations to the syntax tree, so that what is around them stays as written. */
function applyTo(
  document: Document,
  base: readonly (string | number)[],
  operations: ReturnType<typeof jsonPatch>,
): void {
  for (const operation of operations) {
    const steps: (string | number)[] = [...base]
    for (const step of pointerSteps(operation.path)) {
      const inList = Array.isArray(plainAt(document, steps))
      steps.push(inList && step !== '-' ? Number(step) : step)
    }
    const last = steps.at(-1)
    const parent = steps.slice(0, -1)
    if (operation.op === 'remove') {
      document.deleteIn(steps)
    } else if (last === '-') {
      document.addIn(parent, document.createNode(operation.value))
    } else if (operation.op === 'add' && typeof last === 'number') {
      const list = document.getIn(parent) as { items: unknown[] }
      list.items.splice(last, 0, document.createNode(operation.value))
    } else {
      document.setIn(steps, document.createNode(operation.value))
    }
  }
}

function plainAt(document: Document, steps: readonly (string | number)[]): unknown {
  const node = document.getIn(steps, true)
  if (isYamlMap(node)) return {}
  return node !== null && typeof node === 'object' && 'items' in node ? [] : null
}
