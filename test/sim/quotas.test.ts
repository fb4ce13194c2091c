/** Quotas over days and months in a fleet that loses every pod, one after the other. */
import { describe, expect, it } from 'vitest'
import type { Core } from '../../src/core.js'
import { simulatedRule } from '../../src/simulator/core-node.js'
import type { SimWorld } from '../../src/simulator/sim-world.js'
import { fleetOf, scenarioOf } from './fleet.js'

const pods = 5
/** Times between charges, milliseconds; virtual time 0 is midnight, give or take a pod's clock. */
const stepMs = 50
const startMs = 1000

interface Fleet {
  readonly world: SimWorld
  readonly cores: readonly Core[]
}

/** No traffic of its own: the tests charge by themselves, in larger units than one. */
function fleet(limit: string, events: string): Fleet {
  const scenario = scenarioOf(`
pods: ${pods}
duration: 60s
rule: { limit: ${limit} }
traffic: [{ pods: [0], rate: 0.001, from: 59s }]
network: { latency: 2ms, jitter: 1ms }
events: [${events}]
`)
  return fleetOf(scenario, 5)
}

/** The processes that receive traffic. */
function ready({ world }: Fleet) {
  return world.cluster.running().filter(process => process.ready)
}

function ask(parts: Fleet, process: ReturnType<typeof ready>[number], cost: number) {
  let answer: { allowed: boolean; remaining: number } | null = null
  process.step((_, monotonicMs, wallMs) => {
    const core = parts.cores[process.id]!
    const decision = core.check(simulatedRule, ['global'], cost, monotonicMs, wallMs)
    if (decision !== null) answer = { allowed: decision.allowed, remaining: decision.remaining }
  })
  return answer as { allowed: boolean; remaining: number } | null
}

/** What each pod that receives traffic says is left. */
function views(parts: Fleet): (number | undefined)[] {
  return ready(parts).map(process => ask(parts, process, 0)?.remaining)
}

/** Charges `each` at every pod in turn, until `untilMs`; how much was admitted. */
function charge(parts: Fleet, each: number, fromMs: number, untilMs: number): number {
  let admitted = 0
  let turn = 0
  for (let atMs = fromMs; atMs < untilMs; atMs += stepMs) {
    parts.world.runUntil(atMs)
    const targets = ready(parts)
    if (ask(parts, targets[turn++ % targets.length]!, each)?.allowed) admitted += each
  }
  return admitted
}

/** A new pod for each old one, which leaves when the new one has had two seconds. */
const rolling = [0, 1, 2, 3, 4]
  .map(
    pod =>
      `{ at: ${5010 + 4000 * pod}ms, join: 1 }, { at: ${7010 + 4000 * pod}ms, leave: [${pod}] }`,
  )
  .join(', ')
const crashes = [0, 1, 2, 3, 4].map(pod => `{ at: ${5010 + 4000 * pod}ms, restart: [${pod}] }`)

describe.each([
  { limit: '10000/day', count: 10_000 },
  { limit: '1000000/month', count: 1_000_000 },
])('a quota of $limit', ({ limit, count }) => {
  const each = count / 1000

  it('is spent once, to the unit, while every pod is replaced by another', () => {
    const parts = fleet(limit, rolling)
    const spent = charge(parts, each, startMs, 30_000)
    expect(spent).toBe(580 * each)
    expect(parts.cores).toHaveLength(2 * pods)
    parts.world.runUntil(32_000)
    expect(views(parts)).toEqual(Array(pods).fill(count - spent))
    // More than is left is asked for.
    const rest = charge(parts, each * 2, 32_000, 50_000)
    expect(spent + rest).toBe(count)
    parts.world.runUntil(55_000)
    // Whatever each asks for, no more than the rest of it is in the whole fleet.
    const late = ready(parts).filter(process => ask(parts, process, each * 10)?.allowed)
    expect(late).toEqual([])
  })

  it('loses at most a second of each pod’s charges when every pod is killed and restarted', () => {
    const parts = fleet(limit, crashes.join(', '))
    const spent = charge(parts, each, startMs, 30_000)
    parts.world.runUntil(32_000)
    const left = views(parts)
    expect(new Set(left).size).toBe(1)
    const forgotten = left[0]! - (count - spent)
    expect(forgotten).toBeGreaterThanOrEqual(0)
    expect(forgotten).toBeLessThanOrEqual(pods * (1000 / stepMs / pods) * each)
  })

  it.each([0, 1, 2, 3, 4])('outlives pod %i, killed a second after its last request', pod => {
    const parts = fleet(limit, `{ at: 3000ms, kill: [${pod}] }`)
    const spent = charge(parts, 10 * each, startMs, 2000)
    expect(spent).toBe(200 * each)
    parts.world.runUntil(20_000)
    expect(views(parts)).toEqual(Array(pods - 1).fill(count - spent))
  })
})
