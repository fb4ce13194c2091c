/** The shapes in use, each once, under a small number. Bounded: what peers send may not grow it. */
import { assert } from '../lib/assert.js'
import { WindowClock } from '../lib/window-clock.js'
import type { CounterShape } from '../vocabulary.js'
import { familyCode, familyName } from './family.js'

const shapesMax = 4096
const calendarUnits = ['day', 'week', 'month'] as const

export class ShapeList {
  readonly #shapes: CounterShape[] = []
  readonly #numbers = new Map<CounterShape, number>()
  readonly #byText = new Map<string, number>()

  /** The number of a shape that local rules use; by identity, so callers keep the object. */
  numberOf(shape: CounterShape): number {
    const known = this.#numbers.get(shape)
    if (known !== undefined) return known
    const text = shapeText(shape)
    let number = this.#byText.get(text)
    if (number === undefined) {
      number = this.#shapes.push(shape) - 1
      this.#byText.set(text, number)
    }
    this.#numbers.set(shape, number)
    return number
  }

  /**
   * The number of a shape as it stands on the wire; -1 when it makes no sense or there are too
   * many.
   */
  numberOfWire(family: number, calendar: number, capacity: number, periodMs: number): number {
    const text = wireText(family, calendar, capacity, periodMs)
    const known = this.#byWire.get(text)
    if (known !== undefined) return known
    const name = familyName(family)
    if (name === null || !(capacity > 0) || !Number.isFinite(capacity)) return -1
    if (!(periodMs >= 0) || !Number.isFinite(periodMs)) return -1
    if ((name !== 'gauge' && periodMs === 0) || this.#byWire.size >= shapesMax) return -1
    const unit = calendarUnits[calendar - 1] ?? null
    const windowed = name === 'fixed' || name === 'sliding'
    const clock = windowed ? new WindowClock(periodMs, unit, 'UTC') : null
    const number =
      this.#shapes.push({
        family: name,
        capacity,
        periodMs,
        clock,
        onPartition: 'share',
      }) - 1
    this.#byWire.set(text, number)
    return number
  }

  readonly #byWire = new Map<string, number>()

  at(number: number): CounterShape {
    const shape = this.#shapes[number]
    assert(shape !== undefined, 'a shape number is one that was given out')
    return shape
  }

  clock(number: number): WindowClock {
    const clock = this.at(number).clock
    assert(clock !== null, 'window counters have a clock')
    return clock
  }

  /** Forgets which objects stood for shapes; numbers stay. Called when rules are replaced. */
  forgetObjects(): void {
    this.#numbers.clear()
  }
}

/** 0 for none, else 1 day, 2 week, 3 month. */
export function calendarCode(shape: CounterShape): number {
  const calendar = shape.clock?.calendar ?? null
  return calendar === null ? 0 : calendarUnits.indexOf(calendar) + 1
}

function wireText(family: number, calendar: number, capacity: number, periodMs: number): string {
  return `${family} ${calendar} ${capacity} ${periodMs}`
}

function shapeText(shape: CounterShape): string {
  const { family, capacity, periodMs, clock, onPartition } = shape
  const wire = wireText(familyCode(family), calendarCode(shape), capacity, periodMs)
  return `${wire} ${clock?.timezone ?? ''} ${onPartition}`
}
