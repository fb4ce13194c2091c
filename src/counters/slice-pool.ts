/**
 * Logs of a sliding window: lists of (time, added, returned) in ascending order, pooled over typed
 * arrays. The own log of a counter holds moments, other pods' logs hold slices (64 to a window)
 * under the time a slice begins. A list is named by its newest node, whose `next` is the oldest; -1
 * is the empty one.
 */

export class SlicePool {
  readonly slicesMax: number
  /** Wall-clock milliseconds: a moment, or the beginning of a slice. */
  readonly time: Float64Array
  readonly added: Float64Array
  readonly returned: Float64Array
  readonly next: Int32Array
  /** Times the pool was empty and two nodes were joined, which forgets later. */
  joined = 0
  #free = -1
  #fresh = 0
  #used = 0

  constructor(slicesMax: number) {
    this.slicesMax = slicesMax
    this.time = new Float64Array(slicesMax)
    this.added = new Float64Array(slicesMax)
    this.returned = new Float64Array(slicesMax)
    this.next = new Int32Array(slicesMax)
  }

  get used(): number {
    return this.#used
  }

  /** The oldest node of a non-empty list. */
  first(list: number): number {
    return this.next[list] as number
  }

  net(node: number): number {
    return (this.added[node] as number) - (this.returned[node] as number)
  }

  /**
   * Adds to the end of a list and returns the list. In the newest node's span of the clock, spans
   * being `resolutionMs` long (0: none), the amount joins it and the node takes the later time: a
   * log never forgets early. A node stays in its span, however steady the traffic.
   */
  append(list: number, time: number, units: number, resolutionMs: number): number {
    if (list >= 0 && isWithin(this.time[list] as number, time, resolutionMs)) {
      this.added[list] = (this.added[list] as number) + units
      if (time > (this.time[list] as number)) this.time[list] = time
      return list
    }
    const node = this.#take()
    if (node < 0) {
      this.joined++
      if (list < 0) return -1
      this.added[list] = (this.added[list] as number) + units
      this.time[list] = time
      return list
    }
    this.time[node] = time
    this.added[node] = units
    this.returned[node] = 0
    this.#linkAfter(list, node)
    return node
  }

  /** Takes up to `units` out of the newest nodes; returns what could be taken. */
  giveBack(list: number, units: number): number {
    if (list < 0) return 0
    let left = units
    // Newest first is what a refund means; the list runs the other way, so walk it until it is
    // done.
    let stop = list
    while (left > 0) {
      const taken = Math.min(left, Math.max(0, this.net(stop)))
      this.returned[stop] = (this.returned[stop] as number) + taken
      left -= taken
      if (stop === this.first(list)) break
      stop = this.#before(list, stop)
    }
    return units - left
  }

  /**
   * Raises the node at `time` to at least `added` and `returned`, inserting it where it belongs.
   * Returns the list; `gained` is how much the list's net sum changed.
   */
  raise(list: number, time: number, added: number, returned: number): number {
    this.gained = 0
    let before = list
    if (list >= 0 && time <= (this.time[list] as number)) {
      if (time < (this.time[list] as number)) {
        let node = this.first(list)
        while ((this.time[node] as number) < time) {
          before = node
          node = this.next[node] as number
        }
        if (this.time[node] === time) return this.#raiseNode(list, node, added, returned)
      } else return this.#raiseNode(list, list, added, returned)
    }
    const node = this.#take()
    if (node < 0) {
      this.joined++
      return list
    }
    this.time[node] = time
    this.added[node] = added
    this.returned[node] = returned
    this.gained = added - returned
    const newest = list < 0 || time > (this.time[list] as number)
    this.#linkAfter(before, node)
    return newest ? node : list
  }

  /** Net change by the last `raise` or `change`, net amount dropped by the last `dropUntil`. */
  gained = 0

  /**
   * Adds `net` (either sign) to the node at `time`, inserting it; for sums over several origins.
   */
  change(list: number, time: number, net: number): number {
    const grown = this.raise(list, time, 0, 0)
    let node = grown
    if (grown >= 0 && this.time[grown] !== time) {
      node = this.first(grown)
      while (node !== grown && (this.time[node] as number) < time) node = this.next[node] as number
    }
    if (grown < 0 || this.time[node] !== time) {
      this.gained = 0
      return grown
    }
    this.added[node] = (this.added[node] as number) + net
    this.gained = net
    return grown
  }

  /**
   * Drops nodes up to and at `time`; returns the list, `gained` is the net that went (negative).
   */
  dropUntil(list: number, time: number): number {
    this.gained = 0
    if (list < 0) return -1
    for (;;) {
      const oldest = this.first(list)
      if ((this.time[oldest] as number) > time) return list
      this.gained -= this.net(oldest)
      if (oldest === list) {
        this.#give(oldest)
        return -1
      }
      this.next[list] = this.next[oldest] as number
      this.#give(oldest)
    }
  }

  /** Moves every node of a list in time. */
  shift(list: number, byMs: number): void {
    if (list < 0) return
    let node = list
    do {
      this.time[node] = (this.time[node] as number) + byMs
      node = this.next[node] as number
    } while (node !== list)
  }

  #raiseNode(list: number, node: number, added: number, returned: number): number {
    const before = this.net(node)
    if (added > (this.added[node] as number)) this.added[node] = added
    if (returned > (this.returned[node] as number)) this.returned[node] = returned
    this.gained = this.net(node) - before
    return list
  }

  /** Links `node` behind `before`; an empty list becomes the node alone. */
  #linkAfter(before: number, node: number): void {
    if (before < 0) {
      this.next[node] = node
      return
    }
    this.next[node] = this.next[before] as number
    this.next[before] = node
  }

  #before(list: number, node: number): number {
    let before = list
    while (this.next[before] !== node) before = this.next[before] as number
    return before
  }

  #take(): number {
    let node = this.#free
    if (node >= 0) this.#free = this.next[node] as number
    else if (this.#fresh < this.slicesMax) node = this.#fresh++
    else return -1
    this.#used++
    return node
  }

  #give(node: number): void {
    this.#used--
    this.next[node] = this.#free
    this.#free = node
  }
}

/** Not later than the span of the clock in which `newest` lies. */
function isWithin(newest: number, time: number, spanMs: number): boolean {
  if (spanMs <= 0) return time < newest
  return Math.floor(time / spanMs) <= Math.floor(newest / spanMs)
}
