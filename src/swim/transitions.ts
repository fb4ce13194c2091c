/**
 * What a message about a member does to the table (memberlist state.go: aliveNode, suspectNode,
 * deadNode, mergeState; SWIM section 4.2). Each rule either ignores the message, or changes the
 * entry, queues news and tells the application. Who sent the bytes and how does not matter here.
 *
 *                 suspect, inc >= known            timer runs out, or dead, inc >= known
 *      +-------+ -----------------------> +---------+ --------------------------> +------+
 *      | alive |                          | suspect |                             | dead |
 *      +-------+ <----------------------- +---------+                             +------+
 *         ^  |        alive, inc > known       | dead from itself, inc >= known      |
 *         |  |                                 v                                     |
 *         |  |   dead from itself           +------+                                 |
 *         |  +----------------------------> | left |                                 |
 *         |                                 +------+                                 |
 *         +------------------------------------+--------------- alive, inc > known --+
 *
 * Only a member itself raises its incarnation, so only the accused can clear a suspicion.
 */
import type { MemberName } from '../vocabulary.js'
import { hostOf, sameBytes } from './address-bytes.js'
import { encodeMessage } from './codec/encode-message.js'
import type { SwimContext } from './context.js'
import { isImplausible, refutingIncarnation } from './incarnation.js'
import type { Member, MemberState } from './member.js'
import type { MemberEntry } from './member-table.js'
import {
  type Alive,
  type Dead,
  memberStateOf,
  metaBytesMax,
  type NodeRecord,
  type Suspect,
  versionsBytes,
} from './messages.js'
import { confirmationsExpected, suspicionTimeoutMs } from './scaling.js'
import type { DropReason } from './stats.js'
import { Suspicion } from './suspicion.js'

const empty = new Uint8Array(0)

/** Bounds of what is stored for others. The original has none; its senders stay far below. */
const nameLengthMax = 1024
const receivedMetaBytesMax = 8 * metaBytesMax

export class Transitions {
  readonly #context: SwimContext
  readonly #suspected = new Set<MemberEntry>()

  constructor(context: SwimContext) {
    this.#context = context
  }

  /** When the next suspicion runs out, Infinity without any. */
  nextDeadlineMs(): number {
    let deadlineMs = Infinity
    for (const entry of this.#suspected) {
      deadlineMs = Math.min(deadlineMs, entry.suspicion?.deadlineMs ?? Infinity)
    }
    return deadlineMs
  }

  /** Declares dead whose suspicion has run out. */
  advance(nowMs: number): void {
    for (const entry of [...this.#suspected]) {
      const suspicion = entry.suspicion
      if (suspicion === null || suspicion.deadlineMs > nowMs) continue
      const { effects, options } = this.#context
      effects.stats.suspicionsExpired += 1
      effects.notice('info', 'member failed: its suspicion was not refuted', {
        member: entry.name,
        confirmations: suspicion.confirmations,
      })
      const { incarnation } = entry.member
      this.dead({ kind: 'dead', incarnation, node: entry.name, from: options.name }, nowMs)
    }
  }

  /** Announces this node: at the start, and again after a change of its meta. */
  announceSelf(meta: Uint8Array, nowMs: number): void {
    const { options, selfAddressBytes, selfVersions, table } = this.#context
    const known = table.get(options.name)?.member.incarnation ?? 0
    const incarnation = refutingIncarnation(known, 0)
    const alive: Alive = {
      kind: 'alive',
      incarnation,
      node: options.name,
      addressBytes: selfAddressBytes,
      port: options.advertise.port,
      meta,
      versions: selfVersions,
    }
    const entry = table.get(options.name) ?? this.#create(alive, options.advertise.host, nowMs)
    this.#accept(entry, alive, options.advertise.host, nowMs)
  }

  alive(received: Alive, nowMs: number): void {
    const { options, effects, table } = this.#context
    const isSelf = received.node === options.name
    if (isSelf && this.#context.leaving) return
    const alive = this.#withPort(received)
    const known = table.get(alive.node)
    const reason = this.#refusal(alive, known)
    if (reason !== null) {
      effects.drop(reason, alive.node, nowMs)
      return
    }
    const host = hostOf(alive.addressBytes ?? empty)
    if (host === null) {
      effects.drop('addressMalformed', alive.node, nowMs)
      return
    }
    if (known === undefined) {
      if (alive.incarnation === 0) {
        effects.drop('incarnationImplausible', alive.node, nowMs)
        return
      }
      this.#accept(this.#create(alive, host, nowMs), alive, host, nowMs)
      return
    }
    const moved = !sameAddress(known.member, alive)
    if (moved && !this.#mayMove(known.member, nowMs)) {
      this.#conflict(known, alive, host)
      return
    }
    if (isSelf) {
      this.#aliveAboutSelf(known, alive)
      return
    }
    if (alive.incarnation <= known.member.incarnation && !moved) return
    if (moved) effects.stats.addressesReclaimed += 1
    this.#accept(known, alive, host, nowMs)
  }

  suspect(suspect: Suspect, nowMs: number): void {
    const { options, effects, table } = this.#context
    const entry = table.get(suspect.node)
    if (entry === undefined || suspect.incarnation < entry.member.incarnation) return
    if (isImplausible(suspect.incarnation, entry.member.incarnation)) {
      effects.drop('incarnationImplausible', suspect.from, nowMs)
      return
    }
    if (entry.suspicion !== null) {
      if (!entry.suspicion.confirm(suspect.from, nowMs)) return
      effects.stats.suspicionsConfirmed += 1
      this.#broadcast(suspect)
      return
    }
    if (entry.member.state !== 'alive') return
    if (entry.name === options.name) {
      this.#refute(entry, suspect.incarnation, suspect.from)
      return
    }
    this.#broadcast(suspect)
    this.#change(entry, { state: 'suspect', incarnation: suspect.incarnation }, nowMs)
    this.#startSuspicion(entry, suspect.from, nowMs)
  }

  dead(dead: Dead, nowMs: number): void {
    const { options, effects, table } = this.#context
    const entry = table.get(dead.node)
    if (entry === undefined || dead.incarnation < entry.member.incarnation) return
    if (isImplausible(dead.incarnation, entry.member.incarnation)) {
      effects.drop('incarnationImplausible', dead.from, nowMs)
      return
    }
    this.#stopSuspicion(entry)
    if (entry.member.state === 'dead' || entry.member.state === 'left') return
    const isSelf = entry.name === options.name
    if (isSelf && !this.#context.leaving) {
      this.#refute(entry, dead.incarnation, dead.from)
      return
    }
    const state = dead.from === dead.node ? 'left' : 'dead'
    this.#broadcast(dead, isSelf ? () => this.#context.leaveSent() : null)
    this.#change(entry, { state, incarnation: dead.incarnation }, nowMs)
    effects.stats[state === 'left' ? 'membersLeft' : 'membersDead'] += 1
    effects.add({ kind: 'memberChanged', change: 'leave', member: entry.member })
  }

  /**
   * Takes over what a peer's push/pull says. A peer's word that somebody is dead only makes a
   * suspect.
   */
  merge(records: readonly NodeRecord[], nowMs: number): void {
    const from = this.#context.options.name
    for (const record of records) {
      const { name: node, incarnation } = record
      switch (memberStateOf(record.state)) {
        case 'alive': {
          const { addressBytes, port, meta, versions } = record
          this.alive(
            { kind: 'alive', incarnation, node, addressBytes, port, meta, versions },
            nowMs,
          )
          break
        }
        case 'left':
          this.dead({ kind: 'dead', incarnation, node, from: node }, nowMs)
          break
        case 'suspect':
        case 'dead':
          this.suspect({ kind: 'suspect', incarnation, node, from }, nowMs)
          break
        case null:
          break
      }
    }
  }

  /** Nodes that speak protocol 1 carry no ports: everybody then shares this node's. */
  #withPort(alive: Alive): Alive {
    const { options } = this.#context
    if (alive.port !== 0 && options.protocolVersion > 1) return alive
    return { ...alive, port: options.advertise.port }
  }

  #refusal(alive: Alive, known: MemberEntry | undefined): DropReason | null {
    const { options, table, delegate } = this.#context
    const versions = alive.versions ?? empty
    const [pmin, pmax] = versions
    if (versions.length !== versionsBytes || pmin === 0 || pmax === 0 || pmin! > pmax!) {
      return 'versionsMalformed'
    }
    if (isImplausible(alive.incarnation, known?.member.incarnation ?? 0)) {
      return 'incarnationImplausible'
    }
    if (alive.node === '' || alive.node.length > nameLengthMax) return 'nameMalformed'
    if ((alive.meta?.length ?? 0) > receivedMetaBytesMax) return 'metaTooLarge'
    const isNews = known === undefined || !sameAddress(known.member, alive)
    const host = hostOf(alive.addressBytes ?? empty)
    if (isNews && host !== null && options.allowed?.(host) === false) return 'notAllowed'
    if (known === undefined && table.size >= options.membersMax) return 'membersMax'
    if (delegate.notifyAlive !== undefined && host !== null) {
      const veto = delegate.notifyAlive(memberOf(alive, host, 'alive', 0))
      if (veto !== null) return 'vetoed'
    }
    return null
  }

  #mayMove(member: Member, nowMs: number): boolean {
    if (member.state === 'left') return true
    const reclaimMs = this.#context.options.deadNodeReclaimTimeMs
    const deadForMs = nowMs - member.stateChangedAtMs
    return member.state === 'dead' && reclaimMs > 0 && deadForMs > reclaimMs
  }

  #conflict(known: MemberEntry, alive: Alive, host: string): void {
    const { effects } = this.#context
    const other = memberOf(alive, host, 'alive', known.member.stateChangedAtMs)
    effects.stats.conflicts += 1
    effects.add({ kind: 'memberConflict', existing: known.member, other })
  }

  #aliveAboutSelf(self: MemberEntry, alive: Alive): void {
    const { member } = self
    if (alive.incarnation < member.incarnation) return
    const same =
      sameBytes(alive.meta ?? empty, member.meta) &&
      sameBytes(alive.versions ?? empty, member.versions)
    // An equal incarnation with other content is what a former life of this name left behind.
    if (alive.incarnation === member.incarnation && same) return
    this.#refute(self, alive.incarnation, alive.node)
  }

  /**
   * A new entry counts as dead until its alive is accepted, so that it joins like one coming back.
   */
  #create(alive: Alive, host: string, nowMs: number): MemberEntry {
    return this.#context.table.add({ ...memberOf(alive, host, 'dead', nowMs), incarnation: 0 })
  }

  #accept(entry: MemberEntry, alive: Alive, host: string, nowMs: number): void {
    const { effects } = this.#context
    const old = entry.member
    if (this.#stopSuspicion(entry)) effects.stats.suspicionsCleared += 1
    this.#broadcast(alive)
    const sinceMs = old.state === 'alive' ? old.stateChangedAtMs : nowMs
    entry.member = memberOf(alive, host, 'alive', sinceMs)
    if (old.state === 'dead' || old.state === 'left') {
      effects.stats.membersJoined += 1
      effects.add({ kind: 'memberChanged', change: 'join', member: entry.member })
    } else if (!sameBytes(old.meta, entry.member.meta)) {
      effects.stats.membersUpdated += 1
      effects.add({ kind: 'memberChanged', change: 'update', member: entry.member })
    }
  }

  /** Answers an accusation with a higher incarnation, and takes it as a sign of being slow. */
  #refute(self: MemberEntry, accused: number, from: MemberName): void {
    const { awareness, effects } = this.#context
    const { member } = self
    const incarnation = refutingIncarnation(member.incarnation, accused)
    self.member = { ...member, incarnation }
    awareness.applyDelta(1)
    effects.stats.refutations += 1
    effects.notice('warn', 'refuting what a peer says of this node', { from, incarnation })
    const { name: node, addressBytes, address, meta, versions } = member
    const { port } = address
    this.#broadcast({ kind: 'alive', incarnation, node, addressBytes, port, meta, versions })
  }

  #startSuspicion(entry: MemberEntry, accuser: MemberName, nowMs: number): void {
    const { options, table, effects } = this.#context
    const { suspicionMult, suspicionMaxTimeoutMult, probeIntervalMs } = options
    const minMs = suspicionTimeoutMs(suspicionMult, table.size, probeIntervalMs)
    const maxMs = minMs * suspicionMaxTimeoutMult
    const expected = confirmationsExpected(suspicionMult, table.size)
    entry.suspicion = new Suspicion(accuser, { expected, minMs, maxMs }, nowMs)
    this.#suspected.add(entry)
    effects.stats.suspicions += 1
  }

  #stopSuspicion(entry: MemberEntry): boolean {
    entry.suspicion = null
    return this.#suspected.delete(entry)
  }

  #change(
    entry: MemberEntry,
    to: { readonly state: MemberState; readonly incarnation: number },
    nowMs: number,
  ): void {
    entry.member = { ...entry.member, ...to, stateChangedAtMs: nowMs }
  }

  #broadcast(message: Alive | Suspect | Dead, finished: (() => void) | null = null): void {
    this.#context.queue.queue(message.node, encodeMessage(message), finished)
  }
}

function sameAddress(member: Member, alive: Alive): boolean {
  return (
    member.address.port === alive.port &&
    sameBytes(member.addressBytes, alive.addressBytes ?? empty)
  )
}

function memberOf(alive: Alive, host: string, state: MemberState, sinceMs: number): Member {
  return {
    name: alive.node,
    address: { host, port: alive.port },
    addressBytes: alive.addressBytes ?? empty,
    meta: alive.meta ?? empty,
    state,
    incarnation: alive.incarnation,
    versions: alive.versions ?? empty,
    stateChangedAtMs: sinceMs,
  }
}
