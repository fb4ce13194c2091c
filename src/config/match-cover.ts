/** Whether one match takes every request that another takes; errs towards "no". */
import { withoutTrailingSlash } from '../limiter/normal-path.js'
import { parsePathPattern } from '../limiter/path-pattern.js'
import type { MatchSpec } from '../limiter/rule.js'

/** Every request that `narrow` takes, `wide` takes too. Null takes all. */
export function covers(wide: MatchSpec | null, narrow: MatchSpec | null): boolean {
  if (wide === null) return true
  return (
    pathCovers(wide.path, narrow?.path ?? null) &&
    methodCovers(wide.method, narrow?.method ?? null) &&
    headerCovers(wide.header, narrow?.header ?? null)
  )
}

function pathCovers(wide: string | null, narrow: string | null): boolean {
  if (wide === null) return true
  if (wide === '**' || wide === '/**') return true
  if (narrow === null) return false
  if (wide === narrow) return true
  const inner = withoutTrailingSlash(narrow)
  if (!/[*?{]/.test(inner)) {
    const parsed = parsePathPattern(wide)
    return parsed.ok && parsed.pattern.matches(inner)
  }
  const stem = wide.slice(0, -3)
  return wide.endsWith('/**') && !/[*?{]/.test(stem) && inner.startsWith(`${stem}/`)
}

function methodCovers(wide: readonly string[] | null, narrow: readonly string[] | null): boolean {
  if (wide === null) return true
  return narrow?.every(method => wide.includes(method)) ?? false
}

type Headers = Readonly<Record<string, string>> | null

function headerCovers(wide: Headers, narrow: Headers): boolean {
  if (wide === null) return true
  if (narrow === null) return false
  return Object.entries(wide).every(
    ([name, value]) => Object.hasOwn(narrow, name) && narrow[name] === value,
  )
}
