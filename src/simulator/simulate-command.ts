/**
 * `grapevine simulate`: reads a scenario, runs it with progress on stderr, prints or draws the
 * result.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { formatProblem, parseScenario } from './parse-scenario.js'
import { reportHtml } from './report.js'
import { resultJson, runScenario, type SimResult } from './run-scenario.js'
import type { Scenario } from './scenario.js'

export interface SimulateArgs {
  /** Path of the scenario, YAML. */
  readonly scenario: string
  /** One JSON object on stdout instead of the text. */
  readonly json?: boolean
  /** 0..2^53 - 1; default 1. */
  readonly seed?: number
  /** Where to write the HTML page, if anywhere. */
  readonly report?: string
}

export interface SimulateIo {
  readonly stdout: { write(text: string): void }
  readonly stderr: { write(text: string): void; readonly isTty: boolean }
}

export const defaultSeed = 1

/** Exit status: 0 simulated, 1 the file is missing or invalid or the page cannot be written. */
export function simulateCommand(args: SimulateArgs, io: SimulateIo): 0 | 1 {
  const say = (text: string) => io.stderr.write(`${text}\n`)
  let text: string
  try {
    text = readFileSync(args.scenario, 'utf8')
  } catch (error) {
    say(`${args.scenario}: cannot be read: ${reason(error)}`)
    return 1
  }
  const parsed = parseScenario(text)
  if (!parsed.ok) {
    for (const problem of parsed.problems) say(formatProblem(args.scenario, problem))
    return 1
  }
  const result = runScenario(parsed.scenario, {
    seed: args.seed ?? defaultSeed,
    progress: progressOn(io),
  })
  sayMishaps(result, say)
  if (args.report !== undefined) {
    try {
      writeFileSync(args.report, reportHtml(parsed.scenario, result, basename(args.scenario)))
    } catch (error) {
      say(`${args.report}: cannot be written: ${reason(error)}`)
      return 1
    }
    say(`report: ${args.report}`)
  }
  const output = args.json === true ? resultJson(result) : resultText(parsed.scenario, result)
  io.stdout.write(`${output}\n`)
  return 0
}

/** On a terminal one line that is rewritten, elsewhere a line per tenth of the run. */
function progressOn(io: SimulateIo): (atMs: number, durationMs: number) => void {
  let tenths = 0
  return (atMs, durationMs) => {
    const share = atMs / durationMs
    const line = `simulated ${(atMs / 1000).toFixed(0)} s of ${durationMs / 1000} s`
    if (io.stderr.isTty) {
      io.stderr.write(`\r${line}${share >= 1 ? '\n' : ''}`)
    } else if (Math.floor(share * 10) > tenths) {
      tenths = Math.floor(share * 10)
      io.stderr.write(`${line}\n`)
    }
  }
}

function sayMishaps({ mishaps }: SimResult, say: (text: string) => void): void {
  const { packetsOversize, packetsDropped, requestsDropped } = mishaps
  if (packetsOversize > 0) say(`${packetsOversize} packets were larger than the MTU`)
  if (packetsDropped > 0) say(`${packetsDropped} packets did not fit into a paused pod's socket`)
  if (requestsDropped > 0) say(`${requestsDropped} requests did not fit into a paused pod's queue`)
}

/** The same numbers as `--json`, for people. */
export function resultText(scenario: Scenario, result: SimResult): string {
  const percent = (value: number) => `${(value * 100).toFixed(2)} %`
  const { limit } = scenario.rule
  const lines: readonly (readonly [string, string])[] = [
    ['limit', `${limit.count}/${limit.calendar ?? `${limit.windowMs / 1000}s`} over the fleet`],
    ['offered', String(result.offered)],
    ['admitted', `${result.admitted} (one ideal limiter: ${result.ideal})`],
    ['admitted / ideal', result.ratio.toFixed(4)],
    [
      'worst second',
      `${percent(result.worstSecondAbove)} above, ${percent(result.worstSecondBelow)} below`,
    ],
    ['excess over burst', percent(result.excessOverBurst)],
    ['fairness (Jain)', result.jain.toFixed(4)],
    ['false denials', String(result.falseDenials)],
    [
      'settled',
      result.settleMs === null ? 'never' : `within ${result.settleMs} ms of every change`,
    ],
    [
      'gossip per pod',
      `${result.packetsPerPodPerSecond} packets/s, ${result.bytesPerPodPerSecond} bytes/s`,
    ],
    ['seed', String(result.seed)],
  ]
  const table = lines.map(([name, value]) => `${name.padEnd(18)} ${value}`)
  const pods = result.perPod.map((pod, i) => {
    const share = pod.offered === 0 ? '-' : percent(pod.admitted / pod.offered)
    return `pod ${String(i).padEnd(14)} ${pod.admitted} of ${pod.offered} (${share})`
  })
  return [...table, ...pods].join('\n')
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
