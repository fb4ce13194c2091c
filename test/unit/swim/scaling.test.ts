import { describe, expect, it } from 'vitest'
import {
  confirmationsExpected,
  pushPullScaleMs,
  remainingSuspicionMs,
  retransmitLimit,
  suspicionTimeoutMs,
} from '../../../src/swim/scaling.js'
import { memberlistVectors } from '../../helpers/memberlist-vectors.js'

type Row = Readonly<Record<string, number>>
const rowsOf = (table: string): readonly Row[] => memberlistVectors.tables[table].rows
const suspicionMult = 4
const probeIntervalMs = 1000

describe('the formulas give the numbers of the Go library', () => {
  it('retransmit limit', () => {
    const rows = rowsOf('retransmitLimit')
    const ours = rows.map(({ mult, n }) => ({ mult, n, limit: retransmitLimit(mult!, n!) }))
    expect(rows.length).toBeGreaterThan(100)
    expect(ours).toEqual(rows)
  })

  it('suspicion timeout', () => {
    const rows = rowsOf('suspicionTimeout')
    const ours = rows.map(({ mult, n, intervalMs }) => ({
      mult,
      n,
      intervalMs,
      timeoutMs: suspicionTimeoutMs(mult!, n!, intervalMs!),
    }))
    expect(rows.length).toBeGreaterThan(100)
    expect(ours).toEqual(rows)
  })

  it('start of a suspicion: expected confirmations, shortest and longest time', () => {
    const rows = rowsOf('suspicionStart')
    const ours = rows.map(row => {
      const nodes = row.nodesIncludingSelfAndTarget!
      const minMs = suspicionTimeoutMs(suspicionMult, nodes, probeIntervalMs)
      const k = confirmationsExpected(suspicionMult, nodes)
      return { nodesIncludingSelfAndTarget: nodes, suspicionMult, k, minMs, maxMs: 6 * minMs }
    })
    expect(rows).not.toHaveLength(0)
    expect(ours).toEqual(rows)
  })

  it('time left of a suspicion after confirmations', () => {
    const rows = rowsOf('remainingSuspicionTime')
    const ours = rows.map(({ confirmations, elapsedMs, k, minMs, maxMs }) => ({
      confirmations,
      elapsedMs,
      k,
      minMs,
      maxMs,
      remainingMs: remainingSuspicionMs(confirmations!, k!, elapsedMs!, minMs!, maxMs!),
    }))
    expect(rows).not.toHaveLength(0)
    expect(ours).toEqual(rows)
  })

  it('push/pull interval', () => {
    const rows = rowsOf('pushPullScale')
    const ours = rows.map(({ n, baseMs }) => ({
      n,
      baseMs,
      scaledMs: pushPullScaleMs(baseMs!, n!),
    }))
    expect(rows).not.toHaveLength(0)
    expect(ours).toEqual(rows)
  })
})
