/**
 * Values of unknown shape (parsed YAML, answers of the Kubernetes API), read without trust. Nothing
 * here throws: an object from outside may carry anything under `toString`, so that turning it into
 * text or a number would.
 */

export type Fields = Readonly<Record<string, unknown>>

/** An object with keys; no array. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The fields of `value`; none if it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** The items of `value`; none if it is no array. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** `value` if it is text; else ''. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
