import { describe, expect, it } from 'vitest'
import {
  readAddress,
  readDuration,
  readKeyPart,
  readLimit,
  readListen,
  readSecretRef,
  readTimezone,
  readUpstream,
} from '../../../src/config/grammar.js'
import { grammars } from '../../../src/config/schema-terms.js'

const day = 24 * 3600 * 1000
const error = (words: string) => ({ ok: false, error: expect.stringContaining(words) })

describe('readDuration', () => {
  it.each([
    ['30s', 30_000],
    ['s', 1000],
    ['5m', 300_000],
    ['5min', 300_000],
    ['1.5h', 5_400_000],
    ['2d', 2 * day],
  ])('%s is %d ms', (text, value) => {
    expect(readDuration(text)).toEqual({ ok: true, value })
  })

  it.each([
    ['', 'NUMBER and a unit'],
    ['5', 'NUMBER and a unit'],
    ['-5s', 'NUMBER and a unit'],
    ['5 s', 'NUMBER and a unit'],
    ['1e3s', 'NUMBER and a unit'],
    ['0s', 'above 0'],
    ['367d', 'at most 366d'],
    ['day', 'calendar window'],
    ['5seconds', 'did you mean s?'],
    ['5Hours', 'did you mean h?'],
    ['5w', 'unknown unit'],
    ['5constructor', 'unknown unit'],
    ['500ms', 'simulations only'],
  ])('refuses %j', (text, words) => {
    expect(readDuration(text)).toEqual(error(words))
  })

  it('reads milliseconds in simulations', () => {
    expect(readDuration('2ms', { milliseconds: true })).toEqual({ ok: true, value: 2 })
  })
})

describe('readLimit', () => {
  it.each([
    ['100/1s', 100, 1000, null],
    ['100/h', 100, 3_600_000, null],
    ['1/30s', 1, 30_000, null],
    ['2.5/10m', 2.5, 600_000, null],
    ['5/15min', 5, 900_000, null],
    ['10000/day', 10_000, day, 'day'],
    ['10000/1day', 10_000, day, 'day'],
    ['100/d', 100, day, null],
    ['7/week', 7, 7 * day, 'week'],
    ['1000000/month', 1_000_000, 30 * day, 'month'],
  ])('%s', (text, count, windowMs, calendar) => {
    expect(readLimit(text)).toEqual({ ok: true, value: { count, windowMs, calendar } })
  })

  it.each([
    ['100', 'COUNT/DURATION'],
    ['/1s', 'COUNT'],
    ['100/', 'NUMBER and a unit'],
    ['0/1s', 'above 0'],
    ['1e3/1s', 'plain number'],
    ['1_000/1s', 'plain number'],
    ['NaN/1s', 'plain number'],
    ['9999999999999999/1s', 'at most'],
    ['100/2weeks', 'for several days'],
    ['100/0.5s', 'at least 1s'],
    ['100/100ms', 'simulations only'],
  ])('refuses %j', (text, words) => {
    expect(readLimit(text)).toEqual(error(words))
  })

  it('reads windows below a second in simulations', () => {
    const value = { count: 5, windowMs: 100, calendar: null }
    expect(readLimit('5/100ms', { milliseconds: true })).toEqual({ ok: true, value })
  })
})

describe('readKeyPart', () => {
  it('reads alternatives in order, header names in lower case, others as they are', () => {
    const text = 'header:X-Api-Key | cookie:SID|query:Key |jwt:https://x.example/plan| ip'
    expect(readKeyPart(text)).toEqual({
      ok: true,
      value: [
        { kind: 'header', name: 'x-api-key' },
        { kind: 'cookie', name: 'SID' },
        { kind: 'query', name: 'Key' },
        { kind: 'jwt', name: 'https://x.example/plan' },
        { kind: 'ip' },
      ],
    })
  })

  it.each([
    ['', 'unknown key source'],
    ['ip |', 'unknown key source'],
    ['adress', 'unknown key source'],
    ['headers:x', 'did you mean "header"?'],
    ['header', 'needs a name'],
    ['cookie:a b', 'cannot be the name of a cookie'],
    ['global:x', 'takes no name'],
    ['__proto__', 'unknown key source'],
    [`jwt:${'x'.repeat(300)}`, 'longer than'],
  ])('refuses %j', (text, words) => {
    expect(readKeyPart(text)).toEqual(error(words))
  })
})

describe('addresses', () => {
  it.each([
    ['127.0.0.1:7946', '127.0.0.1', 7946],
    ['[::1]:7946', '::1', 7946],
    [':7946', '0.0.0.0', 7946],
    ['localhost:0', 'localhost', 0],
  ])('%s', (text, host, port) => {
    expect(readAddress(text)).toEqual({ ok: true, value: { host, port } })
    expect(readListen(text)).toEqual({ ok: true, value: { kind: 'tcp', host, port } })
  })

  it.each(['127.0.0.1', '::1:7946', 'a:b', 'a:70000', '', 'http://a:1', '[a]:1'])(
    'refuses %j',
    text => {
      expect(readAddress(text).ok).toBe(false)
      expect(readListen(text).ok).toBe(false)
    },
  )

  it('take a default port where there is one', () => {
    const value = { host: 'gossip.shop.svc', port: 7946 }
    expect(readAddress('gossip.shop.svc', 7946)).toEqual({ ok: true, value })
  })

  it('may be a unix socket for listeners', () => {
    const value = { kind: 'unix', path: '/run/grapevine.sock' }
    expect(readListen('unix:/run/grapevine.sock')).toEqual({ ok: true, value })
    expect(readListen('unix:///run/grapevine.sock')).toEqual({ ok: true, value })
    expect(readListen('unix:run.sock')).toEqual(error('absolute path'))
    expect(readListen(`unix:/${'x'.repeat(200)}`)).toEqual(error('103 bytes'))
  })
})

describe('readUpstream', () => {
  it.each([
    ['http://127.0.0.1:3000', 'http', { kind: 'tcp', host: '127.0.0.1', port: 3000 }],
    ['http://127.0.0.1:3000/', 'http', { kind: 'tcp', host: '127.0.0.1', port: 3000 }],
    ['http://app', 'http', { kind: 'tcp', host: 'app', port: 80 }],
    ['h2c://[::1]:50051', 'h2c', { kind: 'tcp', host: '::1', port: 50051 }],
    ['unix:/run/app.sock', 'http', { kind: 'unix', path: '/run/app.sock' }],
  ])('%s', (text, protocol, address) => {
    expect(readUpstream(text)).toEqual({ ok: true, value: { protocol, address, text } })
  })

  it.each([
    '127.0.0.1:3000',
    'https://a:1',
    'http://a:1/x',
    'http://u@a:1',
    'http://',
    'http://a:0',
  ])('refuses %j', text => {
    expect(readUpstream(text).ok).toBe(false)
  })
})

describe('other grammars', () => {
  it('tell a file from a secret', () => {
    expect(readSecretRef('file:/keys/a')).toEqual({
      ok: true,
      value: { kind: 'file', path: '/keys/a' },
    })
    expect(readSecretRef('file:///keys/a')).toEqual({
      ok: true,
      value: { kind: 'file', path: '/keys/a' },
    })
    expect(readSecretRef('hush')).toEqual({ ok: true, value: { kind: 'text', text: 'hush' } })
    expect(readSecretRef('file:')).toEqual(error('file:PATH'))
  })

  it('know the time zones of this runtime', () => {
    expect(readTimezone('America/New_York').ok).toBe(true)
    expect(readTimezone('UTC').ok).toBe(true)
    expect(readTimezone('Mars/Olympus')).toEqual(error('unknown time zone'))
  })

  it.each([
    ['duration', ['1s', 'h', '1.5min', '2d']],
    ['limit', ['1/1s', '2.5/h', '3/day', '4/1month']],
    ['keyPart', ['ip', 'header:a | ip', 'jwt:x', 'global']],
    ['headerName', ['X-Env', 'x_y']],
    ['path', ['/a', '**', '**/a', '{/a,/b}']],
    ['cidr', ['10.0.0.0/8', '::/0', '::1', '::ffff:10.0.0.0/104']],
    ['address', [':1', 'a:1', '[::1]:1']],
    ['dnsName', ['a.b.svc', 'a:1']],
    ['listen', [':1', 'unix:/a', '[::1]:1']],
    ['upstream', ['http://a', 'h2c://a:1', 'unix:/a']],
    ['secret', ['file:/a', 'anything']],
    ['gossipKey', ['file:/a', Buffer.alloc(32).toString('base64')]],
    ['jwks', ['https://a/b', 'file:/a']],
    ['timezone', ['UTC', 'America/Port-au-Prince', 'Etc/GMT+1']],
  ] as const)('%s: the pattern for editors takes what the reader takes', (name, texts) => {
    const { read, pattern } = grammars[name]
    for (const text of texts) {
      expect([text, read(text).ok, new RegExp(pattern, 'u').test(text)]).toEqual([text, true, true])
    }
  })
})
