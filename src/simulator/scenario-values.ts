/** The small notations of a scenario: durations and limits. Pure text to numbers. */
import type { CalendarUnit, LimitSpec } from '../limiter/rule.js'

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Nominal lengths; the real ones are the calendar's. */
const calendarMs: Readonly<Record<CalendarUnit, number>> = {
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 30 * 86_400_000,
}

/** `20s`, `1500ms`, `1.5m`; the unit is required. Null when it is no such thing. */
export function parseDurationMs(text: string): number | null {
  const parts = /^(\d+(?:\.\d+)?)(ms|s|min|m|h|d)$/.exec(text)
  if (parts === null) return null
  return Number(parts[1]) * unitsMs[parts[2]!]!
}

/**
 * `100/1s`, `100/h`, `10000/day`: COUNT/DURATION, with 1 implied. Null when it is no such thing.
 */
export function parseLimit(text: string): LimitSpec | null {
  const slash = text.indexOf('/')
  const countText = text.slice(0, slash)
  if (slash < 1 || !/^\d+(?:\.\d+)?$/.test(countText)) return null
  const count = Number(countText)
  if (!Number.isFinite(count) || count <= 0) return null
  const window = text.slice(slash + 1)
  if (window === 'day' || window === 'week' || window === 'month') {
    return { count, windowMs: calendarMs[window], calendar: window }
  }
  const windowMs = parseDurationMs(/^[a-z]/.test(window) ? `1${window}` : window)
  return windowMs === null || windowMs <= 0 ? null : { count, windowMs, calendar: null }
}
