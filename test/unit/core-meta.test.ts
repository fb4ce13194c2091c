import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeNodeMeta, encodeNodeMeta, metaBytesMax } from '../../src/core-meta.js'
import type { NodeMeta } from '../../src/core-types.js'
import type { OriginId } from '../../src/vocabulary.js'

const metas = fc.record({
  node: fc.string({ minLength: 1, maxLength: 253, unit: 'grapheme-ascii' }),
  origin: fc.bigInt(0n, (1n << 64n) - 1n).map(n => n.toString(16).padStart(16, '0') as OriginId),
  start: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  version: fc.stringMatching(/^[0-9a-z.+-]{1,32}$/),
  configHash: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  draining: fc.boolean(),
})

describe('node meta', () => {
  it('comes back as it was written, within what memberlist allows', () => {
    fc.assert(
      fc.property(metas, meta => {
        const bytes = encodeNodeMeta(meta)
        expect(bytes.length).toBeLessThanOrEqual(metaBytesMax)
        expect(decodeNodeMeta(bytes)).toEqual(meta)
      }),
    )
  })

  it('of a foreign member is no meta of ours, whatever its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), bytes => {
        expect(decodeNodeMeta(bytes)).toBeNull()
      }),
    )
  })

  it('cut short or damaged is refused or still well formed, never an exception', () => {
    fc.assert(
      fc.property(metas, fc.nat(), fc.nat(255), (meta, at, byte) => {
        const bytes = encodeNodeMeta(meta)
        bytes[at % bytes.length] = byte
        const seen = decodeNodeMeta(bytes.subarray(0, 1 + (at % bytes.length)))
        if (seen) expect(seen.origin).toMatch(/^[0-9a-f]{16}$/)
      }),
    )
  })

  it('keeps the spaces of a node name', () => {
    const meta: NodeMeta = {
      node: 'a node with spaces',
      origin: '00000000000000ff' as OriginId,
      start: 1,
      version: '1.2.3',
      configHash: 7,
      draining: true,
    }
    expect(decodeNodeMeta(encodeNodeMeta(meta))).toEqual(meta)
  })
})
