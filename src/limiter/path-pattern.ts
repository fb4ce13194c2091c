/**
 * Path globs of rules, matched in time linear in the path for usual patterns and never worse than
 * pattern length times path length: no regular expressions, so no pattern can be made to backtrack.
 *
 *   `*`      any characters within one segment, none included; alone: one whole segment
 *   `**`     alone between slashes: any number of segments, none included (`/api/**` is `/api` too)
 *   `?`      one character within a segment
 *   `{a,b}`  either text; may hold slashes, may not be nested
 *
 * Case matters, a leading dot does not, and neither does a trailing slash on either side.
 */
import { withoutTrailingSlash } from './normal-path.js'

/** Longest pattern text. */
export const patternLengthMax = 1024
/** Most patterns that one text may stand for after its braces are expanded. */
export const patternAlternativesMax = 64

export type PathPatternParse =
  | { readonly ok: true; readonly pattern: PathPattern }
  | { readonly ok: false; readonly error: string }

/** A compiled path glob. */
export interface PathPattern {
  readonly text: string
  /** `path` must be normal, see `normalisePath`. */
  matches(path: string): boolean
}

/** Compiles `text`, or says in words what is wrong with it. */
export function parsePathPattern(text: string): PathPatternParse {
  const error = patternError(text)
  if (error !== null) return { ok: false, error }
  const alternatives = expandBraces(text)
  if (typeof alternatives === 'string') return { ok: false, error: alternatives }
  const matchers = alternatives.map(compile)
  const only = matchers[0]!
  const matches =
    matchers.length === 1 ? only : (path: string) => matchers.some(matcher => matcher(path))
  return { ok: true, pattern: { text, matches } }
}

function patternError(text: string): string | null {
  if (text.length > patternLengthMax) return `longer than ${patternLengthMax} characters`
  if (!/^(\/|\*\*(\/|$)|\{)/.test(text)) return 'a path pattern begins with "/" or "**"'
  if (/[\\\0]/.test(text)) return 'a path pattern has no backslash and no NUL'
  if (text.includes('?') && /\?[^/]*=/.test(text)) return 'a path is matched without its query'
  if (/\/\//.test(text)) return 'repeated slashes are merged before matching: write one'
  if (/[^/{,]\*\*|\*\*[^/},]/.test(text)) return '"**" stands alone between slashes'
  if (/(^|\/)\.{1,2}(\/|$)/.test(text)) return 'dot segments are removed before matching'
  return null
}

/** Every text that `text` stands for, or what is wrong with its braces. */
function expandBraces(text: string): string[] | string {
  let expanded = ['']
  let index = 0
  while (index < text.length) {
    const open = text.indexOf('{', index)
    const literal = text.slice(index, open < 0 ? text.length : open)
    if (literal.includes('}')) return '"}" without "{"'
    expanded = expanded.map(head => head + literal)
    if (open < 0) break
    const close = text.indexOf('}', open)
    const body = close < 0 ? '' : text.slice(open + 1, close)
    if (close < 0) return '"{" without "}"'
    if (body.includes('{')) return 'braces may not be nested'
    const choices = body.split(',')
    if (expanded.length * choices.length > patternAlternativesMax) {
      return `braces stand for more than ${patternAlternativesMax} patterns`
    }
    expanded = expanded.flatMap(head => choices.map(choice => head + choice))
    index = close + 1
  }
  const wrong = text.includes('{') ? expanded.map(patternError).find(error => error !== null) : null
  return wrong ?? expanded
}

type Matcher = (path: string) => boolean

function compile(text: string): Matcher {
  const pattern = withoutTrailingSlash(text)
  if (pattern === '**' || pattern === '/**') return () => true
  if (!/[*?]/.test(pattern)) return literalMatcher(pattern)
  const stem = pattern.slice(0, -3)
  if (pattern.endsWith('/**') && !/[*?]/.test(stem)) return prefixMatcher(stem)
  const segments = pattern.split('/').filter(segment => segment !== '')
  return path => matchSegments(segments, path)
}

function literalMatcher(pattern: string): Matcher {
  const directory = pattern === '/' ? pattern : `${pattern}/`
  return path => path === pattern || path === directory
}

function prefixMatcher(stem: string): Matcher {
  const directory = `${stem}/`
  return path => path.startsWith(directory) || path === stem
}

/**
 * Greedy matching with one remembered `**`: since every other segment pattern takes exactly one
 * segment, giving the latest `**` one segment more is the only retreat that can ever help.
 */
function matchSegments(segments: readonly string[], path: string): boolean {
  if (path.charCodeAt(0) !== 47) return false
  let at = 0
  let start = 1
  let retryAt = -1
  let retryStart = 0
  for (;;) {
    const done = start >= path.length
    if (at < segments.length && segments[at] === '**') {
      retryAt = ++at
      retryStart = start
      continue
    }
    if (done && at === segments.length) return true
    const end = segmentEnd(path, start)
    if (!done && at < segments.length && matchSegment(segments[at]!, path, start, end)) {
      at++
      start = end + 1
      continue
    }
    if (retryAt < 0 || retryStart >= path.length) return false
    retryStart = segmentEnd(path, retryStart) + 1
    at = retryAt
    start = retryStart
  }
}

function segmentEnd(path: string, start: number): number {
  const next = path.indexOf('/', start)
  return next < 0 ? path.length : next
}

/** One segment, `path[start, end)`, by the same retreat to the latest `*`. */
function matchSegment(pattern: string, path: string, start: number, end: number): boolean {
  let at = 0
  let index = start
  let starAt = -1
  let starIndex = 0
  while (index < end) {
    const wanted = at < pattern.length ? pattern.charCodeAt(at) : -1
    if (wanted === 42) {
      starAt = ++at
      starIndex = index
    } else if (wanted === 63 || wanted === path.charCodeAt(index)) {
      at++
      index++
    } else {
      if (starAt < 0) return false
      at = starAt
      index = ++starIndex
    }
  }
  while (at < pattern.length && pattern.charCodeAt(at) === 42) at++
  return at === pattern.length
}
