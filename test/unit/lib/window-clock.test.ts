import { expect, it, test } from 'vitest'
import { calendarId, calendarStartDay, WindowClock } from '../../../src/lib/window-clock.js'

const at = (iso: string) => Date.parse(iso)
const iso = (ms: number) => new Date(ms).toISOString()

test.each([
  ['day', 'UTC', '2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z', '2026-03-01T12:00:00Z'],
  [
    'day',
    'Europe/Berlin',
    '2026-03-28T23:00:00.000Z',
    '2026-03-29T22:00:00.000Z',
    '2026-03-29T12:00:00Z',
  ],
  [
    'day',
    'Europe/Berlin',
    '2026-10-24T22:00:00.000Z',
    '2026-10-25T23:00:00.000Z',
    '2026-10-25T12:00:00Z',
  ],
  [
    'day',
    'America/New_York',
    '2026-07-01T04:00:00.000Z',
    '2026-07-02T04:00:00.000Z',
    '2026-07-02T03:59:59Z',
  ],
  [
    'day',
    'Asia/Kathmandu',
    '2026-01-01T18:15:00.000Z',
    '2026-01-02T18:15:00.000Z',
    '2026-01-02T00:00:00Z',
  ],
  ['week', 'UTC', '2026-11-30T00:00:00.000Z', '2026-12-07T00:00:00.000Z', '2026-11-30T09:00:00Z'],
  ['month', 'UTC', '2028-02-01T00:00:00.000Z', '2028-03-01T00:00:00.000Z', '2028-02-29T23:59:59Z'],
  [
    'month',
    'America/Sao_Paulo',
    '2026-12-01T03:00:00.000Z',
    '2027-01-01T03:00:00.000Z',
    '2027-01-01T02:59:59Z',
  ],
  [
    'day',
    'America/Sao_Paulo',
    '2018-11-04T03:00:00.000Z',
    '2018-11-05T02:00:00.000Z',
    '2018-11-04T12:00:00Z',
  ],
] as const)('a %s in %s runs from %s to %s', (unit, zone, start, end, moment) => {
  const clock = new WindowClock(86_400_000, unit, zone)
  expect(iso(clock.startMs(at(moment)))).toBe(start)
  expect(iso(clock.endMs(at(moment)))).toBe(end)
})

it('numbers neighbouring windows by neighbouring numbers', () => {
  for (const unit of ['day', 'week', 'month'] as const) {
    const clock = new WindowClock(86_400_000, unit, 'Europe/Berlin')
    let moment = at('2026-01-15T12:00:00Z')
    for (let n = 0; n < 30; n++) {
      const id = clock.idAt(moment)
      const end = clock.endMs(moment)
      expect(clock.idAt(end - 1)).toBe(id)
      expect(clock.idAt(end)).toBe(id + 1)
      moment = end
    }
  }
})

it('counts windows of fixed length from the epoch', () => {
  const clock = new WindowClock(60_000, null, 'UTC')
  expect(clock.idAt(119_999)).toBe(1)
  expect(clock.endMs(119_999)).toBe(120_000)
  expect(clock.idAt(120_000)).toBe(2)
  expect(clock.idAt(59_999)).toBe(0)
})

it('agrees with the calendar on which day a month begins', () => {
  for (let month = 0; month < 36; month++) {
    const day = Date.UTC(2026, month, 1) / 86_400_000
    const id = calendarId('month', day)
    expect(calendarStartDay('month', id)).toBe(day)
    expect(calendarId('month', day - 1)).toBe(id - 1)
  }
})
