/** The difference between two JSON values as a JSON patch (RFC 6902). Pure. */
import { isDeepStrictEqual } from 'node:util'
import { isMap } from '../lib/untrusted.js'

export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

/** Operations that turn `before` into `after`, in the order in which they are to be applied. */
export function jsonPatch(before: unknown, after: unknown, path = ''): PatchOperation[] {
  if (isDeepStrictEqual(before, after)) return []
  if (isMap(before) && isMap(after)) return mapPatch(before, after, path)
  if (Array.isArray(before) && Array.isArray(after)) return listPatch(before, after, path)
  return [{ op: 'replace', path, value: after }]
}

function mapPatch(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  path: string,
): PatchOperation[] {
  const removed = Object.keys(before)
    .filter(key => own(after, key) === undefined)
    .map((key): PatchOperation => ({ op: 'remove', path: `${path}/${escaped(key)}` }))
  const others = Object.entries(after).flatMap(([key, value]): PatchOperation[] => {
    if (value === undefined) return []
    const place = `${path}/${escaped(key)}`
    const known = own(before, key)
    return known === undefined
      ? [{ op: 'add', path: place, value }]
      : jsonPatch(known, value, place)
  })
  return [...removed, ...others]
}

/** A pod may well have a label `constructor`; what every object inherits is none of its keys. */
function own(map: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined
}

/** Lists that grew at the front or at the end are told so; else entry by entry, or as a whole. */
function listPatch(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
): PatchOperation[] {
  const grown = after.length - before.length
  if (grown < 0) return [{ op: 'replace', path, value: after }]
  const sameName = (a: unknown, b: unknown) => isMap(a) && isMap(b) && a.name === b.name
  const last = before.length - 1
  const atFront =
    grown > 0 && before.every((entry, index) => sameName(entry, after[index + grown])) && last >= 0
  if (atFront) {
    return [
      ...after
        .slice(0, grown)
        .map((value, index): PatchOperation => ({ op: 'add', path: `${path}/${index}`, value })),
      ...before.flatMap((entry, index) =>
        jsonPatch(entry, after[index + grown], `${path}/${index + grown}`),
      ),
    ]
  }
  return [
    ...before.flatMap((entry, index) => jsonPatch(entry, after[index], `${path}/${index}`)),
    ...after
      .slice(before.length)
      .map((value): PatchOperation => ({ op: 'add', path: `${path}/-`, value })),
  ]
}

/** JSON pointer (RFC 6901) writes `~` and `/` in a key like this. */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** The keys that a JSON pointer leads along; numbers for entries of lists, '-' for the end. */
export function pointerSteps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
