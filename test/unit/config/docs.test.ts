import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { overrides } from '../../../src/config/overrides.js'
import { RulesFile } from '../../../src/config/rules-schema.js'
import { SidecarFile } from '../../../src/config/sidecar-schema.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(join(root, 'docs/config.md'), 'utf8')

describe('docs/config.md', () => {
  it('lists every flag and variable', () => {
    const rows = overrides.map(({ path, flag, env, kind }) => {
      const value = path.filter(step => step !== undefined).join('.')
      const note = kind === 'list' ? ' (commas)' : ''
      return `| \`${value}\`${note} | \`--${flag}\` | \`${env}\` |`
    })
    expect(rows.filter(row => !page.includes(row))).toEqual([])
  })

  it('has a section for every warning that is shown by a file in test/config/surprises', () => {
    const folder = join(root, 'test/config/surprises')
    const texts = readdirSync(folder).filter(name => name.endsWith('.txt'))
    const codes = texts.flatMap(name =>
      [...readFileSync(join(folder, name), 'utf8').matchAll(/warning: .* \[([a-z-]+)\]$/gm)].map(
        match => match[1] ?? '',
      ),
    )
    expect(codes.length).toBeGreaterThan(15)
    expect(codes.filter(code => !page.includes(`\n### \`${code}\`\n`))).toEqual([])
  })

  it('has no section for a warning that no file shows', () => {
    const folder = join(root, 'test/config')
    const shown = ['surprises', 'bad'].flatMap(kind =>
      readdirSync(join(folder, kind))
        .filter(name => name.endsWith('.txt'))
        .map(name => readFileSync(join(folder, kind, name), 'utf8')),
    )
    const sections = [...page.matchAll(/^### `([a-z-]+)`$/gm)].map(match => match[1] ?? '')
    expect(sections.filter(code => !shown.some(text => text.includes(`[${code}]`)))).toEqual([])
  })

  it('names every key of both files', () => {
    const sections = Object.entries(SidecarFile.properties)
    const keys = sections.flatMap(([section, schema]) => {
      const inner = (schema as { readonly properties?: object }).properties
      if (inner === undefined || ['rulesFrom', 'identity'].includes(section)) return [section]
      return Object.keys(inner).map(key => `${section}.${key}`)
    })
    const rule = RulesFile.properties.rules.items.properties
    const known = new Set(['version', 'grpc.listen', 'identity'])
    const missing = [...keys, ...Object.keys(rule)].filter(key => {
      return !known.has(key) && !page.includes(`\`${key}\``) && !page.includes(`\`${key},`)
    })
    expect(missing).toEqual([])
  })
})
