/**
 * The one form of a request path that rules are matched against. Knows nothing of rules.
 * Upstreams differ in how they read unusual paths; what they could read in two ways is refused.
 */

const slash = 47
const percent = 37
const backslash = 92
const period = 46

/**
 * `rawPath`, the request target without its query, percent-decoded once, with dot segments removed
 * and repeated slashes merged; a trailing slash stays. Null when the path stays ambiguous: `%2F`,
 * `%00`, a backslash in either form, an escape that is not two hex digits or not UTF-8, or a
 * target that does not begin with a slash. `*` (of OPTIONS) and '' are `*` and `/`.
 */
export function normalisePath(rawPath: string): string | null {
  if (rawPath === '' || rawPath === '*') return rawPath === '' ? '/' : '*'
  if (rawPath.charCodeAt(0) !== slash) return null
  if (isNormal(rawPath)) return rawPath
  if (/[\\\0]|%(?:2f|5c|00)/i.test(rawPath)) return null
  const decoded = decodeOnce(rawPath)
  return decoded === null ? null : removeDotSegments(decoded)
}

/** The path without its trailing slash: `/login` and `/login/` are one place. */
export function withoutTrailingSlash(path: string): string {
  const last = path.length - 1
  return last > 0 && path.charCodeAt(last) === slash ? path.slice(0, last) : path
}

/** Nothing to decode, merge or remove. True for nearly every request, and free of allocation. */
function isNormal(path: string): boolean {
  let previous = 0
  for (let index = 0; index < path.length; index++) {
    const code = path.charCodeAt(index)
    if (code === percent || code === backslash || code === 0) return false
    if (previous === slash && (code === slash || code === period)) return false
    previous = code
  }
  return true
}

function decodeOnce(path: string): string | null {
  if (!path.includes('%')) return path
  try {
    return decodeURIComponent(path)
  } catch {
    return null
  }
}

function removeDotSegments(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const last = segments.at(-1)
  const directory = last === '' || last === '.' || last === '..'
  if (kept.length === 0) return '/'
  return `/${kept.join('/')}${directory ? '/' : ''}`
}
