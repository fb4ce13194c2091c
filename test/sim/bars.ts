/** The bars of counters.md §7, and whether rows of the matrix keep them. */
import type { Row } from './accuracy-rows.js'
import { limits } from './matrix.js'

export interface Bar {
  readonly says: string
  /** As measured, in the bar's own unit. */
  readonly measured: string
  readonly held: boolean
}

/** Loads below the limit, where nobody should be denied whom the ideal would admit. */
const lightLoads = /-(even|skewed)-0\.8x$/

/** `rows` of the matrix without injuries; any number of them. */
export function checkBars(rows: readonly Row[]): Bar[] {
  const errors = rows.map(row => Math.abs(1 - row.ratio))
  const excesses = rows.map(row => Math.max(0, row.excess))
  const jains = rows.map(row => row.jain)
  const roomy = rows.filter(row => hasRoom(row.file)).map(row => Math.max(0, row.excess))
  const light = rows.filter(row => lightLoads.test(row.file))
  const large = rows.filter(row => row.pods === 50)
  const slowest = Math.max(0, ...large.map(row => row.settleMs ?? Number.POSITIVE_INFINITY))
  return [
    atMost('mean error of the ratio', mean(errors), 0.005),
    atMost('worst error of the ratio', max(errors), 0.03),
    atMost('mean excess over burst', mean(excesses), 0.07),
    atMost('worst excess over burst', max(excesses), 0.35),
    // "None": one request of a burst of 100 is the least that can be told from rounding and drift.
    atMost('worst excess where burst >= rate', max(roomy), 0.01),
    atLeast('mean Jain', mean(jains), 0.98),
    atLeast('worst Jain', jains.length === 0 ? 1 : Math.min(...jains), 0.93),
    atMost('false denials at 0.8 of the limit', max(light.map(row => row.falseDenials)), 0),
    atMost('slowest to settle at N = 50, ms', slowest, 1000),
    atMost('packets per pod and second at N = 50', max(large.map(row => row.packets)), 600),
    atMost('kB per pod and second at N = 50', max(large.map(row => row.bytes)) / 1000, 300),
  ]
}

/** The bars of one hot key times three, for a thousand of them; and they too are held. */
export function checkThousandKeys(row: Row): Bar[] {
  return [
    atMost('error of the ratio, a thousand keys', Math.abs(1 - row.ratio), 0.03),
    atMost('packets per pod and second, a thousand keys', row.packets, 1800),
    atMost('kB per pod and second, a thousand keys', row.bytes / 1000, 900),
  ]
}

/** The burst holds at least a second of the rate. */
function hasRoom(file: string): boolean {
  return limits.some(({ name, burst, rate }) => burst >= rate && file.includes(`-${name}-`))
}

function atMost(says: string, value: number, bound: number): Bar {
  return { says: `${says} <= ${bound}`, measured: shown(value), held: value <= bound }
}

function atLeast(says: string, value: number, bound: number): Bar {
  return { says: `${says} >= ${bound}`, measured: shown(value), held: value >= bound }
}

function shown(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value * 10_000) / 10_000) : 'never'
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

export function max(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0)
}
