import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  clientAddress,
  isLocalPeer,
  peerText,
  trustedNetworks,
  unixPeer,
} from '../../../src/http/client-address.js'

const trusted = trustedNetworks(['10.0.0.0/8', '2001:db8:ffff::/48'])
const trusts = (address: string): boolean => trusted.contains(address)

describe('clientAddress', () => {
  it.each([
    ['the peer, when nobody forwarded', '192.0.2.1', undefined, '192.0.2.1'],
    ['the peer, when it is not trusted', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['the trusted proxy itself, without a header', '10.0.0.1', undefined, '10.0.0.1'],
    ['the last entry behind a trusted peer', '10.0.0.1', '1.1.1.1, 192.0.2.9', '192.0.2.9'],
    ['the entry left of trusted hops', '10.0.0.1', '192.0.2.9, 10.1.1.1,10.2.2.2', '192.0.2.9'],
    ['the left-most, when all are trusted', '10.0.0.1', '10.9.9.9, 10.8.8.8', '10.9.9.9'],
    ['the hop that reported garbage', '10.0.0.1', '192.0.2.9, unknown', '10.0.0.1'],
    ['the hop before garbage', '10.0.0.1', '192.0.2.9, _x, 10.3.3.3', '10.3.3.3'],
    ['the peer, for an empty header', '10.0.0.1', '', '10.0.0.1'],
    ['the peer, for a header of commas', '10.0.0.1', ',,', '10.0.0.1'],
    ['IPv4 out of a mapped peer', '::ffff:192.0.2.1', undefined, '192.0.2.1'],
    ['IPv4 out of a mapped trusted peer', '::ffff:10.0.0.1', '192.0.2.9', '192.0.2.9'],
    ['IPv4 out of a mapped entry', '10.0.0.1', '::ffff:192.0.2.9', '192.0.2.9'],
    ['canonical IPv6', '10.0.0.1', '2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['IPv6 behind a trusted IPv6 peer', '2001:db8:ffff::1', '2001:db8::5', '2001:db8::5'],
    ['an address without its port', '10.0.0.1', '192.0.2.9:4711', '192.0.2.9'],
    ['a bracketed address without its port', '10.0.0.1', '[2001:db8::5]:443', '2001:db8::5'],
    ['a link-local peer without its zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['text that is no address, as it is', unixPeer, '192.0.2.9', unixPeer],
  ])('is %s', (_what, peer, header, expected) => {
    expect(clientAddress(peer, header, trusts)).toBe(expected)
  })

  it('walks no more than 32 trusted hops', () => {
    const header = ['192.0.2.9', ...Array.from({ length: 40 }, () => '10.0.0.2')].join(', ')
    expect(clientAddress('10.0.0.1', header, trusts)).toBe('10.0.0.2')
  })

  it('what a client writes to the left of its own address never changes the answer', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.ipV4(),
        fc.array(fc.constant('10.7.7.7'), { maxLength: 4 }),
        (forged, client, hops) => {
          fc.pre(!trusts(client))
          const honest = [client, ...hops].join(', ')
          expect(clientAddress('10.0.0.1', `${forged}, ${honest}`, trusts)).toBe(client)
        },
      ),
    )
  })

  it('an untrusted peer is itself, whatever it claims', () => {
    fc.assert(
      fc.property(fc.string(), fc.ipV4(), (header, peer) => {
        fc.pre(!trusts(peer))
        expect(clientAddress(peer, header, trusts)).toBe(peer)
      }),
    )
  })
})

describe('isLocalPeer', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.8.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    [peerText(undefined), true],
    ['10.0.0.1', false],
    ['192.0.2.1', false],
    ['localhost', false],
  ])('%s: %s', (peer, local) => {
    expect(isLocalPeer(peer)).toBe(local)
  })
})
