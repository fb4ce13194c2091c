/**
 * The simulator's future: events ordered by (time, sequence), so that equal times run in the order
 * in which they were planned and a run is a function of its seed. A binary heap over typed arrays:
 * a run handles millions of events, and none of them is an object.
 */
import { assert } from '../lib/assert.js'

/** 16 million events at 25 bytes are 400 MB; a plan of that size is a mistake. */
const eventsMax = 1 << 24

export class EventHeap {
  /** Of the event that `pop` took out: virtual milliseconds. */
  atMs = 0
  /** What happens; the meaning of the numbers belongs to the caller. */
  kind = 0
  /** Whom it happens to: a pod, a stream of traffic, a slot. */
  subject = 0
  /** Tells a current event from one that was overtaken. */
  version = 0

  private length = 0
  private planned = 0
  private times = new Float64Array(1024)
  private sequences = new Float64Array(1024)
  private kinds = new Uint8Array(1024)
  private subjects = new Int32Array(1024)
  private versions = new Int32Array(1024)

  get size(): number {
    return this.length
  }

  /** Time of the earliest event, Infinity when there is none. */
  peekMs(): number {
    return this.length === 0 ? Number.POSITIVE_INFINITY : this.times[0]!
  }

  push(atMs: number, kind: number, subject: number, version = 0): void {
    if (this.length === this.times.length) this.grow()
    const { times, sequences } = this
    const sequence = this.planned++
    let hole = this.length++
    while (hole > 0) {
      const parent = (hole - 1) >> 1
      // A later sequence never precedes an equal time: only the time decides on the way up.
      if (times[parent]! <= atMs) break
      this.move(parent, hole)
      hole = parent
    }
    times[hole] = atMs
    sequences[hole] = sequence
    this.kinds[hole] = kind
    this.subjects[hole] = subject
    this.versions[hole] = version
  }

  /** Takes the earliest event out into the fields above; false when there is none. */
  pop(): boolean {
    if (this.length === 0) return false
    this.atMs = this.times[0]!
    this.kind = this.kinds[0]!
    this.subject = this.subjects[0]!
    this.version = this.versions[0]!
    const last = --this.length
    if (last > 0) this.sinkFrom(last)
    return true
  }

  /** Puts the entry at `last`, now outside the heap, where the root was. */
  private sinkFrom(last: number): void {
    const { times, sequences } = this
    const atMs = times[last]!
    const sequence = sequences[last]!
    let hole = 0
    for (;;) {
      let child = 2 * hole + 1
      if (child >= last) break
      if (child + 1 < last && this.precedes(child + 1, child)) child++
      const childMs = times[child]!
      if (childMs > atMs || (childMs === atMs && sequences[child]! > sequence)) break
      this.move(child, hole)
      hole = child
    }
    this.move(last, hole)
  }

  private precedes(a: number, b: number): boolean {
    const { times, sequences } = this
    return times[a]! < times[b]! || (times[a] === times[b] && sequences[a]! < sequences[b]!)
  }

  private move(from: number, to: number): void {
    this.times[to] = this.times[from]!
    this.sequences[to] = this.sequences[from]!
    this.kinds[to] = this.kinds[from]!
    this.subjects[to] = this.subjects[from]!
    this.versions[to] = this.versions[from]!
  }

  private grow(): void {
    const size = this.times.length * 2
    assert(size <= eventsMax, 'the plan of a simulation stays below its maximum')
    this.times = widened(this.times, new Float64Array(size))
    this.sequences = widened(this.sequences, new Float64Array(size))
    this.kinds = widened(this.kinds, new Uint8Array(size))
    this.subjects = widened(this.subjects, new Int32Array(size))
    this.versions = widened(this.versions, new Int32Array(size))
  }
}

function widened<T extends { set(from: T): void }>(from: T, into: T): T {
  into.set(from)
  return into
}
