import { describe, expect, it } from 'vitest'
import type { Member } from '../../../src/swim/member.js'
import { MemberTable } from '../../../src/swim/member-table.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { seededRandom } from '../../helpers/swim-node.js'

function member(name: string): Member {
  return {
    name: name as MemberName,
    address: { host: '10.0.0.1', port: 7946 },
    addressBytes: Uint8Array.of(10, 0, 0, 1),
    meta: new Uint8Array(0),
    state: 'alive',
    incarnation: 1,
    versions: new Uint8Array(6),
    stateChangedAtMs: 0,
  }
}

function createTable(size: number, seed = 1): MemberTable {
  const table = new MemberTable(seededRandom(seed))
  for (let i = 0; i < size; i++) table.add(member(`m${i}`))
  return table
}

const everybody = () => true
const nothing = () => undefined

describe('the member table', () => {
  it('lists in the order of arrival, whatever the ring does', () => {
    const table = createTable(5)
    table.shuffle()
    expect([...table.entries()].map(entry => entry.name)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4'])
  })

  it('probes each member once per round', () => {
    const table = createTable(10)
    const round = Array.from({ length: 10 }, () => table.nextToProbe(everybody, nothing)!.name)
    expect(new Set(round).size).toBe(10)
  })

  it('calls for the end of a round exactly there, and starts again after it', () => {
    const table = createTable(3)
    let rounds = 0
    const next = () =>
      table.nextToProbe(everybody, () => {
        rounds += 1
        table.shuffle()
      })
    const names = Array.from({ length: 9 }, () => next()!.name)
    expect(rounds).toBe(2)
    for (const start of [0, 3, 6]) expect(new Set(names.slice(start, start + 3)).size).toBe(3)
  })

  it('finds nobody to probe when nobody is wanted, and gives up after one round', () => {
    const table = createTable(4)
    let rounds = 0
    const found = table.nextToProbe(
      () => false,
      () => {
        rounds += 1
      },
    )
    expect([found, rounds]).toEqual([null, 0])
    expect(createTable(0).nextToProbe(everybody, nothing)).toBeNull()
  })

  it('enters newcomers at places of the ring that are all equally likely', () => {
    const places = new Map<number, number>()
    for (let seed = 0; seed < 2000; seed++) {
      const table = createTable(4, seed)
      table.add(member('new'))
      const place = table.ring().findIndex(entry => entry.name === 'new')
      places.set(place, (places.get(place) ?? 0) + 1)
    }
    expect([...places.keys()].sort()).toEqual([0, 1, 2, 3, 4])
    for (const [place, count] of places) expect(count / 2000, `place ${place}`).toBeCloseTo(0.2, 1)
  })

  it('picks different eligible members, and all of them if there are too few', () => {
    const table = createTable(3)
    const eligible = (candidate: Member) => candidate.name !== 'm1'
    for (let i = 0; i < 50; i++) {
      const names = table.pick(3, eligible).map(picked => picked.name as string)
      expect(names.sort()).toEqual(['m0', 'm2'])
    }
  })

  it('picks every set equally often', () => {
    const table = createTable(4)
    const sets = new Map<string, number>()
    for (let i = 0; i < 6000; i++) {
      const set = table
        .pick(2, everybody)
        .map(picked => picked.name as string)
        .sort()
        .join()
      sets.set(set, (sets.get(set) ?? 0) + 1)
    }
    expect(sets.size).toBe(6)
    for (const [set, count] of sets) expect(count / 1000, set).toBeCloseTo(1, 0)
  })

  it('forgets completely what it reaps', () => {
    const table = createTable(4)
    expect(table.reap(candidate => candidate.name === 'm2')).toBe(1)
    expect([table.size, table.get('m2')]).toEqual([3, undefined])
    expect([...table.entries()].map(entry => entry.name)).toEqual(['m0', 'm1', 'm3'])
    expect(table.ring()).toHaveLength(3)
  })
})
