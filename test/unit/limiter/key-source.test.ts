import { describe, expect, it } from 'vitest'
import {
  canonicalValue,
  partHead,
  partText,
  readClaim,
  readCookie,
  readQuery,
  readSource,
} from '../../../src/limiter/key-source.js'
import { requestFacts } from '../../helpers/rule-specs.js'

describe('readCookie', () => {
  it.each([
    ['sid=abc', 'abc'],
    ['a=1; sid=abc; b=2', 'abc'],
    ['a=1;sid=abc', 'abc'],
    ['sid="abc"', 'abc'],
    ['sid=a=b', 'a=b'],
    ['sid=one; sid=two', 'one'],
    ['xsid=abc', undefined],
    ['SID=abc', undefined],
    ['sid=', undefined],
    ['sid', undefined],
    ['; ;=;', undefined],
    ['', undefined],
  ])('in %j is %j', (text, value) => {
    expect(readCookie(text, 'sid')).toBe(value)
  })

  it('is absent without a cookie header', () => {
    expect(readCookie(undefined, 'sid')).toBeUndefined()
  })
})

describe('readQuery', () => {
  it.each([
    ['api_key=abc', 'abc'],
    ['a=1&api_key=abc&b=2', 'abc'],
    ['api_key=a%20b', 'a b'],
    ['api_key=a+b', 'a b'],
    ['%61pi_key=abc', 'abc'],
    ['api_key=one&api_key=two', 'one'],
    ['api_key=a=b', 'a=b'],
    ['api_key=%zz', '%zz'],
    ['xapi_key=abc', undefined],
    ['api_key=', undefined],
    ['api_key', undefined],
    ['&&=&', undefined],
    ['', undefined],
  ])('in %j is %j', (query, value) => {
    expect(readQuery(query, 'api_key')).toBe(value)
  })
})

describe('readClaim', () => {
  it.each([
    ['sub', 'alice'],
    ['level', '3'],
    ['admin', 'true'],
    ['roles', 'a,b'],
    ['realm.plan', 'gold'],
    ['https://x.example/plan', 'silver'],
    ['realm', undefined],
    ['nothing', undefined],
    ['empty', undefined],
    ['mixed', undefined],
    ['realm.plan.deeper', undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
    ['realm.constructor', undefined],
  ])('%s is %j', (name, value) => {
    const claims = {
      sub: 'alice',
      level: 3,
      admin: true,
      roles: ['a', 'b'],
      realm: { plan: 'gold' },
      'https://x.example/plan': 'silver',
      nothing: null,
      empty: '',
      mixed: ['a', {}],
    }
    expect(readClaim(claims, name)).toBe(value)
  })

  it('is absent without a verified token', () => {
    expect(readClaim(null, 'sub')).toBeUndefined()
  })
})

describe('readSource', () => {
  const facts = requestFacts({
    method: 'POST',
    path: '/login/',
    ip: '2001:db8::1',
    headers: { 'x-empty': '' },
  })

  it('reads method, path, host, address and global', () => {
    const kinds = ['method', 'path', 'host', 'ip', 'global'] as const
    expect(kinds.map(kind => readSource({ kind }, facts))).toEqual([
      'POST',
      '/login',
      'shop.example',
      '2001:db8::/64',
      '',
    ])
  })

  it('takes an empty header, an ambiguous path and an empty host as absent', () => {
    const odd = requestFacts({ path: null, host: '', headers: { 'x-empty': '' } })
    expect(readSource({ kind: 'header', name: 'x-empty' }, odd)).toBeUndefined()
    expect(readSource({ kind: 'path' }, odd)).toBeUndefined()
    expect(readSource({ kind: 'host' }, odd)).toBeUndefined()
  })
})

describe('the canonical text of a part', () => {
  it('names its source and both lengths, so that one source cannot spell another', () => {
    expect(partText(partHead({ kind: 'header', name: 'x-api-key' }), 'c7')).toBe(
      '16:header:x-api-key2:c7',
    )
    expect(partText(partHead({ kind: 'ip' }), '192.0.2.7')).toBe('2:ip9:192.0.2.7')
    expect(partText(partHead({ kind: 'global' }), '')).toBe('6:global0:')
  })

  it('takes spelled-out values as the source would have given them', () => {
    expect(canonicalValue({ kind: 'ip' }, '::ffff:192.0.2.7')).toBe('192.0.2.7')
    expect(canonicalValue({ kind: 'ip' }, '2001:db8::9')).toBe('2001:db8::/64')
    expect(canonicalValue({ kind: 'method' }, 'get')).toBe('GET')
    expect(canonicalValue({ kind: 'host' }, 'Shop.Example')).toBe('shop.example')
    expect(canonicalValue({ kind: 'path' }, '/login/')).toBe('/login')
    expect(canonicalValue({ kind: 'global' }, 'anything')).toBe('')
    expect(canonicalValue({ kind: 'jwt', name: 'sub' }, 'Alice')).toBe('Alice')
  })
})
