import { describe, expect, it } from 'vitest'
import {
  CidrSet,
  canonicalIp,
  cidrContains,
  clientGroup,
  formatIpv4,
  parseCidr,
  parseIp,
  parseIpv4,
} from '../../../src/limiter/cidr.js'

describe('parseIpv4', () => {
  it.each([
    ['0.0.0.0', 0],
    ['127.0.0.1', 0x7f000001],
    ['192.0.2.7', 0xc0000207],
    ['255.255.255.255', 0xffffffff],
  ])('reads %s and writes it again', (text, word) => {
    expect(parseIpv4(text)).toBe(word)
    expect(formatIpv4(word)).toBe(text)
  })

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '010.0.0.1',
    '0x7f.0.0.1',
    '1..2.3',
    '1.2.3.',
    ' 1.2.3.4',
  ])('refuses %j, which others may read in another way', text => {
    expect(parseIpv4(text)).toBe(-1)
  })
})

describe('canonicalIp', () => {
  it.each([
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:c000:207', '192.0.2.7'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    ['192.0.2.7', '192.0.2.7'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalIp(text)).toBe(canonical)
  })

  it.each(['', 'example.com', ':', '1::2::3', '12345::', `${'1:'.repeat(40)}1`, '[::1]'])(
    '%j is no address',
    text => {
      expect(canonicalIp(text)).toBeNull()
    },
  )
})

describe('clientGroup', () => {
  it('takes an IPv6 client by its /64, so that 2^64 addresses are one client', () => {
    expect(clientGroup('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
    expect(clientGroup('2001:db8:1:2::ffff')).toBe('2001:db8:1:2::/64')
    expect(clientGroup('2001:db8:1:3::1')).toBe('2001:db8:1:3::/64')
  })

  it('takes an IPv4 client by its address, mapped or not', () => {
    expect(clientGroup('192.0.2.7')).toBe('192.0.2.7')
    expect(clientGroup('::ffff:192.0.2.7')).toBe('192.0.2.7')
  })

  it('leaves text that is no address as it is', () => {
    expect(clientGroup('')).toBe('')
    expect(clientGroup('unix:')).toBe('unix:')
  })
})

describe('parseCidr', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', '11.0.0.1'],
    ['10.1.2.3/8', '10.255.0.1', '11.0.0.1'],
    ['0.0.0.0/0', '203.0.113.9', '::1'],
    ['192.0.2.7', '192.0.2.7', '192.0.2.8'],
    ['192.0.2.6/31', '192.0.2.7', '192.0.2.8'],
    ['2001:db8::/33', '2001:db8:7fff::1', '2001:db8:8000::1'],
    ['::1', '::1', '::2'],
    ['::/0', '2001:db8::1', '10.0.0.1'],
    ['::ffff:10.0.0.0/104', '10.1.1.1', '11.0.0.1'],
    ['10.0.0.0/8', '::ffff:10.9.9.9', '::10.9.9.9'],
  ])('%s holds %s but not %s', (network, inside, outside) => {
    const cidr = parseCidr(network)!
    expect(cidrContains(cidr, parseIp(inside)!)).toBe(true)
    expect(cidrContains(cidr, parseIp(outside)!)).toBe(false)
  })

  it.each([
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0.0/',
    '::/129',
    'a/8',
    '/8',
    '10/8',
    'fe80::1%eth0/64',
    '::ffff:10.0.0.0/90',
  ])('refuses %s', text => {
    expect(parseCidr(text)).toBeNull()
  })
})

describe('CidrSet', () => {
  it('answers by address, also when the same one is asked again', () => {
    const set = new CidrSet([parseCidr('10.0.0.0/8')!, parseCidr('2001:db8::/32')!])
    const asked = ['10.1.1.1', '10.1.1.1', '11.1.1.1', '11.1.1.1', '2001:db8::9', 'nonsense', '']
    expect(asked.map(text => set.contains(text))).toEqual([
      true,
      true,
      false,
      false,
      true,
      false,
      false,
    ])
    expect(new CidrSet([]).contains('10.1.1.1')).toBe(false)
  })
})
