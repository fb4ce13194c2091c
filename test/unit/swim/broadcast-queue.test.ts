import { describe, expect, it } from 'vitest'
import { BroadcastQueue } from '../../../src/swim/broadcast-queue.js'
import { memberlistVectors } from '../../helpers/memberlist-vectors.js'

const names = ['a', 'b', 'c', 'd', 'e'] as const
const lengths = { a: 10, b: 20, c: 20, d: 30, e: 5 } as const

/** A message that names itself in its first byte. */
function message(name: string, length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  bytes[0] = name.charCodeAt(0)
  return bytes
}

function described(bytes: Uint8Array): string {
  return `${String.fromCharCode(bytes[0] ?? 0)}${bytes.length}`
}

function createQueue(retransmitMult: number, nodes: number, itemsMax = 100): BroadcastQueue {
  return new BroadcastQueue({ retransmitMult, itemsMax, nodes: () => nodes })
}

describe('the broadcast queue', () => {
  const table = memberlistVectors.tables.queue.data

  it('selects, counts and finishes as the Go library, call by call', () => {
    const queue = createQueue(1, 10)
    const finished = new Map<string, number>(names.map(name => [name, 0]))
    for (const name of names) {
      const done = () => finished.set(name, finished.get(name)! + 1)
      queue.queue(name, message(name, lengths[name]), done)
    }
    for (const call of table.calls) {
      const sent = queue.take(call.overhead, call.limit).map(described)
      const counts = names.map(name => finished.get(name))
      expect({ call: call.call, sent, left: queue.length, counts }).toEqual({
        call: call.call,
        sent: call.sent,
        left: call.left,
        counts: call.finished_a_to_e,
      })
    }
    expect(table.calls).toHaveLength(5)
  })

  it('lets news replace older news about the same subject, whatever was sent of it', () => {
    const queue = createQueue(3, 5)
    let oldFinished = 0
    queue.queue('x', message('x', 8), () => {
      oldFinished += 1
    })
    expect(queue.take(2, 100)).toHaveLength(1)
    queue.queue('x', message('x', 9))
    expect({ oldFinished, queued: queue.length }).toEqual({
      oldFinished: table.invalidation.oldFinished,
      queued: table.invalidation.queued,
    })
    const next = queue.take(2, 100)
    expect([next.length, next[0]?.length]).toEqual(table.invalidation.nextSent)
  })

  it('keeps a message that never fits and sends the others past it', () => {
    const queue = createQueue(1, 1)
    queue.queue('big', message('b', 200))
    queue.queue('small', message('s', 10))
    expect(queue.bytes).toBe(210)
    expect(queue.take(2, 100).map(described)).toEqual(['s10'])
    expect(queue.take(2, 100)).toEqual([])
    expect([queue.length, queue.bytes]).toEqual([1, 200])
  })

  it('sends each message as often as the limit says and no more', () => {
    const queue = createQueue(4, 50)
    queue.queue('a', message('a', 10))
    let sends = 0
    while (queue.take(2, 100).length > 0) sends += 1
    expect(sends).toBe(8)
  })

  it('stops at the number of messages asked for', () => {
    const queue = createQueue(1, 1)
    for (const name of names) queue.queue(name, message(name, 5))
    expect(queue.take(2, 1000, 2)).toHaveLength(2)
    expect(queue.length).toBe(3)
  })

  it('drops what was sent most often when it is full, and counts it', () => {
    const queue = createQueue(5, 50, 2)
    const gone: string[] = []
    queue.queue('a', message('a', 10), () => gone.push('a'))
    queue.take(2, 100)
    queue.queue('b', message('b', 10), () => gone.push('b'))
    queue.queue('c', message('c', 10), () => gone.push('c'))
    expect({ gone, dropped: queue.dropped, left: queue.length }).toEqual({
      gone: ['a'],
      dropped: 1,
      left: 2,
    })
    queue.queue('a', message('a', 3))
    expect(queue.length).toBe(2)
  })

  it('keeps unnamed messages side by side', () => {
    const queue = createQueue(1, 1)
    queue.queue(null, message('p', 5))
    queue.queue(null, message('q', 5))
    expect(queue.take(2, 100).map(described)).toEqual(['q5', 'p5'])
  })
})
