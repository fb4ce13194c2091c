import { describe, expect, it } from 'vitest'
import { Suspicion } from '../../../src/swim/suspicion.js'
import type { MemberName } from '../../../src/vocabulary.js'

const name = (text: string) => text as MemberName
const lanOfSix = { expected: 2, minMs: 4000, maxMs: 24_000 }

describe('a suspicion', () => {
  // vec:observedTimelines, a real node among six: 24, 11.381 and 4 seconds.
  it.each([
    [0, 24_000],
    [1, 11_381],
    [2, 4000],
  ])('with %d confirmations lasts %d ms in a LAN of six', (confirmations, lastsMs) => {
    const suspicion = new Suspicion(name('accuser'), lanOfSix, 1000)
    for (let i = 0; i < confirmations; i++) suspicion.confirm(name(`witness-${i}`), 1200)
    expect(suspicion.deadlineMs - 1000).toBe(lastsMs)
  })

  it('counts each accuser once, the first one included', () => {
    const suspicion = new Suspicion(name('a'), lanOfSix, 0)
    expect(['a', 'b', 'b', 'a'].map(from => suspicion.confirm(name(from), 1))).toEqual([
      false,
      true,
      false,
      false,
    ])
    expect(suspicion.confirmations).toBe(1)
  })

  it('takes no more confirmations than it expects', () => {
    const suspicion = new Suspicion(name('a'), lanOfSix, 0)
    expect(['b', 'c', 'd'].map(from => suspicion.confirm(name(from), 1))).toEqual([
      true,
      true,
      false,
    ])
  })

  it('ends in the past when the last confirmation comes late, so that it is due at once', () => {
    const suspicion = new Suspicion(name('a'), lanOfSix, 0)
    suspicion.confirm(name('b'), 6000)
    suspicion.confirm(name('c'), 9000)
    expect(suspicion.deadlineMs).toBe(4000)
  })

  it('that expects nobody starts at its minimum and cannot be shortened', () => {
    const suspicion = new Suspicion(name('a'), { ...lanOfSix, expected: 0 }, 0)
    expect(suspicion.confirm(name('b'), 1)).toBe(false)
    expect(suspicion.deadlineMs).toBe(4000)
  })
})
