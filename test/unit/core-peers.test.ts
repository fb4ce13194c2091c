import { describe, expect, it } from 'vitest'
import { encodeNodeMeta } from '../../src/core-meta.js'
import { memberViews, Peers } from '../../src/core-peers.js'
import type { NodeMeta } from '../../src/core-types.js'
import type { Member, MemberState } from '../../src/swim/member.js'
import type { Address, MemberName, OriginId } from '../../src/vocabulary.js'

const address = (last: number): Address => ({ host: `10.0.0.${last}`, port: 7946 })
const origin = (n: number) => n.toString(16).padStart(16, '0') as OriginId

function metaOf(node: string, start: number, n: number): NodeMeta {
  return { node, origin: origin(n), start, version: '1', configHash: 0, draining: false }
}

function member(
  name: string,
  last: number,
  meta: NodeMeta | null,
  state: MemberState = 'alive',
): Member {
  return {
    name: name as MemberName,
    address: address(last),
    addressBytes: Uint8Array.of(10, 0, 0, last),
    meta: meta ? encodeNodeMeta(meta) : new TextEncoder().encode('somebody else'),
    state,
    incarnation: 1,
    versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
    stateChangedAtMs: 0,
  }
}

const self = 'me-x' as MemberName
const own = metaOf('me', 100, 1)
const me = member(self, 1, own)
const peersWith = (...members: Member[]) => {
  const peers = new Peers(self, own)
  peers.update([me, ...members], 0)
  return peers
}

describe('peers', () => {
  it('are the members whose meta is ours, without this node and without strangers', () => {
    const peers = peersWith(member('b-1', 2, metaOf('b', 5, 2)), member('go', 3, null))
    expect(peers.list()).toEqual([
      { member: 'b-1', node: 'b', origin: origin(2), draining: false, silent: false },
    ])
    expect(peers.knownCount(address(1))).toBe(2)
  })

  it('are seen by their latest meta, however often they were looked at before', () => {
    const first = member('b-1', 2, metaOf('b', 5, 2))
    const peers = peersWith(first)
    peers.update([me, first], 0)
    expect(memberViews([me, first], self, own).map(view => view.meta?.draining)).toEqual([
      false,
      false,
    ])
    const draining = { ...first, meta: encodeNodeMeta({ ...metaOf('b', 5, 2), draining: true }) }
    peers.update([me, draining], 0)
    expect(peers.list().map(peer => peer.draining)).toEqual([true])
    expect(memberViews([me, draining], self, own).map(view => view.meta?.draining)).toEqual([
      true,
      false,
    ])
    const stranger = { ...first, meta: new TextEncoder().encode('gvX') }
    expect(peers.update([me, stranger], 0)).toEqual([origin(2)])
    expect(peers.update([me, first], 0)).toEqual([])
    expect(peers.list()).toHaveLength(1)
  })

  it('of one node are one: the newest start stands for it', () => {
    const peers = peersWith(
      member('b-1', 2, metaOf('b', 5, 2), 'suspect'),
      member('b-2', 3, metaOf('b', 9, 3)),
    )
    expect(peers.list().map(peer => peer.member)).toEqual(['b-2'])
    expect(peers.knownCount(address(1))).toBe(2)
  })

  it('are not this node as it was before its restart', () => {
    const peers = peersWith(member('me-w', 1, metaOf('me', 99, 9), 'suspect'))
    expect(peers.list()).toEqual([])
    expect(peers.knownCount(address(1))).toBe(1)
  })

  it('that are suspected are asked, and silent when they do not answer, but still there', () => {
    const peers = peersWith(member('b-1', 2, metaOf('b', 5, 2), 'suspect'))
    const silences = (answers: boolean, fromMs: number) => {
      for (let atMs = fromMs; atMs <= fromMs + 2000; atMs += 5) {
        peers.advance(atMs, () => answers && peers.heard(address(2), atMs))
      }
      return [peers.list().map(({ silent }) => silent), peers.silentAddresses(address(1))]
    }
    expect(silences(true, 5)).toEqual([[false], []])
    expect(silences(false, 2010)).toEqual([[true], [address(2)]])
  })

  it('that died are departed where discovery cannot tell, and their origins are named', () => {
    const peers = peersWith(member('b-1', 2, metaOf('b', 5, 2)))
    expect(peers.update([me, member('b-1', 2, metaOf('b', 5, 2), 'dead')], 0)).toEqual([origin(2)])
    expect(peers.list()).toEqual([])
    expect(peers.silentAddresses(address(1))).toEqual([])
  })

  it('that died but are expected are a split: silent, counted, to be tried again', () => {
    const peers = new Peers(self, own)
    peers.setExpected([address(1), address(2), address(3)], 0)
    const departed = peers.update([me, member('b-1', 2, metaOf('b', 5, 2), 'dead')], 0)
    expect(departed).toEqual([])
    expect(peers.list().map(peer => peer.silent)).toEqual([true])
    expect(peers.knownCount(address(1))).toBe(3)
    expect(peers.silentAddresses(address(1))).toEqual([address(2), address(3)])
  })

  it('that left are departed even where they are expected', () => {
    const peers = new Peers(self, own)
    peers.setExpected([address(1), address(2)], 0)
    peers.update([me, member('b-1', 2, metaOf('b', 5, 2))], 0)
    expect(peers.update([me, member('b-1', 2, metaOf('b', 5, 2), 'left')], 0)).toEqual([origin(2)])
    expect(peers.list()).toEqual([])
  })
})

describe('member views', () => {
  it('list a node once, with the newest start, and strangers by their wire names', () => {
    const views = memberViews(
      [
        me,
        member('b-1', 2, metaOf('b', 5, 2), 'dead'),
        member('b-2', 3, metaOf('b', 9, 3)),
        member('go', 4, null),
      ],
      self,
      own,
    )
    expect(views.map(view => [view.name, view.wireName, view.state, view.self])).toEqual([
      ['b', 'b-2', 'alive', false],
      ['go', 'go', 'alive', false],
      ['me', 'me-x', 'alive', true],
    ])
  })
})
