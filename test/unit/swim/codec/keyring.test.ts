import { describe, expect, it } from 'vitest'
import { Keyring, keysMax } from '../../../../src/swim/codec/keyring.js'

const key = (fill: number, length = 32) => new Uint8Array(length).fill(fill)
const fillsOf = (ring: Keyring) => ring.keys.map(({ bytes }) => bytes[0])

describe('the keyring', () => {
  it('takes keys of 16, 24 and 32 bytes, each with its own cipher', () => {
    const ring = new Keyring([key(1, 16), key(2, 24), key(3, 32)])

    const algorithms = ring.keys.map(({ algorithm }) => algorithm)
    expect(algorithms).toEqual(['aes-128-gcm', 'aes-192-gcm', 'aes-256-gcm'])
    for (const length of [0, 15, 17, 31, 33]) expect(ring.add(key(4, length))).toBe('keyLength')
  })

  it('rotates: add, use, remove', () => {
    const ring = new Keyring([key(1)])

    expect(ring.add(key(2))).toBeNull()
    expect(fillsOf(ring)).toEqual([1, 2])
    expect(ring.use(key(2))).toBeNull()
    expect(fillsOf(ring)).toEqual([2, 1])
    expect(ring.remove(key(1))).toBeNull()
    expect(fillsOf(ring)).toEqual([2])
  })

  it('keeps its primary key and refuses to use a stranger', () => {
    const ring = new Keyring([key(1), key(2)])

    expect(ring.remove(key(1))).toBe('keyPrimary')
    expect(ring.use(key(3))).toBe('keyUnknown')
    expect(fillsOf(ring)).toEqual([1, 2])
  })

  it('holds each key once and no more than its maximum', () => {
    const ring = new Keyring([key(1), key(1), key(2)])
    expect(fillsOf(ring)).toEqual([1, 2])

    for (let fill = 3; fill <= keysMax; fill++) ring.add(key(fill))

    expect(ring.size).toBe(keysMax)
    expect(ring.add(key(1))).toBeNull()
    expect(ring.add(key(99))).toBe('ringFull')
  })

  it('a replacement with a bad key changes nothing', () => {
    const ring = new Keyring([key(1)])

    expect(ring.replace([key(2), key(3, 5)])).toBe('keyLength')
    expect(fillsOf(ring)).toEqual([1])
    expect(ring.replace([])).toBeNull()
    expect([ring.size, ring.primary]).toEqual([0, null])
  })

  it('is not changed by a caller that reuses its key bytes', () => {
    const bytes = key(1)
    const ring = new Keyring([bytes])
    bytes.fill(9)

    expect(fillsOf(ring)).toEqual([1])
  })
})
