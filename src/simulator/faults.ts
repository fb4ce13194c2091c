/**
 * What a scenario's events do to the world. Every fault that lasts is undone exactly as it was
 * done, so overlapping ones add up.
 */

import type { ScenarioEvent } from './scenario.js'
import type { SimCluster } from './sim-cluster.js'
import type { SimNetwork } from './sim-network.js'
import type { SimProcess } from './sim-process.js'

export interface FaultTargets {
  readonly cluster: SimCluster
  readonly network: SimNetwork
  /** Numbers of the pods that join next. */
  readonly nextPod: () => number
  /** A process runs again: its waiting events and requests are to be handled. */
  readonly resume: (process: SimProcess) => void
  /** Runs `act` at a virtual time. */
  readonly at: (atMs: number, act: () => void) => void
}

export function applyEvent(event: ScenarioEvent, targets: FaultTargets): void {
  const { cluster } = targets
  switch (event.kind) {
    case 'partition':
      cutFor(event.untilMs, betweenGroups(event.groups), targets)
      return
    case 'block':
      cutFor(event.untilMs, allPairs(event.from, event.to), targets)
      return
    case 'pause':
      pauseFor(event.untilMs, event.pods, targets)
      return
    case 'join':
      for (let i = 0; i < event.count; i++) cluster.join(targets.nextPod())
      return
    case 'kill':
      for (const pod of event.pods) cluster.kill(pod)
      return
    case 'leave':
      for (const pod of event.pods) cluster.leave(pod)
      return
    case 'restart':
      for (const pod of event.pods) cluster.restart(pod)
      return
  }
}

type Direction = readonly [from: number, to: number]

function cutFor(untilMs: number, directions: readonly Direction[], targets: FaultTargets): void {
  for (const [from, to] of directions) targets.network.cut(from, to)
  targets.at(untilMs, () => {
    for (const [from, to] of directions) targets.network.mend(from, to)
  })
}

function pauseFor(untilMs: number, pods: readonly number[], targets: FaultTargets): void {
  const paused = pods.flatMap(pod => targets.cluster.of(pod) ?? []).filter(one => !one.paused)
  for (const process of paused) process.pause()
  targets.at(untilMs, () => {
    for (const process of paused) if (process.running) targets.resume(process)
  })
}

/** Both directions between any two pods of different groups. */
export function betweenGroups(groups: readonly (readonly number[])[]): Direction[] {
  return groups.flatMap((group, i) =>
    groups.flatMap((other, j) => (i === j ? [] : allPairs(group, other))),
  )
}

function allPairs(from: readonly number[], to: readonly number[]): Direction[] {
  return from.flatMap(a => to.filter(b => a !== b).map(b => [a, b] as const))
}
