/**
 * Kubernetes objects checked against the OpenAPI description of one release: unknown fields (typing
 * mistakes), missing ones and wrong types. The API server goes on where the description ends: it
 * knows the words that a text may be, and rules between fields.
 */
import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import type { KubernetesObject } from './helm.js'

/** Kinds of other projects, which no description of Kubernetes has: passed over. */
export const foreignKinds: readonly string[] = [
  'cert-manager.io/v1 Certificate',
  'cert-manager.io/v1 Issuer',
  'monitoring.coreos.com/v1 PodMonitor',
  'monitoring.coreos.com/v1 PrometheusRule',
]

export function kindOf(object: Pick<KubernetesObject, 'apiVersion' | 'kind'>): string {
  return `${object.apiVersion} ${object.kind}`
}

type Schema = Readonly<Record<string, unknown>>

interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

const definitionsId = 'kubernetes'
const quantityName = 'io.k8s.apimachinery.pkg.api.resource.Quantity'

/** A number in texts as the API server's parser takes it: `1.5`, `100m`, `64Mi`, `1e3`. */
const quantity: Schema = {
  type: ['string', 'number'],
  pattern: '^[+-]?(\\d+(\\.\\d*)?|\\.\\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\\d+)?$',
}

const within = (bits: number) => ({
  type: 'number' as const,
  validate: (value: number) => value >= -(2 ** (bits - 1)) && value < 2 ** (bits - 1),
})

const formats = {
  int32: within(32),
  int64: within(64),
  double: true,
  byte: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
} as const

export class KubernetesSchema {
  readonly #ajv = new Ajv({ allErrors: true, strict: false, formats })
  /** The definition's name by `apiVersion kind`. */
  readonly #names = new Map<string, string>()
  readonly #checks = new Map<string, ValidateFunction>()

  /** Reads a release's `swagger.json`. */
  constructor(file: string) {
    const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly definitions: Readonly<Record<string, Schema>>
    }
    const closed: Record<string, unknown> = {}
    for (const [name, definition] of Object.entries(definitions)) {
      closed[name] = name === quantityName ? quantity : strict(definition)
      const kinds = definition['x-kubernetes-group-version-kind'] as GroupVersionKind[] | undefined
      // Options of requests belong to every group at once and are no objects.
      if (kinds?.length === 1) this.#names.set(nameOf(kinds[0]!), name)
    }
    this.#ajv.addSchema({ $id: definitionsId, definitions: closed })
  }

  /** What is wrong with the object, each with its place; a kind that is not known is wrong too. */
  findings(object: KubernetesObject): string[] {
    const kind = kindOf(object)
    if (foreignKinds.includes(kind)) return []
    const place = `${object.kind}/${object.metadata.name}`
    const name = this.#names.get(kind)
    if (name === undefined) return [`${place}: ${kind} is no kind of this release`]
    const check = this.#check(name)
    if (check(object)) return []
    return (check.errors ?? []).map(({ instancePath, message, params }) => {
      const field = (params as { additionalProperty?: string }).additionalProperty
      return `${place}${instancePath}: ${message}${field === undefined ? '' : `: ${field}`}`
    })
  }

  #check(name: string): ValidateFunction {
    const known = this.#checks.get(name)
    if (known !== undefined) return known
    const made = this.#ajv.compile({ $ref: `${definitionsId}#/definitions/${name}` })
    this.#checks.set(name, made)
    return made
  }
}

const schemas = new Map<string, KubernetesSchema>()

/** The schema of a file, read once. */
export function kubernetesSchema(file: string): KubernetesSchema {
  const schema = schemas.get(file) ?? new KubernetesSchema(file)
  schemas.set(file, schema)
  return schema
}

function nameOf({ group, version, kind }: GroupVersionKind): string {
  return kindOf({ apiVersion: group === '' ? version : `${group}/${version}`, kind })
}

/** The definition, open to no other fields than its own, and without what only people read. */
function strict(schema: Schema): Schema {
  if (schema.format === 'int-or-string') return { type: ['string', 'integer'] }
  const { description: _, properties, items, additionalProperties, ...rest } = schema
  const made: Record<string, unknown> = { ...rest }
  if (items !== undefined) made.items = strict(items as Schema)
  if (additionalProperties !== undefined)
    made.additionalProperties = strict(additionalProperties as Schema)
  if (properties !== undefined) {
    const fields = Object.entries(properties as Readonly<Record<string, Schema>>)
    made.properties = Object.fromEntries(fields.map(([name, field]) => [name, strict(field)]))
    made.additionalProperties ??= false
  }
  return made
}
