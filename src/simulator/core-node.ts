/**
 * The real `Core` as a simulated node: the options production would give it, chance from the seed.
 */
import { Core } from '../core.js'
import type { RuleSet } from '../limiter/rule.js'
import { lanDefaults } from '../swim/options.js'
import type { MemberName, RuleName } from '../vocabulary.js'
import type { Scenario, ScenarioRule } from './scenario.js'
import type { NodeFactory, NodeIdentity, SimNode } from './sim-node.js'

/** The one rule's name; its counters' identity. */
export const simulatedRule = 'simulated' as RuleName

/** `counters.keys` of a sidecar, unless configured (product.md §3). */
const keysDefault = 100_000
const keysMin = 1024

export function coreNode(scenario: Scenario): NodeFactory {
  const rules = ruleSet(scenario.rule)
  const keysMax = keysFor(scenario)
  return identity => asSimNode(realCore(identity, rules, keysMax))
}

/**
 * Room for every client of a scenario with as much to spare, and not the production default: two
 * hundred tables of 100,000 keys would be gigabytes of zeros.
 */
export function keysFor(scenario: Scenario): number {
  const clients = scenario.traffic.reduce((most, entry) => Math.max(most, entry.keys), 1)
  return Math.min(keysDefault, Math.max(keysMin, 2 * clients))
}

/** The `Core` itself, for checkers that look inside. */
export function realCore(identity: NodeIdentity, rules: RuleSet, keysMax: number): Core {
  return new Core(
    {
      node: identity.node,
      version: 'simulated',
      startWallMs: identity.startWallMs,
      swim: {
        ...lanDefaults,
        label: 'simulated',
        name: `${identity.node}-${identity.start}` as MemberName,
        advertise: identity.address,
      },
      counters: { keysMax, secret: null },
      rules,
    },
    {
      random: identity.random.fork('random').stream(),
      entropy: identity.random.fork('entropy').entropy(),
    },
  )
}

/** Adds what the simulator asks beside the `Core`'s own methods. */
export function asSimNode(core: Core): SimNode {
  return Object.assign(core, {
    alivePeers: () =>
      core.members().filter(member => !member.self && member.state === 'alive').length,
  })
}

export function ruleSet(rule: ScenarioRule): RuleSet {
  return {
    allow: [],
    deny: [],
    rules: [
      {
        name: simulatedRule,
        match: null,
        key: rule.key,
        limit: rule.limit,
        tier: null,
        concurrency: null,
        burst: rule.burst,
        algorithm: rule.algorithm,
        queue: rule.queue,
        maxWaitMs: rule.maxWaitMs,
        onPartition: rule.onPartition,
        failureMode: 'open',
        mode: 'enforce',
        missing: 'ip',
        stop: false,
        count: 'all',
        cost: { fallback: 1, match: [], requestHeader: null, responseHeader: null },
        onExceeded: { status: 429, headers: {}, body: null, staleForMs: 0 },
        timezone: 'UTC',
      },
    ],
    hash: 1,
  }
}
