import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BucketHistogram } from '../../../src/lib/bucket-histogram.js'

describe('BucketHistogram', () => {
  it('counts a value that equals a bound below it, and one above all bounds last', () => {
    const histogram = new BucketHistogram([1, 10])
    histogram.record(1)
    histogram.record(1.5, 2)
    histogram.record(11)
    expect(histogram.counts()).toEqual([1, 2, 1])
    expect(histogram.sum).toBe(15)
    expect(histogram.total).toBe(4)
  })

  it('leaves out what is no number', () => {
    const histogram = new BucketHistogram([1])
    histogram.record(Number.NaN)
    expect(histogram.total).toBe(0)
  })

  it('loses no observation', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true })), values => {
        const histogram = new BucketHistogram([-1, 0, 1])
        for (const value of values) histogram.record(value)
        return histogram.total === values.length
      }),
    )
  })
})
