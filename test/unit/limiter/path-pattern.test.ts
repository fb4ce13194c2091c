import { describe, expect, it } from 'vitest'
import { parsePathPattern, patternLengthMax } from '../../../src/limiter/path-pattern.js'

function matches(pattern: string, path: string): boolean {
  const parsed = parsePathPattern(pattern)
  if (!parsed.ok) throw new Error(`${pattern}: ${parsed.error}`)
  return parsed.pattern.matches(path)
}

describe('a path pattern', () => {
  it.each([
    ['/login', ['/login', '/login/'], ['/Login', '/login/x', '/loginx', '/', '/a/login']],
    ['/login/', ['/login', '/login/'], ['/loginx']],
    ['/', ['/'], ['/a', '*']],
    ['/api/**', ['/api', '/api/', '/api/x', '/api/x/y/', '/api/.git'], ['/apis', '/', '/API']],
    ['/**', ['/', '/a', '/a/b/', '*'], []],
    ['**', ['/', '/a/b'], []],
    ['/api/*', ['/api/x', '/api/x/', '/api/.env'], ['/api', '/api/', '/api/x/y']],
    ['/api/*/edit', ['/api/7/edit', '/api/7/edit/'], ['/api/edit', '/api/7/8/edit']],
    ['/**/edit', ['/edit', '/a/edit', '/a/b/edit/'], ['/edits', '/a/edit/b']],
    ['**/edit', ['/edit', '/a/b/edit'], ['/a/edits']],
    ['/a/**/b', ['/a/b', '/a/x/b', '/a/b/b', '/a/x/y/b'], ['/a', '/a/b/c', '/ab']],
    ['/a/**/b/**/c', ['/a/b/c', '/a/x/b/y/z/c', '/a/b/c/c'], ['/a/c/b', '/a/c']],
    ['/*.php', ['/x.php', '/.php'], ['/x/y.php', '/x.phps']],
    ['/**/*.php', ['/x.php', '/a/b/x.php'], ['/a/x.php/y']],
    ['/v?/x', ['/v1/x', '/v2/x'], ['/v/x', '/v10/x']],
    ['/a*b*c', ['/abc', '/axxbxxc', '/abcbc'], ['/ab', '/abcd']],
    ['/{a,b}/x', ['/a/x', '/b/x/'], ['/c/x', '/x']],
    ['/{a,b/**}', ['/a', '/b', '/b/c'], ['/a/c']],
    ['/x{,/y}', ['/x', '/x/y'], ['/y']],
    ['/a.b', ['/a.b'], ['/aXb']],
    ['/[id]', ['/[id]'], ['/i']],
    ['/a(b)+$', ['/a(b)+$'], ['/abb']],
  ])('%s takes and leaves', (pattern, taken, left) => {
    expect(taken.filter(path => !matches(pattern, path))).toEqual([])
    expect(left.filter(path => matches(pattern, path))).toEqual([])
  })

  it.each([
    ['', 'begins with'],
    ['api', 'begins with'],
    ['*', 'begins with'],
    ['/a\\b', 'no backslash'],
    ['//a', 'repeated slashes'],
    ['/a/../b', 'dot segments'],
    ['/a**', 'alone between slashes'],
    ['/**a', 'alone between slashes'],
    ['/a?b=1', 'without its query'],
    ['/{a', '"{" without "}"'],
    ['/a}', '"}" without "{"'],
    ['/{a,{b}}', 'nested'],
    ['/{a,/b}', 'repeated slashes'],
    [`/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}`, 'more than 64'],
    [`/${'a'.repeat(patternLengthMax)}`, 'longer than'],
  ])('%s is refused in words', (pattern, words) => {
    expect(parsePathPattern(pattern)).toEqual({ ok: false, error: expect.stringContaining(words) })
  })

  it('cannot be made to backtrack without end', () => {
    const pattern = `/${'*a'.repeat(400)}/**/${'**/x/'.repeat(40)}z`
    const path = `/${'a'.repeat(8000)}${'/x'.repeat(2000)}`
    expect(matches(pattern, path)).toBe(false)
    expect(matches(`/${'*a'.repeat(400)}b`, path)).toBe(false)
  })
})
