/**
 * Every mistake is a file named for it in test/config/bad, with what is said about it beside it; the
 * same for test/config/surprises, which are valid. `-u` writes the texts: read them before committing.
 */
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkFiles } from '../../../src/config/check.js'
import { formatFinding } from '../../../src/config/finding.js'

const root = fileURLToPath(new URL('../../config', import.meta.url))
const examples = fileURLToPath(new URL('../../../docs/examples', import.meta.url))
const env = { POD_NAME: 'shop-1', POD_IP: '10.0.0.7' }

function yamlFiles(folder: string): string[] {
  return readdirSync(folder).filter(name => name.endsWith('.yaml'))
}

async function check(folder: string, name: string) {
  const { ok, findings } = await checkFiles([join(folder, name)], { env })
  const lines = findings.map(finding => {
    return formatFinding(finding).replaceAll(`${folder}/`, '')
  })
  return { ok, text: lines.map(line => `${line}\n`).join(''), findings }
}

describe('a configuration mistake', () => {
  it.each(yamlFiles(join(root, 'bad')))(
    '%s is an error with its place and the remedy',
    async name => {
      const { ok, text, findings } = await check(join(root, 'bad'), name)
      expect(ok).toBe(false)
      expect(findings.filter(({ level, line }) => level === 'error' && line === 0)).toEqual([])
      const expected = join(root, 'bad', `${basename(name, '.yaml')}.txt`)
      await expect(text).toMatchFileSnapshot(expected)
    },
  )
})

describe('a surprising configuration', () => {
  it.each(yamlFiles(join(root, 'surprises')))('%s is valid, with a warning', async name => {
    const { ok, text, findings } = await check(join(root, 'surprises'), name)
    expect(ok).toBe(true)
    expect(findings.length).toBeGreaterThan(0)
    const expected = join(root, 'surprises', `${basename(name, '.yaml')}.txt`)
    await expect(text).toMatchFileSnapshot(expected)
  })
})

describe('a good configuration', () => {
  it.each(yamlFiles(join(root, 'good')))('%s is valid without a word', async name => {
    const { ok, text } = await check(join(root, 'good'), name)
    expect(text).toBe('')
    expect(ok).toBe(true)
  })

  it.each(yamlFiles(examples))('the example %s is valid without a word', async name => {
    const { ok, text } = await check(examples, name)
    expect(text).toBe('')
    expect(ok).toBe(true)
  })

  it('is what there are examples of, five at least', () => {
    expect(yamlFiles(examples).length).toBeGreaterThanOrEqual(5)
  })
})
