import { describe, expect, it } from 'vitest'
import { decodeMessage } from '../../../src/swim/codec/decode-message.js'
import type { Effect } from '../../../src/swim/effects.js'
import { type Alive, messageType, wireStateOf } from '../../../src/swim/messages.js'
import { Transitions } from '../../../src/swim/transitions.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { goStructOf, memberlistVectors } from '../../helpers/memberlist-vectors.js'
import { createTestContext, swimOptions, textBytes } from '../../helpers/swim-node.js'

const name = (text: string) => text as MemberName
const versions = Uint8Array.of(1, 5, 2, 0, 0, 0)
const reclaimMs = 10_000

interface Result {
  readonly state: string
  readonly incarnation?: number
  readonly meta?: string
  readonly addr?: string
  readonly broadcasts: readonly unknown[]
  readonly events: readonly string[]
  readonly conflicts: number
  readonly healthScore: number
  readonly suspicionTimer: boolean
  readonly confirmations?: number
}

interface Row {
  readonly message: string
  readonly prior: string
  readonly reclaim?: string
  readonly leaving: boolean
  readonly remoteIncarnation: number
  readonly remoteState: 'alive' | 'suspect' | 'dead' | 'left'
  readonly result: Result
}

const rowsOf = (table: string): readonly Row[] => memberlistVectors.tables[table].rows

function alive(node: string, incarnation: number, change: Partial<Alive> = {}): Alive {
  return {
    kind: 'alive',
    incarnation,
    node: name(node),
    addressBytes: Uint8Array.of(10, 0, 0, 1),
    port: 7946,
    meta: textBytes('m'),
    versions,
    ...change,
  }
}

/** One observer, the node it is told about, and what comes of a message. */
class Observer {
  nowMs = 0
  readonly #node = createTestContext(swimOptions('self', '127.0.0.1', { deadNodeReclaimTimeMs: 0 }))
  readonly transitions: Transitions
  readonly context = this.#node.context

  constructor(reclaim: boolean, padding: number) {
    if (reclaim) Object.assign(this.context.options, { deadNodeReclaimTimeMs: reclaimMs })
    this.transitions = new Transitions(this.context)
    this.transitions.announceSelf(new Uint8Array(0), 0)
    for (let i = 0; i < padding; i++) this.transitions.alive(alive(`padding-${i}`, 1), 0)
  }

  /** Brings 'n' into a state at incarnation 5. */
  prepare(prior: string): void {
    const accusation = { incarnation: 5, node: name('n'), from: name('accuser') }
    if (prior !== 'unknown') this.transitions.alive(alive('n', 5), this.nowMs)
    if (prior === 'suspect') {
      this.transitions.suspect({ kind: 'suspect', ...accusation }, this.nowMs)
    } else if (prior === 'dead') {
      this.transitions.dead({ kind: 'dead', ...accusation }, this.nowMs)
    } else if (prior === 'left') {
      this.transitions.dead({ kind: 'dead', ...accusation, from: name('n') }, this.nowMs)
    }
    this.forget()
  }

  /** Raises the own incarnation to 5 without leaving a trace. */
  prepareSelf(): void {
    const from = name('peer')
    this.transitions.suspect(
      { kind: 'suspect', incarnation: 4, node: name('self'), from },
      this.nowMs,
    )
    this.context.awareness.applyDelta(-1)
    this.forget()
  }

  forget(): void {
    this.context.queue.clear()
    this.context.effects.take()
  }

  observe(node: string): Result {
    const effects = this.context.effects.take()
    const entry = this.context.table.get(node)
    const broadcasts = this.context.queue.take(0, 100_000).map(bytes => {
      const message = decodeMessage(bytes)
      if (!message.ok) throw new Error(message.error)
      return { type: message.value.kind, msg: normalised(goStructOf(message.value)) }
    })
    const common = {
      broadcasts,
      events: effects.flatMap(eventOf),
      conflicts: effects.filter(effect => effect.kind === 'memberConflict').length,
      healthScore: this.context.awareness.score,
      suspicionTimer: entry?.suspicion != null,
    }
    if (entry === undefined) return { state: 'unknown', ...common }
    const { member, suspicion } = entry
    return {
      ...common,
      state: member.state,
      incarnation: member.incarnation,
      meta: new TextDecoder().decode(member.meta),
      addr: member.address.host,
      ...(suspicion === null ? {} : { confirmations: suspicion.confirmations }),
    }
  }
}

function eventOf(effect: Effect): string[] {
  return effect.kind === 'memberChanged' ? [effect.change] : []
}

/** No meta is nil to Go and empty to us; the protocol treats both alike. The ports were chance. */
function normalised(struct: Readonly<Record<string, unknown>>) {
  const { Meta, Port: _, ...rest } = struct as { Meta?: { hex: string } | null; Port?: number }
  return Meta === undefined ? rest : { ...rest, Meta: Meta === null ? { hex: '' } : Meta }
}

function expected(result: Result): Result {
  const broadcasts = (result.broadcasts as { type: string; msg: Record<string, unknown> }[]).map(
    ({ type, msg }) => ({ type, msg: normalised(msg) }),
  )
  return { ...result, broadcasts }
}

/** The tables spell their messages in words. */
function tell(observer: Observer, row: Row): void {
  const { message } = row
  const { transitions, nowMs } = observer
  const incarnation = Number(/inc=(\d+)/.exec(message)?.[1])
  const from = / from=(\w+)/.exec(message)?.[1] ?? 'peer'
  const node = name('n')
  if (message.startsWith('suspect')) {
    transitions.suspect({ kind: 'suspect', incarnation, node, from: name(from) }, nowMs)
  } else if (message.startsWith('dead')) {
    const accuser = name(from === 'node' ? 'n' : from)
    transitions.dead({ kind: 'dead', incarnation, node, from: accuser }, nowMs)
  } else {
    const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1)
    const moved = Uint8Array.of(10, 0, 0, 2)
    const same = Uint8Array.of(10, 0, 0, 1)
    const wide = message.includes('16 byte')
    const addressBytes = wide ? mapped : message.includes('new-addr') ? moved : same
    const meta = textBytes(message.includes('new-meta') ? 'm2' : 'm')
    transitions.alive(alive('n', incarnation, { addressBytes, meta }), nowMs)
  }
}

function tellSelf(observer: Observer, row: Row): void {
  const { message } = row
  const { transitions, nowMs } = observer
  const incarnation = Number(/inc=(\d+)/.exec(message)?.[1])
  const node = name('self')
  const from = name(message.includes('from=self') ? 'self' : 'peer')
  if (message.startsWith('suspect')) {
    transitions.suspect({ kind: 'suspect', incarnation, node, from }, nowMs)
  } else if (message.startsWith('dead')) {
    transitions.dead({ kind: 'dead', incarnation, node, from }, nowMs)
  } else {
    const host = message.includes('other-addr') ? 9 : 1
    const change = {
      addressBytes: Uint8Array.of(127, 0, 0, host),
      meta: message.includes('other-meta') ? textBytes('x') : null,
      versions: message.includes('other-vsn') ? Uint8Array.of(1, 4, 2, 0, 0, 0) : versions,
    }
    transitions.alive(alive('self', incarnation, change), nowMs)
  }
}

describe('transitions agree with the Go library', () => {
  it.each(rowsOf('remoteNodeTransitions'))('$prior, then $message', row => {
    const observer = new Observer(false, 6)
    observer.prepare(row.prior)
    tell(observer, row)
    expect(observer.observe('n')).toEqual(expected(row.result))
  })

  it.each(rowsOf('addressChange'))('$prior, reclaim $reclaim, then $message', row => {
    const observer = new Observer(row.reclaim !== 'off', 0)
    observer.prepare(row.prior.split(' ')[0]!)
    observer.nowMs = row.reclaim === 'elapsed' ? reclaimMs + 1 : reclaimMs - 1
    tell(observer, row)
    expect(observer.observe('n')).toEqual(expected(row.result))
  })

  it.each(rowsOf('localNodeTransitions'))('self, leaving $leaving, then $message', row => {
    const observer = new Observer(false, 6)
    observer.prepareSelf()
    observer.context.leaving = row.leaving
    tellSelf(observer, row)
    expect(observer.observe('self')).toEqual(expected(row.result))
  })

  it.each(rowsOf('mergeTransitions'))(
    '$prior, then a record $remoteState at $remoteIncarnation',
    row => {
      const observer = new Observer(false, 6)
      observer.prepare(row.prior)
      const { node, kind: _, ...rest } = alive('n', row.remoteIncarnation)
      const record = { ...rest, name: node, state: wireStateOf(row.remoteState) }
      observer.transitions.merge([record], observer.nowMs)
      expect(observer.observe('n')).toEqual(expected(row.result))
    },
  )

  it('the tables are all there', () => {
    expect(
      ['remoteNodeTransitions', 'addressChange', 'localNodeTransitions', 'mergeTransitions'].map(
        table => rowsOf(table).length,
      ),
    ).toEqual([85, 26, 26, 60])
  })
})

describe('transitions beyond the original', () => {
  it.each([
    ['absent', null, 'droppedVersionsMalformed'],
    ['too short', Uint8Array.of(1, 5, 2), 'droppedVersionsMalformed'],
    ['all zero', new Uint8Array(6), 'droppedVersionsMalformed'],
    ['upside down', Uint8Array.of(3, 2, 2, 0, 0, 0), 'droppedVersionsMalformed'],
  ] as const)(
    'an alive with versions %s is ignored: they would poison every push/pull',
    (_, bad, counter) => {
      const observer = new Observer(false, 0)
      observer.transitions.alive(alive('n', 1, { versions: bad }), 0)
      expect(observer.observe('n').state).toBe('unknown')
      expect(observer.context.effects.stats[counter]).toBe(1)
    },
  )

  it.each([null, new Uint8Array(0), new Uint8Array(5)])(
    'an alive with the address %o is ignored',
    addressBytes => {
      const observer = new Observer(false, 0)
      observer.transitions.alive(alive('n', 1, { addressBytes }), 0)
      expect(observer.observe('n').state).toBe('unknown')
      expect(observer.context.effects.stats.droppedAddressMalformed).toBe(1)
    },
  )

  it('an alive of an unknown node at incarnation 0 leaves no dead entry behind', () => {
    const observer = new Observer(false, 0)
    observer.transitions.alive(alive('n', 0), 0)
    expect(observer.observe('n').state).toBe('unknown')
  })

  it('an alive without a port is taken to share ours', () => {
    const observer = new Observer(false, 0)
    observer.transitions.alive(alive('n', 1, { port: 0 }), 0)
    expect(observer.context.table.get('n')?.member.address.port).toBe(7946)
  })

  it('a full table ignores newcomers, counts them and still hears of those it knows', () => {
    const observer = new Observer(false, 0)
    Object.assign(observer.context.options, { membersMax: 2 })
    observer.transitions.alive(alive('n', 1), 0)
    observer.transitions.alive(alive('late', 1), 0)
    observer.transitions.alive(alive('n', 2, { meta: textBytes('new') }), 0)
    expect(observer.context.table.get('late')).toBeUndefined()
    expect(observer.observe('n').meta).toBe('new')
    expect(observer.context.effects.stats.droppedMembersMax).toBe(1)
  })

  it('accusations at the top of the number range are dropped, about us and about others', () => {
    const observer = new Observer(false, 0)
    observer.prepare('alive')
    const top = { incarnation: 0xffff_ffff, from: name('forger') }
    for (const node of [name('n'), name('self')]) {
      observer.transitions.suspect({ kind: 'suspect', node, ...top }, 0)
      observer.transitions.dead({ kind: 'dead', node, ...top }, 0)
    }
    observer.transitions.alive(alive('n', 0xffff_ffff), 0)
    expect(observer.observe('n')).toMatchObject({ state: 'alive', incarnation: 5, broadcasts: [] })
    expect(observer.context.table.get('self')?.member).toMatchObject({ incarnation: 1 })
    expect(observer.context.effects.stats.droppedIncarnationImplausible).toBe(5)
  })

  it('a member that lives near the top can still be suspected at what it announced itself', () => {
    const observer = new Observer(false, 0)
    observer.prepare('unknown')
    observer.transitions.alive(alive('n', 0xffef_ffff), 0)
    observer.transitions.alive(alive('n', 0xffef_ffff + 900), 0)
    const accusation = { incarnation: 0xffef_ffff + 900, node: name('n'), from: name('peer') }
    observer.transitions.suspect({ kind: 'suspect', ...accusation }, 0)
    expect(observer.observe('n').state).toBe('suspect')
  })

  it('a suspicion that runs out declares dead in our own name and tells everybody', () => {
    const observer = new Observer(false, 0)
    observer.prepare('suspect')
    const deadlineMs = observer.transitions.nextDeadlineMs()
    observer.transitions.advance(deadlineMs - 1)
    expect(observer.observe('n').state).toBe('suspect')
    observer.transitions.advance(deadlineMs)
    expect(observer.observe('n')).toMatchObject({
      state: 'dead',
      events: ['leave'],
      broadcasts: [{ type: 'dead', msg: { From: 'self', Incarnation: 5, Node: 'n' } }],
    })
    expect(observer.transitions.nextDeadlineMs()).toBe(Infinity)
  })

  it('a refuted suspicion leaves no deadline', () => {
    const observer = new Observer(false, 0)
    observer.prepare('suspect')
    observer.transitions.alive(alive('n', 6), 100)
    expect(observer.transitions.nextDeadlineMs()).toBe(Infinity)
    expect(observer.context.effects.stats.suspicionsCleared).toBe(1)
  })

  it('a member handed out does not change afterwards', () => {
    const observer = new Observer(false, 0)
    observer.prepare('alive')
    const before = observer.context.table.get('n')!.member
    observer.prepare('dead')
    expect(before.state).toBe('alive')
  })

  it('every broadcast is one message with its type byte', () => {
    const observer = new Observer(false, 0)
    observer.transitions.alive(alive('n', 1), 0)
    const types = observer.context.queue.take(0, 10_000).map(bytes => bytes[0])
    expect(new Set(types)).toEqual(new Set([messageType.alive]))
  })
})
