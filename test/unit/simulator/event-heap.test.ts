import { describe, expect, it } from 'vitest'
import { EventHeap } from '../../../src/simulator/event-heap.js'
import { SeededRandom } from '../../../src/simulator/seeded-random.js'

function drain(
  heap: EventHeap,
): { atMs: number; kind: number; subject: number; version: number }[] {
  const events = []
  while (heap.pop()) {
    const { atMs, kind, subject, version } = heap
    events.push({ atMs, kind, subject, version })
  }
  return events
}

describe('EventHeap', () => {
  it('gives events back in order of time, with all that belongs to them', () => {
    const heap = new EventHeap()
    heap.push(30, 1, 7, 2)
    heap.push(-5, 2, 8)
    heap.push(10, 3, 9, 4)
    expect(drain(heap)).toEqual([
      { atMs: -5, kind: 2, subject: 8, version: 0 },
      { atMs: 10, kind: 3, subject: 9, version: 4 },
      { atMs: 30, kind: 1, subject: 7, version: 2 },
    ])
  })

  it('keeps the order of planning at equal times, however many there are', () => {
    const random = new SeededRandom(1).stream()
    const heap = new EventHeap()
    const planned: { atMs: number; subject: number }[] = []
    for (let subject = 0; subject < 5000; subject++) {
      const atMs = Math.floor(random() * 40)
      planned.push({ atMs, subject })
      heap.push(atMs, 0, subject)
    }
    planned.sort((a, b) => a.atMs - b.atMs || a.subject - b.subject)
    expect(drain(heap).map(({ atMs, subject }) => ({ atMs, subject }))).toEqual(planned)
  })

  it('stays in order while events are taken and planned in turns', () => {
    const random = new SeededRandom(2).stream()
    const heap = new EventHeap()
    for (let i = 0; i < 100; i++) heap.push(random() * 10, 0, i)
    let last = Number.NEGATIVE_INFINITY
    for (let i = 0; i < 20_000; i++) {
      heap.pop()
      expect(heap.atMs).toBeGreaterThanOrEqual(last)
      last = heap.atMs
      heap.push(last + random() * 10, 0, i)
    }
    expect(heap.size).toBe(100)
  })

  it('knows the next time, and that there is none', () => {
    const heap = new EventHeap()
    expect(heap.peekMs()).toBe(Number.POSITIVE_INFINITY)
    heap.push(3, 0, 0)
    expect(heap.peekMs()).toBe(3)
  })
})
