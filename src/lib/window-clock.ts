/**
 * Numbers the windows of a rule and knows where the present one begins and ends. Windows of fixed
 * length count from the Unix epoch; calendar windows begin at local midnight, on Monday or on the
 * first of the month of an IANA zone. Wall-clock milliseconds throughout: windows are agreed on by
 * all pods.
 */

export type CalendarUnitName = 'day' | 'week' | 'month'

const dayMs = 86_400_000
const hourMs = 3_600_000

export class WindowClock {
  readonly lengthMs: number
  readonly calendar: CalendarUnitName | null
  readonly timezone: string
  readonly #zone: ZoneOffset | null
  #id = 0
  #startMs = Number.NaN
  #endMs = Number.NaN

  /**
   * `lengthMs` > 0, nominal for a calendar unit. An unknown zone throws: validation comes first.
   */
  constructor(lengthMs: number, calendar: CalendarUnitName | null, timezone: string) {
    this.lengthMs = lengthMs
    this.calendar = calendar
    this.timezone = timezone
    this.#zone = calendar === null ? null : new ZoneOffset(timezone)
  }

  /** The number of the window that `wallMs` is in; ascending by one from window to window. */
  idAt(wallMs: number): number {
    if (!(wallMs >= this.#startMs && wallMs < this.#endMs)) this.#enter(wallMs)
    return this.#id
  }

  /** Where the window of `wallMs` begins. */
  startMs(wallMs: number): number {
    this.idAt(wallMs)
    return this.#startMs
  }

  /** Where the window of `wallMs` ends, exclusive. */
  endMs(wallMs: number): number {
    this.idAt(wallMs)
    return this.#endMs
  }

  #enter(wallMs: number): void {
    if (this.#zone === null || this.calendar === null) {
      this.#id = Math.floor(wallMs / this.lengthMs)
      this.#startMs = this.#id * this.lengthMs
      this.#endMs = this.#startMs + this.lengthMs
      return
    }
    const localDay = Math.floor((wallMs + this.#zone.atMs(wallMs)) / dayMs)
    this.#id = calendarId(this.calendar, localDay)
    this.#startMs = this.#zone.midnightMs(calendarStartDay(this.calendar, this.#id))
    this.#endMs = this.#zone.midnightMs(calendarStartDay(this.calendar, this.#id + 1))
  }
}

/** The calendar window that a local day (days since 1970-01-01) belongs to. */
export function calendarId(unit: CalendarUnitName, localDay: number): number {
  if (unit === 'day') return localDay
  // 1970-01-01 was a Thursday: the week before the first Monday is number 0.
  if (unit === 'week') return Math.floor((localDay + 3) / 7)
  const date = new CalendarDate(localDay)
  return date.year * 12 + date.month
}

/** The first local day of a calendar window. */
export function calendarStartDay(unit: CalendarUnitName, id: number): number {
  if (unit === 'day') return id
  if (unit === 'week') return id * 7 - 3
  return firstDayOf(Math.floor(id / 12), id - Math.floor(id / 12) * 12)
}

/** Days since 1970-01-01 of the first of `month` (0..11), proleptic Gregorian. */
function firstDayOf(year: number, month: number): number {
  // Counting years from March puts the leap day at the end (Hinnant, chrono-compatible date
  // algorithms).
  const shifted = month < 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const monthFromMarch = (month + 10) % 12
  const dayOfYear = Math.floor((153 * monthFromMarch + 2) / 5)
  const leaps = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100)
  return era * 146_097 + yearOfEra * 365 + leaps + dayOfYear - 719_468
}

/** Year and month (0..11) of a day number. */
class CalendarDate {
  readonly year: number
  readonly month: number

  constructor(day: number) {
    // A first guess by the mean length of a month, then at most a step either way.
    let months = Math.floor(day / 30.436_875) + 1970 * 12
    while (firstDayOf(Math.floor(months / 12), months % 12) > day) months--
    while (firstDayOf(Math.floor((months + 1) / 12), (months + 1) % 12) <= day) months++
    this.year = Math.floor(months / 12)
    this.month = months % 12
  }
}

/** Offset of local time from UTC, read from the runtime's zone data. */
class ZoneOffset {
  readonly #format: Intl.DateTimeFormat

  constructor(timezone: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** Local minus UTC at an instant, milliseconds. */
  atMs(wallMs: number): number {
    const part = new Map<string, number>()
    for (const { type, value } of this.#format.formatToParts(wallMs)) part.set(type, Number(value))
    const get = (name: string) => part.get(name) ?? 0
    const day = firstDayOf(get('year'), get('month') - 1) + get('day') - 1
    const local = day * dayMs + get('hour') * hourMs + get('minute') * 60_000 + get('second') * 1000
    return local - Math.floor(wallMs / 1000) * 1000
  }

  /** The instant at which a local day begins: the first one of it where midnight is skipped. */
  midnightMs(localDay: number): number {
    const local = localDay * dayMs
    const before = this.atMs(local - dayMs)
    const after = this.atMs(local + dayMs)
    const early = local - Math.max(before, after)
    if (this.atMs(early) === local - early) return early
    const late = local - Math.min(before, after)
    if (this.atMs(late) === local - late) return late
    // Midnight does not exist: the day begins at the jump, which the later offset names.
    return local - before
  }
}
