/**
 * Finds typing mistakes in Kubernetes objects: unknown fields and wrong primitive types, by the
 * attribute maps that the client's generated classes carry. Says nothing about required fields.
 */
import * as k8s from '@kubernetes/client-node'

interface Attribute {
  readonly name: string
  readonly baseName: string
  readonly type: string
}

interface Model {
  getAttributeTypeMap?(): readonly Attribute[]
}

const models = k8s as unknown as Readonly<Record<string, Model | undefined>>
const primitives: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  Date: 'string',
}

/** Mistakes in `value`, an object of the class named `type`, each with its place. */
export function strictFindings(value: unknown, type: string, path = ''): string[] {
  const list = /^Array<(.+)>$/.exec(type)?.[1]
  if (list !== undefined) {
    if (!Array.isArray(value)) return [`${path}: expected a list`]
    return value.flatMap((entry, index) => strictFindings(entry, list, `${path}[${index}]`))
  }
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1]
  if (map !== undefined) {
    if (!isMap(value)) return [`${path}: expected a map`]
    return Object.entries(value).flatMap(([key, entry]) =>
      strictFindings(entry, map, `${path}.${key}`),
    )
  }
  const primitive = primitives[type]
  if (primitive !== undefined) {
    const actual = typeof value
    return actual === primitive ? [] : [`${path}: expected ${primitive}, got ${actual}`]
  }
  const attributes = models[type]?.getAttributeTypeMap?.()
  // `any`, quantities, and numbers that may be texts.
  if (attributes === undefined) return []
  if (!isMap(value)) return [`${path}: expected an object`]
  return Object.entries(value).flatMap(([key, entry]) => {
    const attribute = attributes.find(candidate => candidate.baseName === key)
    const place = `${path}.${key}`
    return attribute === undefined
      ? [`${place}: is no field of ${type}`]
      : strictFindings(entry, attribute.type, place)
  })
}

/** The class of an object, by its kind; null for kinds that are not Kubernetes' own. */
export function modelOf(apiVersion: string, kind: string): string | null {
  const version = apiVersion.split('/').at(-1) ?? ''
  const name = `${version.charAt(0).toUpperCase()}${version.slice(1)}${kind}`
  return models[name]?.getAttributeTypeMap === undefined ? null : name
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
