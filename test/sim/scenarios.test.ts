import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { cellYaml, matrixCells } from './matrix.js'
import { loadScenario, onceFiles } from './scenario-files.js'

const files = readdirSync(new URL('scenarios/', import.meta.url))

describe('scenario files', () => {
  it('of the matrix are what the generator writes (test/sim/write-scenarios.ts)', () => {
    for (const cell of matrixCells()) {
      const url = new URL(`scenarios/${cell.file}.yaml`, import.meta.url)
      expect(readFileSync(url, 'utf8'), cell.file).toBe(cellYaml(cell))
    }
  })

  it('are the matrix and the single ones, and nothing else', () => {
    const known = [...matrixCells().map(cell => cell.file), ...onceFiles]
    expect(files.sort()).toEqual(known.map(name => `${name}.yaml`).sort())
  })

  it('are all valid', () => {
    for (const file of files) expect(() => loadScenario(file.replace('.yaml', ''))).not.toThrow()
  })

  it('of the matrix offer what their names say', () => {
    for (const cell of matrixCells()) {
      const factor = /(?:even|skewed)-(\d(?:\.\d)?)x$/.exec(cell.file)?.[1]
      if (factor === undefined) continue
      const { traffic, pods } = loadScenario(cell.file)
      const offered = traffic.reduce(
        (sum, entry) =>
          sum + entry.ratePerSecond * (entry.pods === 'all' ? pods : entry.pods.length),
        0,
      )
      expect(offered / cell.limit.rate, cell.file).toBeCloseTo(Number(factor), 2)
    }
  })
})
