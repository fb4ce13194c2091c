/** The manual states numbers; they must be those of the code. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { lanDefaults, localDefaults, wanDefaults } from '../../../src/swim/options.js'

const manual = readFileSync(new URL('../../../docs/swim.md', import.meta.url), 'utf8')
const rows = manual
  .split('\n')
  .filter(line => line.startsWith('| `'))
  .map(line => line.split('|').map(cell => cell.trim()))
  .map(([, name = '', ...cells]) => ({ name: name.replaceAll('`', ''), cells }))
const described = (name: string) => rows.find(row => row.name === name)

describe('docs/swim.md', () => {
  it.each(Object.keys(lanDefaults).filter(name => name !== 'keys'))('states %s as it is', name => {
    const row = described(name)
    const key = name as keyof typeof lanDefaults
    const presets = [lanDefaults, wanDefaults, localDefaults].map(preset =>
      JSON.stringify(preset[key]),
    )
    expect(row, `${name} is in a table`).toBeDefined()
    // Three columns of presets, or one default for what Go does not have.
    const [lan, wan, local] = row!.cells
    const stated = row!.cells.length >= 5 ? [lan, wan, local] : [lan, lan, lan]
    expect(stated).toEqual(presets)
  })

  it('describes nothing that is not there', () => {
    const options = rows.filter(({ cells }) => /^("|\d|true|false)/.test(cells[0] ?? ''))
    expect(options.map(({ name }) => name).sort()).toEqual(
      Object.keys(lanDefaults)
        .filter(name => name !== 'keys')
        .sort(),
    )
  })

  it('names every kind of effect and every call of the delegate', () => {
    const seam = (file: string) =>
      readFileSync(new URL(`../../../src/swim/${file}`, import.meta.url), 'utf8')
    const kinds = [...seam('effects.ts').matchAll(/kind: '(\w+)'/g)].map(match => match[1]!)
    const calls = [...seam('delegate.ts').matchAll(/^ {2}(\w+)\??\(/gm)].map(match => match[1]!)
    expect(kinds.length + calls.length).toBeGreaterThan(15)
    expect([...kinds, ...calls].filter(word => !manual.includes(`\`${word}`))).toEqual([])
  })
})
