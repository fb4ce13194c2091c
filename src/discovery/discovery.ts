/**
 * What every way of finding peers has in common. A discovery says where to look, and, where it can
 * (the Kubernetes API), who should be there; it neither dials nor knows members.
 */
import type { Address } from '../vocabulary.js'

/** Everything a discovery knows at one time; each report replaces the one before. */
export interface Discovered {
  /** Addresses worth a state exchange. May hold the own one, which does no harm. */
  readonly seeds: readonly Address[]
  /**
   * The pods that should answer; null where silence cannot be told from departure (static, DNS).
   */
  readonly expected: readonly Address[] | null
}

/** How a look-up that fails is made known; the last report stays in force. */
export interface DiscoveryProblem {
  readonly source: string
  readonly text: string
}

export interface DiscoveryListener {
  found(discovered: Discovered): void
  failed(problem: DiscoveryProblem): void
}

export interface Discovery {
  /** For logs: `static`, `dns NAME`. */
  readonly name: string
  /** Begins and reports at least once, soon; again whenever the set changes. */
  start(listener: DiscoveryListener): void
  /** No report follows. */
  stop(): void
}

/** The reports of several discoveries joined: the union of seeds, of expected pods where known. */
export function joinDiscovered(reports: readonly Discovered[]): Discovered {
  const expected = reports.flatMap(report => (report.expected === null ? [] : [report.expected]))
  return {
    seeds: distinct(reports.flatMap(report => report.seeds)),
    expected: expected.length === 0 ? null : distinct(expected.flat()),
  }
}

export function sameAddress(one: Address, other: Address): boolean {
  return one.port === other.port && one.host === other.host
}

function distinct(addresses: readonly Address[]): Address[] {
  return [
    ...new Map(addresses.map(address => [`${address.host} ${address.port}`, address])).values(),
  ]
}
