import { describe, expect, it } from 'vitest'
import { normalisePath, withoutTrailingSlash } from '../../../src/limiter/normal-path.js'

describe('normalisePath', () => {
  it.each([
    ['', '/'],
    ['*', '*'],
    ['/', '/'],
    ['/api/users', '/api/users'],
    ['/api/users/', '/api/users/'],
    ['//api///users', '/api/users'],
    ['/api/./users', '/api/users'],
    ['/api/../login', '/login'],
    ['/../../login', '/login'],
    ['/a/b/..', '/a/'],
    ['/a/b/.', '/a/b/'],
    ['/a/..', '/'],
    ['/%6Cogin', '/login'],
    ['/a/%2e%2E/login', '/login'],
    ['/caf%C3%A9', '/café'],
    ['/a%20b', '/a b'],
    ['/a%3Fb', '/a?b'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a/...', '/a/...'],
    ['/Login', '/Login'],
  ])('%s is %s', (raw, normal) => {
    expect(normalisePath(raw)).toBe(normal)
  })

  it('decodes once only', () => {
    expect(normalisePath('/%252e%252e/x')).toBe('/%2e%2e/x')
    expect(normalisePath('/%256Cogin')).toBe('/%6Cogin')
  })

  it.each([
    '/a%2Fb',
    '/a%2fb',
    '/a%00',
    '/a\0',
    '/a\\b',
    '/a%5Cb',
    '/a%5cb',
    '/a%',
    '/a%2',
    '/a%zz',
    '/a%FF',
    '/a%C3',
    'api',
    'http://host/api',
  ])('%j can be read in two ways and is refused', raw => {
    expect(normalisePath(raw)).toBeNull()
  })
})

describe('withoutTrailingSlash', () => {
  it('takes one slash off the end and leaves the root alone', () => {
    expect(['/', '/a/', '/a', ''].map(withoutTrailingSlash)).toEqual(['/', '/a', '/a', ''])
  })
})
