/**
 * A part of the accuracy matrix, short enough for every `npm test`; `npm run accuracy` runs all of
 * it. The bars are those of counters.md §7.
 */
import { describe, expect, it } from 'vitest'
import { runScenario } from '../../src/simulator/run-scenario.js'
import type { Row } from './accuracy-rows.js'
import { checkBars, checkThousandKeys } from './bars.js'
import { matrixCells } from './matrix.js'
import { loadScenario } from './scenario-files.js'

/** Runs the first `seconds` of a scenario file. */
function run(file: string, seconds: number): Row {
  const scenario = { ...loadScenario(file), durationMs: seconds * 1000 }
  const result = runScenario(scenario, { seed: 7 })
  return {
    file,
    injury: 'none',
    seed: result.seed,
    pods: scenario.pods,
    ratio: result.ratio,
    above: result.worstSecondAbove,
    below: result.worstSecondBelow,
    excess: result.excessOverBurst,
    jain: result.jain,
    falseDenials: result.falseDenials,
    settleMs: result.settleMs,
    bytes: result.bytesPerPodPerSecond,
    packets: result.packetsPerPodPerSecond,
    offered: result.offered,
    tookMs: 0,
  }
}

/** One line per run: what a reader of a failure wants to see. */
function lines(rows: readonly Row[]): string {
  return rows
    .map(row => {
      const { file, ratio, excess, jain, falseDenials, settleMs } = row
      return `${file}: ratio ${ratio}, excess ${excess}, Jain ${jain}, false ${falseDenials}, settle ${settleMs}`
    })
    .join('\n')
}

describe('a part of the accuracy matrix', { timeout: 180_000 }, () => {
  it('keeps the bars for five pods under every load, and for twenty and fifty under some', () => {
    const small = matrixCells()
      .filter(cell => cell.pods === 5)
      .map(({ file, limit }) => run(file, limit.pace > 1 ? 120 : 8))
    const rows = [
      ...small,
      run('n20-r1000-b1000-late-comers', 6),
      run('n20-r1000-b100-moving-hot-pod', 6),
      run('n20-r100-b10-even-2x', 6),
      run('n20-100-per-minute-even-2x', 120),
      run('n50-r1000-b100-skewed-3x', 3),
      run('n50-100-per-minute-hot-pod', 60),
    ]
    const missed = checkBars(rows).filter(bar => !bar.held && !/^false denials/.test(bar.says))
    expect(missed, lines(rows)).toEqual([])
    // A burst of ten requests over five pods leaves no room for what is still on its way: 2 %.
    for (const row of rows.filter(({ file }) => /0\.8x$/.test(file))) {
      const allowed = /-b10-/.test(row.file) ? 0.02 * row.offered : 0
      expect(row.falseDenials, row.file).toBeLessThanOrEqual(allowed)
    }
  })

  it('holds a thousand hot keys, and sends at most three times as much for them as for one', () => {
    const missed = checkThousandKeys(run('thousand-keys', 1)).filter(bar => !bar.held)
    expect(missed).toEqual([])
  })
})
