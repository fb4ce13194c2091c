/** One run of the accuracy matrix as a row of plain numbers, and how to get it. */
import { runScenario } from '../../src/simulator/run-scenario.js'
import type { Scenario } from '../../src/simulator/scenario.js'
import type { NodeFactory } from '../../src/simulator/sim-node.js'
import { type Injury, injuries, matrixCells } from './matrix.js'
import { loadScenario, onceFiles } from './scenario-files.js'

export interface Job {
  /** Name of the scenario file, without `.yaml`. */
  readonly file: string
  /** Name of the injury that is put on the network. */
  readonly injury: string
  readonly seed: number
}

export interface Row extends Job {
  readonly pods: number
  readonly ratio: number
  readonly above: number
  readonly below: number
  readonly excess: number
  readonly jain: number
  readonly falseDenials: number
  readonly settleMs: number | null
  readonly bytes: number
  readonly packets: number
  readonly offered: number
  /** Real time the simulation took. */
  readonly tookMs: number
}

/** Everything `npm run accuracy` runs, the long runs first so that two workers end together. */
export function allJobs(seed: number): Job[] {
  const matrix = matrixCells().flatMap(({ file }) =>
    injuries.map(injury => ({ file, injury: injury.name, seed })),
  )
  const once = onceFiles.map(file => ({ file, injury: 'none', seed }))
  return [...once, ...matrix].sort((a, b) => podsOf(b.file) - podsOf(a.file))
}

/** The scenario with an injured network. */
export function injured(scenario: Scenario, { loss, duplicate, reorder }: Injury): Scenario {
  return { ...scenario, network: { ...scenario.network, loss, duplicate, reorder } }
}

export function runJob(job: Job, makeNode?: NodeFactory): Row {
  const injury = injuries.find(({ name }) => name === job.injury)
  if (injury === undefined) throw new Error(`there is no injury ${job.injury}`)
  const scenario = injured(loadScenario(job.file), injury)
  const startedMs = performance.now()
  const result = runScenario(scenario, { seed: job.seed, ...(makeNode && { makeNode }) })
  return {
    ...job,
    pods: scenario.pods,
    ratio: result.ratio,
    above: result.worstSecondAbove,
    below: result.worstSecondBelow,
    excess: result.excessOverBurst,
    jain: result.jain,
    falseDenials: result.falseDenials,
    settleMs: result.settleMs,
    bytes: result.bytesPerPodPerSecond,
    packets: result.packetsPerPodPerSecond,
    offered: result.offered,
    tookMs: Math.round(performance.now() - startedMs),
  }
}

function podsOf(file: string): number {
  return Number(/^n(\d+)-/.exec(file)?.[1] ?? (file === 'thousand-keys' ? 1000 : 5))
}
