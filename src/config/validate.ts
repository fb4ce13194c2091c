/** A plain value against one of the schemas, with findings in the words of this project. */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { didYouMean } from './did-you-mean.js'
import { type ConfigPath, showValue } from './finding.js'
import type { Reporter } from './locator.js'
import { RulesFile } from './rules-schema.js'
import { type GrammarName, grammars } from './schema-terms.js'
import { SidecarFile } from './sidecar-schema.js'

export type ConfigKind = 'sidecar' | 'rules'

const schemas = { sidecar: SidecarFile, rules: RulesFile } as const
const compiled = new Map<ConfigKind, ValidateFunction>()

/** The part of a schema that messages are made from. */
interface SchemaNode {
  readonly type?: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
  readonly anyOf?: readonly SchemaNode[]
  readonly 'x-expected'?: string
  readonly 'x-grammar'?: GrammarName
}

/** Reports every way in which `value` is no valid file of this kind; true when it is one. */
export function validate(kind: ConfigKind, value: unknown, report: Reporter): boolean {
  const check = validator(kind)
  if (check(value)) return true
  const pointers = new Map<string, ErrorObject[]>()
  for (const error of meaningful(check.errors ?? [])) {
    const group = pointers.get(error.instancePath) ?? []
    group.push(error)
    pointers.set(error.instancePath, group)
  }
  for (const [pointer, group] of pointers) {
    const path = pathOf(pointer, value)
    const grammar = group.find(error => error.keyword === 'x-grammar')
    const told = new Set<string>()
    for (const error of grammar === undefined ? group : [grammar]) {
      if (told.has(`${error.keyword} ${JSON.stringify(error.params)}`)) continue
      told.add(`${error.keyword} ${JSON.stringify(error.params)}`)
      tell(error, path, report, schemas[kind] as SchemaNode)
    }
  }
  return false
}

function validator(kind: ConfigKind): ValidateFunction {
  const known = compiled.get(kind)
  if (known !== undefined) return known
  const ajv = new Ajv2020({ allErrors: true, verbose: true, strictTypes: false })
  ajv.addKeyword('x-expected')
  ajv.addKeyword({ keyword: 'x-grammar', type: 'string', errors: true, validate: checkGrammar })
  ajv.addKeyword({ keyword: 'x-key-grammar', type: 'object', errors: true, validate: checkKeys })
  const check = ajv.compile(schemas[kind])
  compiled.set(kind, check)
  return check
}

interface GrammarCheck {
  (name: GrammarName, value: unknown): boolean
  errors?: Partial<ErrorObject>[]
}

const checkGrammar: GrammarCheck = (name, value) => {
  const read = grammars[name].read(value as string)
  if (read.ok) return true
  checkGrammar.errors = [{ keyword: 'x-grammar', message: read.error, params: {} }]
  return false
}

const checkKeys: GrammarCheck = (name, value) => {
  const keys = Object.keys(value as object)
  const seen = new Set<string>()
  for (const key of keys) {
    const read = grammars[name].read(key)
    if (!read.ok || seen.has(key.toLowerCase())) {
      const message = read.ok ? `"${key}" stands twice; case does not matter` : read.error
      checkKeys.errors = [{ keyword: 'x-key-grammar', message, params: { key } }]
      return false
    }
    seen.add(key.toLowerCase())
  }
  return true
}

/** Without what other errors say better: branches of a union, and patterns that have a reader. */
function meaningful(errors: readonly ErrorObject[]): ErrorObject[] {
  const unions = errors.filter(error => error.keyword === 'anyOf')
  const words = new Set(
    errors.filter(error => error.keyword === 'enum').map(error => error.instancePath),
  )
  const deeper = (path: string) =>
    errors.some(
      error => error.instancePath.startsWith(`${path}/`) && (error.keyword as string) !== 'anyOf',
    )
  return errors.filter(error => {
    if (error.keyword === 'pattern' && 'x-grammar' in (error.parentSchema ?? {})) return false
    const union = unions.find(found => found.instancePath === error.instancePath)
    if (union === undefined || error.keyword === 'x-grammar') return true
    if (Array.isArray(error.data)) return /Items$/.test(error.keyword)
    if (typeof error.data === 'string' && words.has(error.instancePath)) {
      return error.keyword === 'enum'
    }
    return error === union && !deeper(error.instancePath)
  })
}

/** A JSON pointer as steps; digits are places only where `root` has a list. */
function pathOf(pointer: string, root: unknown): ConfigPath {
  const path: (string | number)[] = []
  let value = root
  for (const raw of pointer.split('/').slice(1)) {
    const step = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    const key = Array.isArray(value) ? Number(step) : step
    path.push(key)
    value = (value as Record<string | number, unknown>)[key]
  }
  return path
}

function tell(error: ErrorObject, path: ConfigPath, report: Reporter, root: SchemaNode): void {
  const schema = (error.parentSchema ?? {}) as SchemaNode
  const { params } = error
  switch (error.keyword) {
    case 'additionalProperties': {
      const key: string = params.additionalProperty
      report.errorAtKey([...path, key], 'unknown-key', unknownKey(key, schema, root))
      return
    }
    case 'required': {
      const key: string = params.missingProperty
      const expected = schema.properties?.[key]?.['x-expected']
      const suffix = expected === undefined ? '' : `, expected ${expected}`
      report.error(path, 'missing-key', `"${key}" is missing${suffix}`)
      return
    }
    case 'x-key-grammar':
      report.errorAtKey([...path, params.key as string], 'invalid-key', error.message!)
      return
    case 'x-grammar':
      report.error(path, 'invalid-value', `${showValue(error.data)}: ${error.message}`)
      return
    default:
      report.error(path, codeOf(error.keyword), valueMessage(error, schema))
  }
}

function codeOf(keyword: string): string {
  return keyword === 'type' || keyword === 'anyOf' ? 'wrong-type' : 'invalid-value'
}

function unknownKey(key: string, schema: SchemaNode, root: SchemaNode): string {
  const known = Object.keys(schema.properties ?? {})
  const near = didYouMean(key, known)
  const shown = showValue(key)
  if (near !== '') return `unknown key ${shown}${near}`
  const homes = homesOf(key, root, '').filter(home => home !== '')
  if (homes.length > 0) return `unknown key ${shown} here; it belongs in ${homes.join(' or ')}`
  return `unknown key ${shown}, expected ${known.join(', ')}`
}

/** The paths of all objects of the schema that know `key`. */
function homesOf(key: string, schema: SchemaNode, path: string): string[] {
  const homes: string[] = []
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) homes.push(path)
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    homes.push(...homesOf(key, child, path === '' ? name : `${path}.${name}`))
  }
  if (schema.items !== undefined) homes.push(...homesOf(key, schema.items, `${path}[]`))
  return homes.slice(0, 3)
}

function valueMessage(error: ErrorObject, schema: SchemaNode): string {
  const got = showValue(error.data)
  const { params, keyword } = error
  const expected = schema['x-expected']
  if (keyword === 'enum') {
    const words = (params.allowedValues as unknown[]).filter(word => typeof word === 'string')
    const near = typeof error.data === 'string' ? didYouMean(error.data, words) : ''
    return `${got} is not one of ${words.join(', ')}${near}`
  }
  if (expected !== undefined) return `expected ${expected}, got ${describe(error.data)}`
  switch (keyword) {
    case 'type':
      return `expected ${typeWords[params.type as string]}, got ${describe(error.data)}`
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
      return `${got} is not ${params.comparison} ${params.limit}`
    case 'minItems':
    case 'minProperties':
      return 'expected at least one entry'
    case 'maxItems':
    case 'maxProperties':
      return `more than ${params.limit} entries`
    case 'minLength':
      return 'expected text that is not empty'
    case 'maxLength':
      return `text longer than ${params.limit} characters`
    default:
      return `${got}: ${error.message}`
  }
}

const typeWords: Readonly<Record<string, string>> = {
  object: 'a map',
  array: 'a list',
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  const hint = typeof value === 'string' ? 'text ' : ''
  return `${hint}${showValue(value)}`
}
