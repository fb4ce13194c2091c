/** What the demo shows each second, as lines of text. Pure. */
import { type Column, textTable } from '../text-table.js'
import { deviation } from './ideal-bucket.js'
import type { LoadCounts } from './load-generator.js'

export interface PodRow {
  readonly name: string
  readonly url: string
  /** Since the start. */
  readonly total: Readonly<LoadCounts>
  /** Of the last second. */
  readonly last: Readonly<LoadCounts>
  /** Other pods it sees alive; null while it does not answer. */
  readonly peers: number | null
}

export interface FleetRow {
  readonly elapsedS: number
  readonly limitPerS: number
  readonly burst: number
  readonly total: Readonly<LoadCounts>
  readonly last: Readonly<LoadCounts>
  /** What one bucket that sees every request would have admitted so far, as near as can be told. */
  readonly ideal: number
}

const podColumns: readonly Column<PodRow>[] = [
  { title: 'POD', align: 'left', value: row => row.name },
  { title: 'PROXY', align: 'left', value: row => row.url },
  { title: 'OFFERED/S', align: 'right', value: row => String(row.last.offered) },
  { title: 'ALLOWED/S', align: 'right', value: row => String(row.last.allowed) },
  { title: 'DENIED/S', align: 'right', value: row => String(row.last.denied) },
  { title: 'ALLOWED', align: 'right', value: row => String(row.total.allowed) },
  { title: 'DENIED', align: 'right', value: row => String(row.total.denied) },
  { title: 'ERRORS', align: 'right', value: row => String(row.total.failed) },
  { title: 'PEERS', align: 'right', value: row => (row.peers === null ? '-' : `${row.peers}`) },
]

export function liveTable(pods: readonly PodRow[], fleet: FleetRow): string[] {
  return [...textTable(podColumns, pods), '', fleetLine(fleet)]
}

/** One line for logs and pipes. */
export function liveLine(pods: readonly PodRow[], fleet: FleetRow): string {
  const parts = pods.map(
    pod => `${pod.name} ${pod.last.allowed}/${pod.last.offered} (peers ${pod.peers ?? '-'})`,
  )
  return `${parts.join('  ')}  |  ${fleetLine(fleet)}`
}

function fleetLine(fleet: FleetRow): string {
  return (
    `fleet after ${fleet.elapsedS} s: ${fleet.last.allowed}/s allowed of ` +
    `${fleet.last.offered}/s offered, limit ${fleet.limitPerS}/s; ` +
    `${fleet.total.allowed} in all, one ideal bucket ${fleet.ideal} ` +
    `(${percent(deviation(fleet.total.allowed, fleet.ideal))})`
  )
}

export function summary(
  pods: readonly PodRow[],
  fleet: FleetRow,
  toleranceShare: number,
): string[] {
  const { total } = fleet
  const off = deviation(total.allowed, fleet.ideal)
  const held = holds(fleet, toleranceShare)
  const errors = total.failed === 0 ? '' : `, ${total.failed} errors`
  return [
    `summary after ${fleet.elapsedS} s`,
    ...textTable(podColumns, pods),
    '',
    `offered ${total.offered}, allowed ${total.allowed}, denied ${total.denied}${errors}`,
    `one bucket of ${fleet.limitPerS}/s, burst ${fleet.burst}, would have allowed ${fleet.ideal}`,
    held
      ? `the fleet held its limit: ${percent(off)}, within ${toleranceShare * 100} %`
      : `the fleet did NOT hold its limit: ${percent(off)}${errors}, ` +
        `allowed are ±${toleranceShare * 100} %`,
  ]
}

/** Within the tolerance, and every request was answered by a sidecar. */
export function holds(fleet: FleetRow, toleranceShare: number): boolean {
  const off = Math.abs(deviation(fleet.total.allowed, fleet.ideal))
  return fleet.total.offered > 0 && fleet.total.failed === 0 && off <= toleranceShare
}

function percent(share: number): string {
  const value = share * 100
  return `${value >= 0 ? '+' : ''}${value.toFixed(1)} %`
}
