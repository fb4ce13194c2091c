import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressBytesOf, hostOf, sameBytes } from '../../../src/swim/address-bytes.js'

const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]

describe('addresses', () => {
  it.each([
    ['10.0.0.1', [10, 0, 0, 1]],
    ['::ffff:10.0.0.1', [10, 0, 0, 1]],
    ['::1', [...Array(15).fill(0), 1]],
    ['::', Array(16).fill(0)],
    ['fe80::1%eth0', [0xfe, 0x80, ...Array(13).fill(0), 1]],
    ['2001:db8::8:800:200c:417a', [0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 8, 8, 0, 32, 12, 0x41, 0x7a]],
  ])('%s is announced as its shortest byte form', (text, bytes) => {
    expect([...(addressBytesOf(text) ?? [])]).toEqual(bytes)
  })

  it.each([
    '',
    'host',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    '1::2::3',
    ':::',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7',
    '12345::',
    '1.2.3.4::',
  ])('%s is no address', text => {
    expect(addressBytesOf(text)).toBeNull()
  })

  it('a mapped IPv4 address is reached as IPv4', () => {
    expect(hostOf(Uint8Array.from([...mapped, 10, 1, 2, 3]))).toBe('10.1.2.3')
  })

  it.each([0, 1, 5, 15, 17])('%d bytes are no address', length => {
    expect(hostOf(new Uint8Array(length))).toBeNull()
  })

  it('the longest run of zeros is shortened, a single zero is not', () => {
    const bytes = addressBytesOf('2001:0:0:1:0:0:0:1')!
    expect(hostOf(bytes)).toBe('2001:0:0:1::1')
    expect(hostOf(addressBytesOf('1:0:2:3:4:5:6:7')!)).toBe('1:0:2:3:4:5:6:7')
  })

  it('text and bytes are inverse to each other', () => {
    fc.assert(
      fc.property(fc.ipV6(), text => {
        const bytes = addressBytesOf(text)
        expect(bytes).not.toBeNull()
        const again = addressBytesOf(hostOf(bytes!)!)
        expect(sameBytes(again!, bytes!)).toBe(true)
      }),
    )
  })
})
