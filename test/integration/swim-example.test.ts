import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
// Named so that the type checker reads the example; it is run in processes of its own.
import type {} from '../../docs/examples/swim-node.js'

const example = fileURLToPath(new URL('../../docs/examples/swim-node.ts', import.meta.url))
const root = fileURLToPath(new URL('../..', import.meta.url))
const patienceMs = 20_000

/** The example as a process, and the lines it printed. */
class ExampleNode {
  readonly process: ChildProcess
  readonly lines: string[] = []
  readonly exited: Promise<number | null>
  #changed: () => void = () => undefined

  constructor(...args: string[]) {
    this.process = spawn(process.execPath, ['--import', 'tsx', example, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.exited = new Promise(resolve => this.process.on('exit', resolve))
    createInterface({ input: this.process.stdout! }).on('line', line => {
      this.lines.push(line)
      this.#changed()
    })
  }

  /** Waits for a line. */
  async says(pattern: RegExp): Promise<string> {
    const deadline = Date.now() + patienceMs
    for (;;) {
      const line = this.lines.find(text => pattern.test(text))
      if (line !== undefined) return line
      if (Date.now() > deadline) throw new Error(`no ${pattern} in: ${this.lines.join(' | ')}`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, 200)
        this.#changed = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

const running: ExampleNode[] = []

function launch(...args: string[]): ExampleNode {
  const node = new ExampleNode(...args)
  running.push(node)
  return node
}

afterEach(async () => {
  for (const { process: child } of running) child.kill('SIGKILL')
  await Promise.all(running.splice(0).map(({ exited }) => exited))
})

describe('the example of docs/swim.md', () => {
  it('two processes meet, exchange state, greet each other and part in peace', async () => {
    const alpha = launch('alpha', '0')
    const port = /\d+/.exec(await alpha.says(/^listening/))![0]
    const beta = launch('beta', '0', port)
    await Promise.all([
      alpha.says(/^join beta$/),
      beta.says(/^join alpha$/),
      beta.says(/^exchange with \d+: done$/),
      beta.says(/^merged state of alpha$/),
      alpha.says(/^merged state of beta$/),
      alpha.says(/^message hello alpha, beta here$/),
      beta.says(/^message hello beta, alpha here$/),
    ])
    beta.process.kill('SIGTERM')
    await alpha.says(/^leave beta$/)
    expect(await beta.exited).toBe(0)
  }, 60_000)

  it('is short enough to be read at once', () => {
    expect(readFileSync(example, 'utf8').split('\n').length).toBeLessThanOrEqual(125)
  })
})
