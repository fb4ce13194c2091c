import { describe, expect, it } from 'vitest'
import { parseYaml, textLengthMax, valuesMax } from '../../../src/config/yaml-text.js'

const messages = (text: string) =>
  parseYaml(text, 'f').findings.map(({ line, column, code }) => `${line}:${column} ${code}`)

describe('parseYaml', () => {
  it('knows where keys, values and list entries stand', () => {
    const [document] = parseYaml('a:\n  - x: 1\n  - {y: two}\nb: null\n', 'f').documents
    expect(document?.value).toEqual({ a: [{ x: 1 }, { y: 'two' }], b: null })
    expect(document?.keyAt(['a'])).toEqual({ line: 1, column: 1 })
    expect(document?.valueAt(['a', 0, 'x'])).toEqual({ line: 2, column: 8 })
    expect(document?.keyAt(['a', 1, 'y'])).toEqual({ line: 3, column: 6 })
    expect(document?.valueAt(['a', 1])).toEqual({ line: 3, column: 5 })
  })

  it('places what is missing at the nearest thing around it', () => {
    const [document] = parseYaml('a:\n  b: 1\n', 'f').documents
    expect(document?.valueAt(['a', 'c', 0])).toEqual({ line: 2, column: 3 })
    expect(document?.valueAt(['zzz'])).toEqual({ line: 1, column: 1 })
  })

  it('reads anchors and reports each use at its own place', () => {
    const [document] = parseYaml('a: &x [1]\nb: *x\n', 'f').documents
    expect(document?.value).toEqual({ a: [1], b: [1] })
  })

  it('keeps a key named __proto__ as a key', () => {
    const [document] = parseYaml('__proto__: { polluted: 1 }\n', 'f').documents
    expect(Object.keys(document?.value as object)).toEqual(['__proto__'])
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  it.each([
    ['a: 1\na: 2\n', ['2:1 duplicate-key']],
    ['{a: 1, a: 2}', ['1:8 duplicate-key']],
    ['? [a]\n: 1\n', ['1:3 yaml']],
    ['a: &a [*a]\n', ['1:8 too-deep']],
    [`${'['.repeat(40)}${']'.repeat(40)}`, ['1:34 too-deep']],
  ])('refuses %j with a place', (text, expected) => {
    expect(messages(text)).toEqual(expected)
  })

  it('ends quickly and without an exception on text made to be expensive', () => {
    const deep = '['.repeat(200_000)
    const bomb = ['a0: &a0 [x, x]']
    for (let n = 1; n < 60; n++) bomb.push(`a${n}: &a${n} [*a${n - 1}, *a${n - 1}]`)
    const wide = `a: [${'x, '.repeat(valuesMax)}]`
    const keys = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join('\n')
    for (const text of [deep, bomb.join('\n'), wide]) {
      expect(parseYaml(text, 'f').findings.length).toBeGreaterThan(0)
    }
    expect(parseYaml(keys, 'f').findings).toEqual([])
    expect(messages('x'.repeat(textLengthMax + 1))).toEqual(['1:1 too-large'])
  })

  it('gives an empty document for empty text and several for several', () => {
    expect(parseYaml('', 'f')).toEqual({ documents: [], findings: [] })
    expect(parseYaml('a: 1\n---\nb: 2\n', 'f').documents).toHaveLength(2)
  })

  it.each([
    ['k: |\n  one\n\n    two\n', 2],
    ['k: |2\n   one\n', 2],
    ['k: |\n\n    one\n      two\n', 4],
    ['a:\n    k: |-\n        one\n', 8],
  ])('finds the indent of the literal block in %j', (text, indent) => {
    const [document] = parseYaml(text, 'f').documents
    const path = text.startsWith('a') ? ['a', 'k'] : ['k']
    expect(document?.scalarAt(path)).toMatchObject({ literal: true, indent })
  })
})
