/** Durations on the command line: `500ms`, `10s`, `2m`, `1h`. */
import { InvalidArgumentError } from 'commander'

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
}

/** Milliseconds, > 0 and at most a day; throws what commander reports as a usage error. */
export function parseDurationMs(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|min|h)$/.exec(text) ?? []
  const durationMs = Number(count) * (unitsMs[unit ?? ''] ?? Number.NaN)
  if (!(durationMs > 0) || durationMs > 86_400_000) {
    throw new InvalidArgumentError('expected a duration such as 500ms, 10s or 2m.')
  }
  return durationMs
}

export function parseWholeNumber(min: number, max: number): (text: string) => number {
  return text => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}.`)
    }
    return value
  }
}
