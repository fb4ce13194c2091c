import { describe, expect, it } from 'vitest'
import { Readiness } from '../../../src/http/readiness.js'
import { FakeClock } from '../../helpers/fake-core.js'

function setup(): { readiness: Readiness; clock: FakeClock; sync: { done: boolean } } {
  const clock = new FakeClock()
  const sync = { done: false }
  return { readiness: new Readiness({ clock, synced: () => sync.done }), clock, sync }
}

describe('Readiness', () => {
  it('starts once listeners are up and rules are settled, in any order', () => {
    const { readiness } = setup()
    expect(readiness.startup()).toMatch(/listeners/)
    readiness.listenersUp()
    expect(readiness.startup()).toMatch(/rules/)
    readiness.rulesSettled()
    expect(readiness.startup()).toBeNull()
  })

  it('is ready once state was pulled as well', () => {
    const { readiness, sync } = setup()
    readiness.listenersUp()
    readiness.rulesSettled()
    expect(readiness.ready()).toMatch(/first state/)
    sync.done = true
    expect(readiness.ready()).toBeNull()
  })

  it('is ready after two seconds without any peer', () => {
    const { readiness, clock } = setup()
    readiness.listenersUp()
    readiness.rulesSettled()
    clock.nowMs = 1_999
    expect(readiness.ready()).not.toBeNull()
    clock.nowMs = 2_000
    expect(readiness.ready()).toBeNull()
  })

  it('a timeout alone does not make it ready', () => {
    const { readiness, clock, sync } = setup()
    clock.nowMs = 60_000
    sync.done = true
    expect(readiness.ready()).toMatch(/listeners/)
  })

  it('is not ready while draining, though started', () => {
    const { readiness, sync } = setup()
    readiness.listenersUp()
    readiness.rulesSettled()
    sync.done = true
    readiness.startDraining()
    expect(readiness.ready()).toBe('draining')
    expect(readiness.startup()).toBeNull()
    expect(readiness.draining).toBe(true)
  })
})
