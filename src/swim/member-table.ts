/**
 * Everybody this node has heard of. Looked up by name; walked in a shuffled ring for probing (SWIM
 * section 4.3: round-robin over a random order bounds the time until a failure is noticed).
 */
import type { Random } from '../ports.js'
import type { MemberName } from '../vocabulary.js'
import type { Member } from './member.js'
import type { Suspicion } from './suspicion.js'

export interface MemberEntry {
  readonly name: MemberName
  /** Replaced, never changed in place, so that what was handed out stays as it was. */
  member: Member
  /** Runs while the member is suspect. */
  suspicion: Suspicion | null
}

export function isDeadOrLeft(member: Member): boolean {
  return member.state === 'dead' || member.state === 'left'
}

export class MemberTable {
  readonly #random: Random
  readonly #byName = new Map<string, MemberEntry>()
  /** The probe ring; the same entries as the map. */
  #ring: MemberEntry[] = []
  #probeIndex = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** All entries: alive, suspect, dead and left. What the formulas call n. */
  get size(): number {
    return this.#ring.length
  }

  get(name: string): MemberEntry | undefined {
    return this.#byName.get(name)
  }

  /** In the order of arrival. */
  entries(): IterableIterator<MemberEntry> {
    return this.#byName.values()
  }

  /** In the order of the ring, as push/pulls list them. */
  ring(): readonly MemberEntry[] {
    return this.#ring
  }

  /** Enters the ring at a random place, so that nobody waits a whole round for the first probe. */
  add(member: Member): MemberEntry {
    const entry: MemberEntry = { name: member.name, member, suspicion: null }
    this.#byName.set(member.name, entry)
    const index = this.#below(this.#ring.length + 1)
    this.#ring.push(entry)
    this.#swap(index, this.#ring.length - 1)
    return entry
  }

  /**
   * The next entry of the ring that `wanted` accepts; null if a whole round has none. `onWrap` runs
   * at the end of the ring, before it starts again: the moment to reap and to shuffle.
   */
  nextToProbe(wanted: (member: Member) => boolean, onWrap: () => void): MemberEntry | null {
    for (let checked = 0; checked < this.#ring.length; checked++) {
      if (this.#probeIndex >= this.#ring.length) {
        onWrap()
        this.#probeIndex = 0
        continue
      }
      const entry = this.#ring[this.#probeIndex]!
      this.#probeIndex += 1
      if (wanted(entry.member)) return entry
    }
    return null
  }

  /** Forgets what `expired` selects; returns how many that were. */
  reap(expired: (member: Member) => boolean): number {
    const before = this.#ring.length
    this.#ring = this.#ring.filter(entry => {
      if (!expired(entry.member)) return true
      this.#byName.delete(entry.name)
      return false
    })
    return before - this.#ring.length
  }

  shuffle(): void {
    for (let last = this.#ring.length - 1; last > 0; last--) this.#swap(last, this.#below(last + 1))
  }

  /** Up to `count` different members that `eligible` accepts, each set equally likely. */
  pick(count: number, eligible: (member: Member) => boolean): Member[] {
    const candidates: Member[] = []
    for (const entry of this.#ring) if (eligible(entry.member)) candidates.push(entry.member)
    const chosen = Math.min(count, candidates.length)
    for (let i = 0; i < chosen; i++) {
      const j = i + this.#below(candidates.length - i)
      const member = candidates[j]!
      candidates[j] = candidates[i]!
      candidates[i] = member
    }
    candidates.length = chosen
    return candidates
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound)
  }

  #swap(a: number, b: number): void {
    const entry = this.#ring[a]!
    this.#ring[a] = this.#ring[b]!
    this.#ring[b] = entry
  }
}
