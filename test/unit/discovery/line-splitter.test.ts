import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineSplitter } from '../../../src/discovery/line-splitter.js'

test('lines are the same however the bytes come in pieces', () => {
  const line = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map(text => {
    const plain = text.replace(/\s/g, '').trim()
    return plain === '' ? 'x' : plain
  })
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(400)), (lines, cuts) => {
      const bytes = Buffer.from(lines.map(one => `${one}\n`).join(''))
      const splitter = new LineSplitter(1_000)
      const places = [0, ...cuts.map(cut => Math.min(cut, bytes.length)), bytes.length]
      places.sort((a, b) => a - b)
      const found = places.flatMap((place, index) =>
        splitter.push(bytes.subarray(places[index - 1] ?? 0, place)),
      )
      expect(found).toEqual(lines)
      expect(splitter.overflowed).toBe(false)
    }),
  )
})

test('empty lines are no lines, and what has no end yet is none either', () => {
  const splitter = new LineSplitter(100)
  expect(splitter.push(Buffer.from('\n\r\na\r\n\nb'))).toEqual(['a'])
  expect(splitter.push(Buffer.from('\n'))).toEqual(['b'])
})

test('a line beyond the bound ends it all, those before it stand', () => {
  const splitter = new LineSplitter(4)
  expect(splitter.push(Buffer.from('four\nfives\nmore\n'))).toEqual(['four'])
  expect(splitter.overflowed).toBe(true)
  expect(splitter.push(Buffer.from('x\n'))).toEqual([])
})

test('a line beyond the bound is noticed before it ends', () => {
  const splitter = new LineSplitter(4)
  splitter.push(Buffer.from('abc'))
  expect(splitter.overflowed).toBe(false)
  splitter.push(Buffer.from('de'))
  expect(splitter.overflowed).toBe(true)
})
