/**
 * `npm run accuracy`: runs the whole matrix on two worker processes and writes `docs/accuracy.md`.
 * Flags: `--seed N` (default 1), `--only TEXT` (files whose name contains it; writes no page unless
 * `--out` is given), `--injury NAME`, `--out FILE`, `--workers N`, `--rows FILE` (the rows as
 * JSON).
 */
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { accuracyPage } from './accuracy-page.js'
import { allJobs, type Job, type Row, runJob } from './accuracy-rows.js'
import { checkBars } from './bars.js'

if (process.send === undefined) await main()
else serve(process.send.bind(process))

/** A worker: one job in, one row out, until the parent is done with it. */
function serve(send: (row: Row) => void): void {
  process.on('message', job => send(runJob(job as Job)))
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: '1' },
      only: { type: 'string', default: '' },
      injury: { type: 'string', default: '' },
      out: { type: 'string' },
      rows: { type: 'string' },
      workers: { type: 'string', default: '2' },
    },
  })
  const seed = Number(values.seed)
  const commit = commitOf()
  const jobs = allJobs(seed).filter(
    job => job.file.includes(values.only) && (values.injury === '' || job.injury === values.injury),
  )
  if (jobs.length === 0) throw new Error('no scenario and injury of that name')
  const rows = await runAll(jobs, Number(values.workers))
  rows.sort((a, b) => (a.file + a.injury < b.file + b.injury ? -1 : 1))
  for (const bar of checkBars(rows.filter(row => row.injury === 'none' && /^n\d/.test(row.file)))) {
    console.log(`${bar.held ? 'held  ' : 'MISSED'} ${bar.says}: ${bar.measured}`)
  }
  if (values.rows !== undefined) writeFileSync(values.rows, JSON.stringify(rows))
  const whole = values.only === '' && values.injury === ''
  const page = fileURLToPath(new URL('../../docs/accuracy.md', import.meta.url))
  const out = values.out ?? (whole ? page : undefined)
  if (out !== undefined) writeFileSync(out, accuracyPage(rows, flagsOf(values), commit))
}

/** The commit that is checked out, marked where files differ from it; null outside a clone. */
function commitOf(): string | null {
  const args = ['describe', '--always', '--exclude', '*', '--dirty']
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}

/** The flags that decide what is run. */
function flagsOf(values: { seed: string; only: string; injury: string }): string {
  const only = values.only === '' ? '' : ` --only ${values.only}`
  const injury = values.injury === '' ? '' : ` --injury ${values.injury}`
  return `--seed ${values.seed}${only}${injury}`
}

/** Hands the jobs out one at a time; resolves when every row is back. */
function runAll(jobs: readonly Job[], workers: number): Promise<Row[]> {
  const rows: Row[] = []
  let next = 0
  return new Promise((resolve, reject) => {
    const feed = (worker: ChildProcess): void => {
      const job = jobs[next++]
      if (job === undefined) worker.disconnect()
      else worker.send(job)
    }
    const start = (): void => {
      const worker = fork(fileURLToPath(import.meta.url))
      worker.on('message', message => {
        const row = message as Row
        rows.push(row)
        console.error(
          `${rows.length}/${jobs.length} ${row.file} (${row.injury}): ratio ${row.ratio}, ` +
            `excess ${row.excess}, Jain ${row.jain}, ${row.tookMs} ms`,
        )
        feed(worker)
        if (rows.length === jobs.length) resolve(rows)
      })
      worker.on('exit', status => {
        if (status !== 0) reject(new Error(`a worker ended with status ${status}`))
      })
      feed(worker)
    }
    for (let i = 0; i < Math.max(1, Math.min(workers, jobs.length)); i++) start()
  })
}
