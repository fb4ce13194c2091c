import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { jsonPatch, pointerSteps } from '../../../src/injector/json-patch.js'
import { applyPatch } from '../../helpers/apply-patch.js'

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<unknown>

describe('a JSON patch', () => {
  test('applied to what it was made from, gives what it was made for', () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(applyPatch(before, jsonPatch(before, after))).toEqual(after)
      }),
    )
  })

  test('of equal values is empty', () => {
    fc.assert(
      fc.property(json, value => {
        expect(jsonPatch(value, value)).toEqual([])
      }),
    )
  })

  test('adds at the front or the end of a list of named things without rewriting it', () => {
    const a = { name: 'a', image: '1' }
    const b = { name: 'b' }
    expect(jsonPatch({ list: [a] }, { list: [b, { ...a, image: '2' }] })).toEqual([
      { op: 'add', path: '/list/0', value: b },
      { op: 'replace', path: '/list/1/image', value: '2' },
    ])
    expect(jsonPatch({ list: [a] }, { list: [a, b] })).toEqual([
      { op: 'add', path: '/list/-', value: b },
    ])
  })

  test('escapes what has a meaning in pointers', () => {
    const patch = jsonPatch({}, { 'grapevine.dev/status~x': 1 })
    expect(patch).toEqual([{ op: 'add', path: '/grapevine.dev~1status~0x', value: 1 }])
    expect(pointerSteps('/grapevine.dev~1status~0x/0')).toEqual(['grapevine.dev/status~x', '0'])
  })
})
