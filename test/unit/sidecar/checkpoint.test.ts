import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Checkpoint } from '../../../src/sidecar/checkpoint.js'

let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'grapevine-checkpoint-'))
})

afterEach(() => rm(directory, { recursive: true, force: true }))

function checkpoint(path: string, accept = true) {
  const lines: string[] = []
  const imported: string[] = []
  let writes = 0
  const log = { info: note('info'), warn: note('warn') }
  function note(level: string) {
    return (_fields: object, text: string) => void lines.push(`${level} ${text}`)
  }
  const one = new Checkpoint(path, {
    log: log as never,
    exportTotals: () => {
      writes += 1
      return new Uint8Array(Buffer.from(`totals ${writes}`))
    },
    importTotals: bytes => {
      imported.push(Buffer.from(bytes).toString())
      return accept
    },
  })
  return { one, lines, imported }
}

test('what was written last is restored, and no draft is left behind', async () => {
  const path = join(directory, 'totals')
  const { one } = checkpoint(path)
  one.start()
  await Promise.all([one.write(), one.write(), one.stop()])
  expect(await readFile(path, 'utf8')).toBe('totals 3')
  expect(await readdir(directory)).toEqual(['totals'])
  const again = checkpoint(path)
  await again.one.restore()
  expect(again.imported).toEqual(['totals 3'])
  expect(again.lines).toEqual(['info checkpoint read'])
})

test('a first start has no file and no complaint', async () => {
  const { one, lines, imported } = checkpoint(join(directory, 'totals'))
  await one.restore()
  expect({ lines, imported }).toEqual({ lines: [], imported: [] })
})

test('a file that is none is left out, and said', async () => {
  const path = join(directory, 'totals')
  await writeFile(path, 'garbage')
  const { one, lines } = checkpoint(path, false)
  await one.restore()
  expect(lines).toEqual(['warn not a checkpoint; starting without one'])
})

test('a place that cannot be written to is a warning, not the end', async () => {
  const { one, lines } = checkpoint(join(directory, 'missing', 'totals'))
  await one.stop()
  expect(lines).toEqual(['warn checkpoint cannot be written'])
})
