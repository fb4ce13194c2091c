import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadRules, rulesOf } from '../../src/config/load.js'
import { readSnapshot, type Snapshot } from '../../src/config/snapshot.js'
import { type PathWatch, watchPath } from '../../src/config/watch.js'

/** A change must be reported within 2 s; the margin is for a loaded machine. */
const waitMs = 10_000

const rulesText = (limit: string) =>
  `version: 1\nrules:\n  - { name: api, key: [ip], limit: ${limit} }\n`

/** What a watch has reported, to be awaited in order. */
class Reports {
  readonly #seen: Snapshot[] = []
  #wake: (() => void) | null = null

  readonly listen = (snapshot: Snapshot): void => {
    this.#seen.push(snapshot)
    this.#wake?.()
  }

  get count(): number {
    return this.#seen.length
  }

  async next(): Promise<Snapshot> {
    const deadline = Date.now() + waitMs
    while (this.#seen.length === 0) {
      const left = deadline - Date.now()
      if (left <= 0) throw new Error('no change was reported')
      await new Promise<void>(resolve => {
        this.#wake = resolve
        setTimeout(resolve, left).unref()
      })
    }
    return this.#seen.shift()!
  }

  /** Reports until one satisfies: a slow write may be seen half done. */
  async until(satisfied: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
    for (;;) {
      const snapshot = await this.next()
      if (satisfied(snapshot)) return snapshot
    }
  }
}

describe('watchPath', () => {
  let folder = ''
  let watch: PathWatch | null = null
  let reports = new Reports()

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grapevine-watch-'))
    reports = new Reports()
  })
  afterEach(async () => {
    watch?.close()
    watch = null
    await rm(folder, { recursive: true, force: true })
  })

  const start = async (path: string): Promise<void> => {
    const { digest } = await readSnapshot(path)
    watch = watchPath(path, reports.listen, { digest })
    await watch.check()
  }

  const limitOf = (snapshot: Snapshot, path: string): number | string => {
    const result = rulesOf(snapshot, path)
    if (!result.ok) return result.findings[0]?.code ?? 'no finding'
    return result.rules.rules[0]?.limit?.count ?? 'no rule'
  }

  it('reports a file that is rewritten in place, within two seconds', async () => {
    const path = join(folder, 'rules.yaml')
    await writeFile(path, rulesText('10/1s'))
    await start(path)
    await writeFile(path, rulesText('20/1s'))
    await reports.until(snapshot => limitOf(snapshot, path) === 20)
    await writeFile(path, rulesText('30/1s'))
    await reports.until(snapshot => limitOf(snapshot, path) === 30)
  })

  it('reports a file that is replaced by rename, again and again', async () => {
    const path = join(folder, 'rules.yaml')
    await writeFile(path, rulesText('10/1s'))
    await start(path)
    for (const count of [20, 30, 40]) {
      await writeFile(join(folder, 'next'), rulesText(`${count}/1s`))
      await rename(join(folder, 'next'), path)
      expect(limitOf(await reports.next(), path)).toBe(count)
    }
  })

  it.each(['the folder', 'a file in it'])(
    'reports a ConfigMap whose ..data link is swapped, watching %s',
    async what => {
      await mkdir(join(folder, '..1'))
      await writeFile(join(folder, '..1', 'rules.yaml'), rulesText('10/1s'))
      await symlink('..1', join(folder, '..data'))
      await symlink(join('..data', 'rules.yaml'), join(folder, 'rules.yaml'))
      const path = what === 'the folder' ? folder : join(folder, 'rules.yaml')
      await start(path)

      for (const revision of [2, 3]) {
        await mkdir(join(folder, `..${revision}`))
        await writeFile(join(folder, `..${revision}`, 'rules.yaml'), rulesText(`${revision}0/1s`))
        await symlink(`..${revision}`, join(folder, '..data_tmp'))
        await rename(join(folder, '..data_tmp'), join(folder, '..data'))
        await rm(join(folder, `..${revision - 1}`), { recursive: true })
        expect(limitOf(await reports.next(), path)).toBe(revision * 10)
      }
    },
  )

  it('reports files that come to a folder and go from it', async () => {
    await writeFile(join(folder, 'a.yaml'), rulesText('10/1s'))
    await start(folder)
    await writeFile(join(folder, 'b.yaml'), 'version: 1\ndeny: [{ path: /x }]\n')
    await reports.until(({ files }) => files.length === 2)
    await unlink(join(folder, 'b.yaml'))
    await reports.until(({ files }) => files.length === 1)
  })

  it('reports content that is invalid, and the file when it is gone and when it is back', async () => {
    const path = join(folder, 'rules.yaml')
    await writeFile(path, rulesText('10/1s'))
    await start(path)
    await writeFile(path, 'rules: [')
    await reports.until(snapshot => limitOf(snapshot, path) === 'yaml')
    await unlink(path)
    await reports.until(({ error }) => error !== null)
    await writeFile(path, rulesText('10/1s'))
    await reports.until(snapshot => limitOf(snapshot, path) === 10)
  })

  it('starts on a path that is not there yet', async () => {
    const path = join(folder, 'later', 'rules.yaml')
    await start(path)
    await mkdir(join(folder, 'later'))
    await writeFile(path, rulesText('10/1s'))
    await reports.until(snapshot => limitOf(snapshot, path) === 10)
  })

  it('is silent when a file is written with what it held, and after it is closed', async () => {
    const path = join(folder, 'rules.yaml')
    await writeFile(path, rulesText('10/1s'))
    await start(path)
    await writeFile(join(folder, 'next'), rulesText('10/1s'))
    await rename(join(folder, 'next'), path)
    await watch?.check()
    await watch?.check()
    expect(reports.count).toBe(0)
    watch?.close()
    await writeFile(path, rulesText('20/1s'))
    await watch?.check()
    expect(reports.count).toBe(0)
  })

  it('reports a change that happened between loading and watching', async () => {
    const path = join(folder, 'rules.yaml')
    await writeFile(path, rulesText('10/1s'))
    const { digest } = await loadRules(path)
    await writeFile(path, rulesText('20/1s'))
    watch = watchPath(path, reports.listen, { digest })
    expect(limitOf(await reports.next(), path)).toBe(20)
  })
})

describe('readSnapshot', () => {
  it('says in words why nothing could be read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grapevine-snapshot-'))
    await writeFile(join(folder, 'big.yaml'), 'x'.repeat(2 * 1024 * 1024))
    await mkdir(join(folder, 'empty'))
    const errors = await Promise.all(
      ['big.yaml', 'empty', 'missing'].map(async name => {
        const { error, files } = await readSnapshot(join(folder, name))
        return [files.length, error?.replace(folder, '')]
      }),
    )
    await rm(folder, { recursive: true })
    expect(errors).toEqual([
      [0, '/big.yaml is larger than 1048576 bytes'],
      [0, '/empty holds no *.yaml file'],
      [0, '/missing does not exist'],
    ])
  })
})
