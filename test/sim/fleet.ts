/** Worlds of real cores for tests that look inside, and slices of what they admitted. */
import type { Core } from '../../src/core.js'
import { asSimNode, keysFor, realCore, ruleSet } from '../../src/simulator/core-node.js'
import { parseScenario } from '../../src/simulator/parse-scenario.js'
import type { Scenario } from '../../src/simulator/scenario.js'
import { SimWorld } from '../../src/simulator/sim-world.js'

export function scenarioOf(text: string): Scenario {
  const parsed = parseScenario(text)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return parsed.scenario
}

/** A world and the cores in it, by process number. */
export function fleetOf(scenario: Scenario, seed: number): { world: SimWorld; cores: Core[] } {
  const cores: Core[] = []
  const rules = ruleSet(scenario.rule)
  const world = new SimWorld(scenario, seed, identity => {
    const core = realCore(identity, rules, keysFor(scenario))
    cores.push(core)
    return asSimNode(core)
  })
  return { world, cores }
}

/** Admitted by some pods in the whole seconds `from` (inclusive) to `to` (exclusive). */
export function admittedIn(
  podAdmitted: readonly (readonly number[])[],
  pods: readonly number[],
  from: number,
  to: number,
): number {
  return pods.reduce(
    (sum, pod) => sum + podAdmitted[pod]!.slice(from, to).reduce((all, one) => all + one, 0),
    0,
  )
}
