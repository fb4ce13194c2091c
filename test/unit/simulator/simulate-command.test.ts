import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { simulateCommand } from '../../../src/simulator/simulate-command.js'

let folder: string
let file: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'grapevine-simulate-'))
  file = join(folder, 'scenario.yaml')
  writeFileSync(
    file,
    'pods: 2\nduration: 2s\nrule: { limit: 50/1s }\ntraffic: [{ pods: all, rate: 40 }]\n',
  )
})

afterAll(() => rmSync(folder, { recursive: true }))

function run(
  args: Omit<Parameters<typeof simulateCommand>[0], 'scenario'> & { scenario?: string },
) {
  let stdout = ''
  let stderr = ''
  const status = simulateCommand(
    { scenario: file, ...args },
    {
      stdout: {
        write: text => {
          stdout += text
        },
      },
      stderr: {
        write: text => {
          stderr += text
        },
        isTty: false,
      },
    },
  )
  return { status, stdout, stderr }
}

describe('simulateCommand', () => {
  it('prints one JSON object on stdout and progress on stderr, the same for the same seed', () => {
    const first = run({ json: true, seed: 3 })
    expect(first.status).toBe(0)
    expect(JSON.parse(first.stdout)).toMatchObject({ seed: 3 })
    expect(first.stdout.split('\n')).toHaveLength(2)
    expect(first.stderr).toContain('simulated 2 s of 2 s')
    expect(run({ json: true, seed: 3 }).stdout).toBe(first.stdout)
  })

  it('prints a table for people without --json', () => {
    const { stdout } = run({})
    expect(stdout).toMatch(/^limit +50\/1s over the fleet\n/)
    expect(stdout).toMatch(/\npod 1 +\d+ of \d+ /)
  })

  it('writes the report where it is told to', () => {
    const report = join(folder, 'report.html')
    const { status, stderr } = run({ report })
    expect(status).toBe(0)
    expect(stderr).toContain(`report: ${report}`)
    expect(readFileSync(report, 'utf8')).toContain('scenario.yaml')
  })

  it('says where a scenario is wrong, and that a file is missing', () => {
    const wrong = join(folder, 'wrong.yaml')
    writeFileSync(
      wrong,
      'pods: 2\nduration: 2s\nrule: { limit: x }\ntraffic: [{ pods: all, rate: 1 }]\n',
    )
    expect(run({ scenario: wrong })).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `${wrong}:3:9: rule.limit must be COUNT/DURATION such as 1000/1s, not "x"\n`,
    })
    const missing = join(folder, 'missing.yaml')
    expect(run({ scenario: missing })).toMatchObject({ status: 1, stdout: '' })
    expect(run({ report: join(folder, 'no', 'report.html') }).status).toBe(1)
  })
})
