import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { didYouMean, editDistance, nearest } from '../../../src/config/did-you-mean.js'

describe('nearest', () => {
  const known = ['limit', 'tier', 'onPartition', 'failureMode', 'maxWait', 'ip']

  it.each([
    ['limti', 'limit'],
    ['Limit', 'limit'],
    ['on_partition', 'onPartition'],
    ['failuremode', 'failureMode'],
    ['max-wait', 'maxWait'],
    ['ipp', 'ip'],
    ['burst', null],
    ['x', null],
    ['', null],
    ['l'.repeat(200), null],
  ])('of %j is %j', (word, expected) => {
    expect(nearest(word, known)).toBe(expected)
  })

  it('is worded as a question', () => {
    expect(didYouMean('teir', known)).toBe('; did you mean "tier"?')
    expect(didYouMean('zzz', known)).toBe('')
  })
})

describe('editDistance', () => {
  it('is zero for equal words only, and the same both ways', () => {
    const word = fc.stringMatching(/^[abc]{0,6}$/)
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b, 100)
        expect(distance).toBe(editDistance(b, a, 100))
        expect(distance === 0).toBe(a === b)
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
        expect(editDistance(a, b, 2)).toBe(Math.min(2, distance))
      }),
    )
  })

  it('counts a swap of neighbours once', () => {
    expect(editDistance('limti', 'limit', 9)).toBe(1)
    expect(editDistance('kitten', 'sitting', 9)).toBe(3)
  })
})
