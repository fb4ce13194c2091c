import { describe, expect, it } from 'vitest'
import { Awareness } from '../../../src/swim/awareness.js'
import { memberlistVectors } from '../../helpers/memberlist-vectors.js'

describe('awareness', () => {
  it('scores and scales as the Go library, row by row', () => {
    const rows = memberlistVectors.tables.awarenessMax8.rows
    const awareness = new Awareness(8)
    const ours = rows.map(({ delta }: { readonly delta: number }) => {
      awareness.applyDelta(delta)
      return { delta, scaled1000ms: awareness.scaleMs(1000), score: awareness.score }
    })
    expect(rows).not.toHaveLength(0)
    expect(ours).toEqual(rows)
  })

  it('a maximum of one turns it off', () => {
    const awareness = new Awareness(1)
    awareness.applyDelta(5)
    expect([awareness.score, awareness.scaleMs(200)]).toEqual([0, 200])
  })
})
