import { describe, expect, it } from 'vitest'
import {
  HttpRequestFacts,
  hostName,
  rawHeaderLookup,
  recordHeaderLookup,
} from '../../../src/http/request-facts.js'

function facts(target: string, headers: readonly string[] = [], host?: string): HttpRequestFacts {
  return new HttpRequestFacts({
    method: 'get',
    target,
    header: rawHeaderLookup(headers),
    ip: '192.0.2.1',
    peerTrusted: false,
    jwt: null,
    host,
  })
}

describe('HttpRequestFacts', () => {
  it('has the method in upper case', () => {
    expect(facts('/').method).toBe('GET')
  })

  it.each([
    ['/a/b', '/a/b', ''],
    ['/a?b=c?d', '/a', 'b=c?d'],
    ['/a?', '/a', ''],
    ['/a/../b%20c', '/b c', ''],
    ['http://host:80/a?b', '/a', 'b'],
    ['https://host', '/', ''],
    ['https://host?b', '/', 'b'],
    ['*', '*', ''],
    ['/a%2fb', null, ''],
    ['/a#/../b', null, ''],
    ['a', null, ''],
    ['', '/', ''],
  ])('%j has path %j and query %j', (target, path, query) => {
    const read = facts(target)
    expect([read.path, read.query]).toEqual([path, query])
  })

  it.each([
    ['Shop.Example:8080', 'shop.example'],
    ['[2001:DB8::1]:80', '[2001:db8::1]'],
    ['shop', 'shop'],
    ['', ''],
  ])('host %j is %j', (host, name) => {
    expect(hostName(host)).toBe(name)
    expect(facts('/', ['Host', host]).host).toBe(name)
  })

  it('a host that is given overrides the header', () => {
    expect(facts('/', ['Host', 'a'], 'b:1').host).toBe('b')
  })
})

describe('header lookups', () => {
  it('raw pairs are found in any case, several lines joined', () => {
    const lookup = rawHeaderLookup([
      'X-A',
      '1',
      'x-b',
      '2',
      'x-a',
      '3',
      'Cookie',
      'p=1',
      'cookie',
      'q=2',
    ])
    expect(lookup('x-a')).toBe('1, 3')
    expect(lookup('cookie')).toBe('p=1; q=2')
    expect(lookup('x-c')).toBeUndefined()
  })

  it('a record never answers with what every object has', () => {
    const lookup = recordHeaderLookup({ 'x-a': ['1', '2'], 'x-b': 'b' })
    expect(lookup('x-a')).toBe('1, 2')
    expect(lookup('x-b')).toBe('b')
    expect(lookup('constructor')).toBeUndefined()
    expect(lookup('__proto__')).toBeUndefined()
  })
})
