/**
 * Who counts as a pod of this fleet: members whose meta is Grapevine's, one per node, the newest
 * start standing for it; and, beside what gossip sees, what discovery says should be there
 * (counters.md §5). Knows members and addresses, nothing of counters.
 */
import { Hearing } from './core-hearing.js'
import { decodeNodeMeta } from './core-meta.js'
import type { MemberView, NodeMeta } from './core-types.js'
import type { Member } from './swim/member.js'
import type { Address, MemberName, OriginId } from './vocabulary.js'

/** A pod that counters are exchanged with. */
export interface Peer {
  readonly member: MemberName
  readonly node: string
  readonly origin: OriginId
  readonly draining: boolean
  /** It should be there and does not answer: a split, not a departure. */
  readonly silent: boolean
}

interface Known {
  readonly member: Member
  readonly meta: NodeMeta
}

export const addressText = (address: Address): string => `${address.host}:${address.port}`

/** What a meta says, by its bytes: they are replaced when a member changes, never written to. */
const decodedMetas = new WeakMap<Uint8Array, NodeMeta | null>()

function metaOf(member: Member): NodeMeta | null {
  const decoded = decodedMetas.get(member.meta)
  if (decoded !== undefined) return decoded
  const meta = decodeNodeMeta(member.meta)
  decodedMetas.set(member.meta, meta)
  return meta
}

export class Peers {
  readonly #self: MemberName
  readonly #selfMeta: { readonly node: string; readonly start: number }
  readonly #known = new Map<MemberName, Known>()
  #expected: ReadonlyMap<string, Address> | null = null
  /** Of those that should be there: which have fallen silent, seconds before SWIM is sure. */
  readonly #hearing = new Hearing()

  constructor(self: MemberName, selfMeta: { readonly node: string; readonly start: number }) {
    this.#self = self
    this.#selfMeta = selfMeta
  }

  /**
   * Discovery's Ready set; null when discovery cannot tell a split from a departure (static, DNS).
   */
  setExpected(addresses: readonly Address[] | null, nowMs: number): void {
    this.#expected = addresses && new Map(addresses.map(address => [addressText(address), address]))
    this.#hearing.watch(addresses ?? [], nowMs)
  }

  /** A packet came straight from `from`. True when that ends a silence. */
  heard(from: Address, nowMs: number): boolean {
    return this.#hearing.heard(from, nowMs)
  }

  /** This process stood still, and has not read what the others sent meanwhile. */
  stalled(nowMs: number): void {
    this.#hearing.stalled(nowMs)
  }

  nextDeadlineMs(): number {
    return this.#hearing.nextDeadlineMs()
  }

  /** Asks members that have stopped sending; true when one is found silent. */
  advance(nowMs: number, ask: (member: MemberName) => void): boolean {
    return this.#hearing.advance(nowMs, address => {
      const text = addressText(address)
      for (const { member } of this.#known.values())
        if (addressText(member.address) === text) ask(member.name)
    })
  }

  /** A pod that takes its leave falls silent by right; a suspect one may still answer this pod. */
  #isSilent({ member, meta }: Known): boolean {
    if (member.state === 'alive' && meta.draining) return false
    return member.state === 'dead' || this.#hearing.isSilent(member.address)
  }

  /**
   * Takes note of a member's news. Returns the origins that no longer speak for a node: the member
   * left, or a newer start of the node took its place.
   */
  update(members: Iterable<Member>, nowMs: number): OriginId[] {
    const before = new Map([...this.#known].map(([name, known]) => [name, known.meta.origin]))
    this.#known.clear()
    for (const member of members) {
      const meta = member.name === this.#self ? null : metaOf(member)
      if (!meta || this.#isFormerSelf(meta) || !this.#counts(member)) continue
      this.#known.set(member.name, { member, meta })
    }
    this.#dropOlderStarts()
    const known = [...this.#known.values()].map(({ member }) => member)
    const suspects = known.filter(({ state }) => state === 'suspect')
    this.#hearing.doubt(
      suspects.map(({ address }) => address),
      nowMs,
    )
    const after = new Set([...this.#known.values()].map(known => known.meta.origin))
    return [...before.values()].filter(origin => !after.has(origin))
  }

  /** An earlier start of this very node, which the others may not have missed yet. */
  #isFormerSelf(meta: NodeMeta): boolean {
    return meta.node === this.#selfMeta.node && meta.start <= this.#selfMeta.start
  }

  /** Alive and suspect members count; a dead one only while discovery says it should be there. */
  #counts(member: Member): boolean {
    if (member.state === 'alive' || member.state === 'suspect') return true
    return member.state === 'dead' && this.#expects(member)
  }

  #expects(member: Member): boolean {
    return this.#expected?.has(addressText(member.address)) ?? false
  }

  #dropOlderStarts(): void {
    const newest = new Map<string, Known>()
    for (const known of this.#known.values()) {
      const other = newest.get(known.meta.node)
      if (!other || isNewer(known, other)) newest.set(known.meta.node, known)
    }
    for (const [name, known] of this.#known)
      if (newest.get(known.meta.node) !== known) this.#known.delete(name)
  }

  list(): Peer[] {
    return [...this.#known.values()].map(known => ({
      member: known.member.name,
      node: known.meta.node,
      origin: known.meta.origin,
      draining: known.meta.draining,
      silent: this.#isSilent(known),
    }))
  }

  /** Pods that should be there, the own one included; at least 1. */
  knownCount(selfAddress: Address): number {
    const addresses = new Set(this.#expected?.keys() ?? [])
    addresses.add(addressText(selfAddress))
    for (const { member } of this.#known.values()) addresses.add(addressText(member.address))
    return addresses.size
  }

  /** Known addresses that nobody answers at: to be tried again about once a second. */
  silentAddresses(selfAddress: Address): Address[] {
    const silent = new Map<string, Address>(this.#expected ?? [])
    silent.delete(addressText(selfAddress))
    for (const known of this.#known.values()) {
      const { address } = known.member
      if (this.#isSilent(known)) silent.set(addressText(address), address)
      else silent.delete(addressText(address))
    }
    return [...silent.values()]
  }

  /** Always the same pod while it is there; null when this one is alone. */
  firstAlive(): Address | null {
    for (const { member } of this.#known.values())
      if (member.state === 'alive') return member.address
    return null
  }

  /** The node that drew `origin`, if one of the members present did. */
  nodeOf(origin: OriginId): string | null {
    for (const { meta } of this.#known.values()) if (meta.origin === origin) return meta.node
    return null
  }
}

/**
 * Of two starts of one node the later counts; a tie (clock set back) goes to the one that answers.
 */
function isNewer(one: Known, other: Known): boolean {
  if (one.meta.start !== other.meta.start) return one.meta.start > other.meta.start
  return one.member.state === 'alive' && other.member.state !== 'alive'
}

/** `/members`: one line per node, the newest start; foreign members stand for themselves. */
export function memberViews(
  members: Iterable<Member>,
  self: MemberName,
  selfMeta: NodeMeta,
): MemberView[] {
  const views = new Map<string, MemberView>()
  for (const member of members) {
    const own = member.name === self
    const meta = own ? selfMeta : metaOf(member)
    const view: MemberView = {
      name: meta?.node ?? member.name,
      wireName: member.name,
      address: member.address,
      state: member.state,
      self: own,
      meta,
    }
    const id = meta ? `node ${meta.node}` : `foreign ${member.name}`
    const other = views.get(id)
    if (!other || own || (!other.self && newerView(view, other))) views.set(id, view)
  }
  return [...views.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

function newerView(one: MemberView, other: MemberView): boolean {
  return (one.meta?.start ?? 0) >= (other.meta?.start ?? 0)
}
