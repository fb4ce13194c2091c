/** The pool of what other pods said of keys, when it is full. */
import { describe, expect, it } from 'vitest'
import { createWireEntry, MessageWriter, newsKind } from '../../../src/counters/counter-codec.js'
import { CounterTable } from '../../../src/counters/counter-table.js'
import { wireShapeOf } from '../../../src/counters/publish.js'
import { Replicator } from '../../../src/counters/replicator.js'
import { Limiter } from '../../../src/limiter/limiter.js'
import type { OriginId } from '../../../src/vocabulary.js'
import { startWallMs } from '../../helpers/counter-fleet.js'
import { limitOf, ruleOf, rulesOf } from '../../helpers/rules.js'

/** As many entries as the smallest pool holds. */
const entriesMax = 65_536
const keysMax = 1024

/** A pod with every key in use, and a way to tell it what an origin used of one. */
function podOf(windowMs: number) {
  const seed = Uint8Array.from([8, 7, 6, 5, 4, 3, 2, 1])
  const table = new CounterTable({ keysMax, secret: null, label: 'test', seed })
  const replicator = new Replicator(
    { table, origin: '00000000000000ff' as OriginId, payloadBytesMax: 1300 },
    { random: () => 0.5 },
  )
  const limiter = new Limiter({ store: table })
  limiter.setRules(rulesOf(ruleOf('api', { limit: limitOf(100, windowMs) })), 0, startWallMs)
  const ask = (key: number, cost: number, atMs: number) =>
    limiter.check('api', [`key ${key}`], cost, 'check', atMs, startWallMs + atMs)!
  for (let key = 0; key < keysMax; key++) ask(key, 0, 0)
  const tell = (slot: number, origin: number, consumed: number, atMs: number, tail = consumed) => {
    const { slots } = table
    const writer = new MessageWriter(newsKind, 0, 1300)
    writer.shape(wireShapeOf(table, slots.shape[slot] as number))
    writer.counter(slots.idHi[slot] as number, slots.idLo[slot] as number, null)
    const wire = createWireEntry()
    Object.assign(wire, { originHi: 7, originLo: origin, epoch: 1, consumed, tail })
    Object.assign(wire, { offered: consumed, demand: 0 })
    writer.entry(wire)
    replicator.handleMessage(writer.take(), atMs, startWallMs + atMs)
  }
  /** Every pod of 64 has used one unit of every key: the pool is full. */
  const fill = (atMs: number) => {
    for (let slot = 0; slot < keysMax; slot++) {
      for (let origin = 1; origin <= entriesMax / keysMax; origin++) tell(slot, origin, 1, atMs)
    }
  }
  return { table, replicator, ask, tell, fill }
}

describe('a pool full of what other pods said', () => {
  it('gives up what was said of keys that are back to full, and goes on counting exactly', () => {
    const { table, replicator, ask, tell, fill } = podOf(1000)
    fill(1)
    expect(table.entries.used).toBe(entriesMax)
    tell(0, 100, 60, 5000)
    expect(ask(0, 0, 5000).remaining).toBe(40)
    // The same total again is no new consumption; who was forgotten tells what he used since.
    tell(0, 100, 60, 5000)
    tell(0, 1, 31, 5000, 30)
    expect(ask(0, 0, 5000).remaining).toBe(10)
    expect(replicator.entriesRefused).toBe(0)
    expect(table.eviction.entries).toBeGreaterThan(0)
    expect(table.entries.used).toBeLessThanOrEqual(entriesMax)
    table.assertInvariants()
  })

  it('keeps what was said of keys in use, and counts what it has no room for', () => {
    const { table, replicator, ask, tell, fill } = podOf(3_600_000)
    fill(1)
    expect(ask(5, 0, 5000).remaining).toBe(36)
    for (let slot = 0; slot < 50; slot++) tell(slot, 100, 9, 5000)
    expect(replicator.entriesRefused).toBe(50)
    expect(table.eviction.entries).toBe(0)
    // Who was heard before is heard on.
    tell(5, 1, 11, 5000)
    expect(ask(5, 0, 5000).remaining).toBe(26)
    table.assertInvariants()
  })
})
