/**
 * The averages of demand are worked out in fields, so that a decision allocates nothing. They must be
 * what the plain formulas say, to the last bit: pods compare them.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CounterTable } from '../../src/counters/counter-table.js'
import { demandHoldMs, plausibleRates, surgeTauMs } from '../../src/counters/demand.js'
import { DemandView } from '../../src/limiter/usage-store.js'

const wallMs = 1_700_000_000_000

const decay = (x: number) => (x < 0.1 ? 1 - x * (1 - x * (0.5 - x / 6)) : Math.exp(-x))

function faded(quietMs: number, tauMs: number): number {
  if (quietMs <= 0) return 1
  return quietMs > 12 * tauMs ? 0 : decay(quietMs / tauMs)
}

/** Own demand and the others' surge of one counter, by the formulas. */
class PlainDemand {
  #own = 0
  #ownAtMs: number
  #recent = 0
  #recentAtMs: number

  constructor(
    readonly tauMs: number,
    readonly rate: number,
    startMs: number,
  ) {
    this.#ownAtMs = startMs
    this.#recentAtMs = startMs
  }

  offer(units: number, atMs: number): void {
    this.#own = this.#own * faded(atMs - this.#ownAtMs, this.tauMs) + units / this.tauMs
    this.#ownAtMs = atMs
  }

  noteSurge(units: number, atMs: number): void {
    this.#recent = this.#units(atMs) + units
    this.#recentAtMs = atMs
  }

  #units(atMs: number): number {
    const age = atMs - this.#recentAtMs
    return this.#recent === 0 || age > 10 * surgeTauMs ? 0 : this.#recent * decay(age / surgeTauMs)
  }

  own(atMs: number): number {
    const own = this.#own === 0 ? 0 : this.#own * faded(atMs - this.#ownAtMs, this.tauMs)
    return Math.min(own, plausibleRates * this.rate)
  }

  surge(atMs: number): number {
    const units = this.#units(atMs)
    return units <= 1 ? 0 : (units - Math.sqrt(units)) / surgeTauMs
  }
}

const event = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 50, noNaN: true }), fc.nat(9000)),
  units: fc.oneof(fc.nat(40), fc.double({ min: 0, max: 5, noNaN: true })),
  who: fc.constantFrom('own', 'others'),
})
const limit = fc.record({
  capacity: fc.integer({ min: 1, max: 5000 }),
  periodMs: fc.double({ min: 0.01, max: 20_000, noNaN: true }),
  pods: fc.integer({ min: 1, max: 100 }),
})

it('demand read for a decision is what the formulas say, to the last bit', () => {
  fc.assert(
    fc.property(limit, fc.array(event, { minLength: 1, maxLength: 40 }), (limits, events) => {
      const seed = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8])
      const table = new CounterTable({ keysMax: 4, secret: null, label: 'demand', seed })
      table.queue.pods = limits.pods
      const shape = table.shapeOf({
        family: 'bucket',
        capacity: limits.capacity,
        periodMs: limits.periodMs,
        clock: null,
        onPartition: 'open',
      })
      const slot = table.open(table.identityOf('api'), 'a', shape, 100, wallMs)
      table.slots.othersDemand[slot] = 0.7
      const tauMs = table.demand.tauMs(slot)
      const plain = new PlainDemand(tauMs, table.slots.rate[slot] as number, 100)
      const view = new DemandView()
      let atMs = 100
      for (const { afterMs, units, who } of events) {
        atMs += afterMs
        if (who === 'own') {
          table.offer(slot, units, atMs)
          plain.offer(units, atMs)
        } else {
          table.demand.noteSurge(slot, units, atMs)
          plain.noteSurge(units, atMs)
        }
        for (const askedMs of [atMs, atMs + 3, atMs + 4000]) {
          table.readDemand(slot, askedMs, askedMs, view)
          table.readSurge(slot, askedMs, view)
          const others = 0.7 * faded(askedMs - 100 - demandHoldMs, tauMs)
          expect(view).toEqual({ own: plain.own(askedMs), others, surge: plain.surge(askedMs) })
        }
      }
    }),
  )
})
