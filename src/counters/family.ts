/** Small numbers for counter families, as columns and the wire hold them. */
import type { CounterFamily } from '../vocabulary.js'

export const bucketFamily = 0
export const fixedFamily = 1
export const slidingFamily = 2
export const logFamily = 3
export const gaugeFamily = 4

const families: readonly CounterFamily[] = ['bucket', 'fixed', 'sliding', 'log', 'gauge']

export function familyCode(family: CounterFamily): number {
  return families.indexOf(family)
}

/** Null for a number that names no family. */
export function familyName(code: number): CounterFamily | null {
  return families[code] ?? null
}

/** Slices a log window is cut into for the other pods: the resolution is a 64th of the window. */
export const slicesPerWindow = 64
