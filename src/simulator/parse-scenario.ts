/**
 * YAML text to `Scenario`. Every problem is reported, each with line and column, the field, what is
 * wrong with it and what would be right. Pure: no files here.
 */
import { Ajv, type ErrorObject } from 'ajv'
import { isMap, isPair, isScalar, LineCounter, type Node, parseDocument } from 'yaml'
import { assembleScenario, type Complain, type FieldPath, shown } from './assemble-scenario.js'
import type { Scenario } from './scenario.js'
import { type RawScenario, scenarioSchema } from './scenario-schema.js'

export interface ScenarioProblem {
  /** From 1. */
  readonly line: number
  readonly column: number
  /** FieldPath of the field, such as `traffic[1].rate`; '' for the whole file. */
  readonly field: string
  readonly message: string
}

export type ScenarioResult =
  | { readonly ok: true; readonly scenario: Scenario }
  | { readonly ok: false; readonly problems: readonly ScenarioProblem[] }

const validate = new Ajv({ allErrors: true, verbose: true }).compile(scenarioSchema)

export function parseScenario(text: string): ScenarioResult {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const problems: ScenarioProblem[] = []
  const report = (offset: number, field: string, message: string): void => {
    const { line, col } = lines.linePos(offset)
    problems.push({ line: Math.max(1, line), column: Math.max(1, col), field, message })
  }
  for (const error of document.errors) {
    report(error.pos[0], '', `not valid YAML: ${error.message.split('\n')[0]}`)
  }
  if (problems.length > 0) return { ok: false, problems }
  const complain: Complain = (path, message) => {
    report(offsetOf(document.contents, path), fieldOf(path), message)
  }
  const raw: unknown = document.toJS()
  if (!fitsSchema(raw, complain)) return { ok: false, problems }
  const scenario = assembleScenario(raw, complain)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, scenario }
}

/** `FILE:LINE:COLUMN: FIELD MESSAGE`, as compilers write it. */
export function formatProblem(file: string, problem: ScenarioProblem): string {
  const field = problem.field === '' ? '' : `${problem.field} `
  return `${file}:${problem.line}:${problem.column}: ${field}${problem.message}`
}

function fitsSchema(raw: unknown, complain: Complain): raw is RawScenario {
  if (validate(raw)) return true
  for (const error of validate.errors ?? []) {
    // The branches of a union each complain; the union's own error says it once.
    if (/\/anyOf\/\d/.test(error.schemaPath)) continue
    const path = pointerToPath(error.instancePath)
    if (error.keyword === 'required') {
      const missing = error.params.missingProperty as string
      complain([...path, missing], `is missing; it must be ${expectedOf(error, missing)}`)
    } else if (error.keyword === 'additionalProperties') {
      const name = error.params.additionalProperty as string
      complain([...path, name], unknownKey(name, error))
    } else {
      const expected = error.parentSchema?.description ?? error.message
      complain(path, `must be ${expected}, not ${shown(error.data)}`)
    }
  }
  return false
}

function expectedOf(error: ErrorObject, name: string): string {
  const properties = error.parentSchema?.properties as
    | Record<string, { description?: string }>
    | undefined
  return properties?.[name]?.description ?? 'given'
}

function unknownKey(name: string, error: ErrorObject): string {
  const known = Object.keys((error.parentSchema?.properties ?? {}) as object)
  const nearest = known
    .map(candidate => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance)[0]
  const close = nearest !== undefined && nearest.distance <= Math.max(1, name.length / 3)
  const hint = close ? `did you mean ${nearest.candidate}?` : `known are ${known.join(', ')}`
  return `is not a known key; ${hint}`
}

/** Levenshtein distance; the texts are a few dozen characters. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[j]! + 1, current[j - 1]! + 1))
    }
    previous = current
  }
  return previous[b.length]!
}

function pointerToPath(pointer: string): FieldPath {
  return pointer
    .split('/')
    .slice(1)
    .map(part => (/^\d+$/.test(part) ? Number(part) : part.replace(/~1/g, '/').replace(/~0/g, '~')))
}

function fieldOf(path: FieldPath): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`,
    '',
  )
}

/** Where the deepest existing node of a path begins; the key itself for an entry of a mapping. */
function offsetOf(root: Node | null, path: FieldPath): number {
  let node: unknown = root
  let offset = root?.range?.[0] ?? 0
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(
        item => isPair(item) && isScalar(item.key) && String(item.key.value) === String(part),
      )
      if (pair === undefined) return offset
      offset = (pair.key as Node).range?.[0] ?? offset
      node = pair.value
    } else {
      const items = (node as { items?: unknown[] } | null)?.items
      node = items?.[Number(part)]
      const range = (node as Node | undefined)?.range
      if (range === undefined || range === null) return offset
      offset = range[0]
    }
  }
  return offset
}
