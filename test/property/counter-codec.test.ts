import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  createWireEntry,
  MessageWriter,
  newsKind,
  readMessage,
  type WireEntry,
  type WireShape,
} from '../../src/counters/counter-codec.js'
import { WireReader, WireWriter } from '../../src/counters/wire-numbers.js'

const amount = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.double({ min: 0, max: 1e12, noNaN: true }))

const entry: fc.Arbitrary<Partial<WireEntry>> = fc.record({
  originHi: fc.nat(3),
  originLo: fc.integer({ min: 0, max: 0xffffffff }),
  epoch: fc.integer({ min: 1, max: 0xffffffff }),
  holdMs: fc.nat(80_000).map(eighths => eighths / 8),
  spanMs: fc.nat(80_000).map(eighths => eighths / 8),
  consumed: amount,
  returned: amount,
  offered: amount,
  demand: fc.oneof(fc.constant(-1), fc.nat(1000)),
  mark: fc.nat(),
  tail: fc.oneof(amount, fc.double({ min: -1e6, max: 1e6, noNaN: true })),
})

const slices = fc.array(fc.tuple(fc.nat(), amount, amount), { maxLength: 20 })

function filled(parts: Partial<WireEntry>, log: readonly (readonly number[])[]): WireEntry {
  const wire = Object.assign(createWireEntry(), parts)
  wire.sliceCount = log.length
  log.forEach(([time, added, returned], index) => {
    wire.sliceTime[index] = time!
    wire.sliceAdded[index] = added!
    wire.sliceReturned[index] = returned!
  })
  return wire
}

/** An entry as it is told, slices cut to their number, -0 as 0. */
function told(wire: WireEntry, isLog: boolean) {
  const count = isLog ? wire.sliceCount : 0
  const cut = (list: Float64Array) => [...list.subarray(0, count)].map(value => value + 0)
  return {
    ...wire,
    returned: wire.returned + 0,
    tail: wire.tail + 0,
    consumed: wire.consumed + 0,
    offered: wire.offered + 0,
    sliceCount: count,
    sliceTime: cut(wire.sliceTime),
    sliceAdded: cut(wire.sliceAdded),
    sliceReturned:
      wire.returned === 0 ? cut(wire.sliceReturned).map(() => 0) : cut(wire.sliceReturned),
  }
}

it('whatever is written is read again', () => {
  const counter = fc.record({
    hi: fc.integer({ min: 0, max: 0xffffffff }),
    lo: fc.integer({ min: 0, max: 0xffffffff }),
    used: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
    entries: fc.array(fc.tuple(entry, slices), { maxLength: 4 }),
  })
  fc.assert(
    fc.property(fc.array(counter, { maxLength: 5 }), fc.constantFrom(0, 3), (counters, family) => {
      const writer = new MessageWriter(newsKind, 1, 1 << 20)
      const shape: WireShape = { family, calendar: 0, capacity: 10.5, periodMs: 1000 }
      const expected: unknown[] = [
        ['header', newsKind, 1],
        ['shape', shape],
      ]
      writer.shape(shape)
      for (const { hi, lo, used, entries } of counters) {
        writer.counter(hi, lo, used)
        expected.push(['counter', hi, lo, used])
        for (const [parts, log] of entries) {
          const wire = filled(parts, family === 3 ? log : [])
          expect(writer.entry(wire)).toBe(true)
          expected.push(['entry', told(wire, family === 3)])
        }
        expected.push(['end'])
      }
      const heard: unknown[] = []
      const result = readMessage(writer.take(), {
        header: (kind, flags) => heard.push(['header', kind, flags]),
        clock: wallMs => heard.push(['clock', wallMs]),
        shape: value => heard.push(['shape', value]) > 0,
        counter: (hi, lo, used) => heard.push(['counter', hi, lo, used]),
        entry: wire => heard.push(['entry', told(wire, family === 3)]),
        counterEnd: () => heard.push(['end']),
      })
      expect(result).toBe('ok')
      expect(heard).toEqual(expected)
    }),
  )
})

it('no message is longer than its bound, and what is in it is whole', () => {
  fc.assert(
    fc.property(
      fc.array(entry, { minLength: 20, maxLength: 60 }),
      fc.integer({ min: 40, max: 600 }),
      (list, max) => {
        const writer = new MessageWriter(newsKind, 0, max)
        writer.shape({ family: 0, calendar: 0, capacity: 1, periodMs: 1 })
        let written = 0
        list.forEach((parts, index) => {
          if (writer.counter(index, index, null) && writer.entry(filled(parts, []))) written++
        })
        const bytes = writer.take()
        expect(bytes.length).toBeLessThanOrEqual(max)
        let read = 0
        const result = readMessage(bytes, {
          header: () => undefined,
          clock: () => undefined,
          shape: () => true,
          counter: () => undefined,
          entry: () => read++,
          counterEnd: () => undefined,
        })
        expect([result, read]).toEqual(['ok', written])
      },
    ),
  )
})

it('whole numbers up to 2^53 survive in as few bytes as they need', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), value => {
      const writer = new WireWriter(1)
      writer.whole(value)
      const reader = new WireReader(writer.take())
      expect(reader.whole()).toBe(value)
      expect(reader.failed).toBe(false)
      expect(writer.length).toBe(Math.max(1, Math.ceil(Math.log2(value + 1) / 7)))
    }),
  )
})
