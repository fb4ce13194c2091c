/** The scenario files beside this module. */
import { readFileSync } from 'node:fs'
import { parseScenario } from '../../src/simulator/parse-scenario.js'
import type { Scenario } from '../../src/simulator/scenario.js'

/** Scenarios beside the matrix, each run once as it is. */
export const onceFiles = [
  'split-open',
  'split-share',
  'split-closed',
  'split-3s-open',
  'split-3s-share',
  'split-3s-closed',
  'one-way-link',
  'paused-pod',
  'rolling-restart',
  'scale-5-to-8',
  'thousand-keys',
] as const

export function loadScenario(file: string): Scenario {
  const text = readFileSync(new URL(`scenarios/${file}.yaml`, import.meta.url), 'utf8')
  const parsed = parseScenario(text)
  if (!parsed.ok) throw new Error(`${file}: ${JSON.stringify(parsed.problems)}`)
  return parsed.scenario
}
