import { describe, expect, it } from 'vitest'
import type { NodeRecord } from '../../../src/swim/messages.js'
import { incompatibility } from '../../../src/swim/versions.js'
import type { MemberName } from '../../../src/vocabulary.js'
import { fromHex, memberlistVectors } from '../../helpers/memberlist-vectors.js'

interface GoRecord {
  readonly Name: string
  readonly State: number
  readonly Vsn: { readonly hex: string } | null
}

function recordOf(go: GoRecord): NodeRecord {
  return {
    name: go.Name as MemberName,
    addressBytes: null,
    port: 0,
    incarnation: 0,
    meta: null,
    state: go.State,
    versions: go.Vsn === null ? null : fromHex(go.Vsn.hex),
  }
}

const self = {
  name: 'self' as MemberName,
  address: { host: '127.0.0.1', port: 7946 },
  addressBytes: Uint8Array.of(127, 0, 0, 1),
  meta: new Uint8Array(0),
  state: 'alive' as const,
  incarnation: 1,
  versions: Uint8Array.of(1, 5, 2, 0, 0, 0),
  stateChangedAtMs: 0,
}

describe('version check', () => {
  const rows: readonly { case: string; error: string | null; remote: GoRecord[] }[] =
    memberlistVectors.tables.verifyProtocol.rows

  it.each(rows)('agrees with the Go library: $case', ({ remote, error }) => {
    expect(incompatibility(remote.map(recordOf), [self])).toBe(error)
  })

  it('takes versions of another length for absent, as newer Go nodes do', () => {
    const short = recordOf({ Name: 'r', State: 0, Vsn: { hex: '010502' } })
    expect(incompatibility([short], [self])).toBe(
      "Node 'r' protocol version (0) is incompatible: [1, 5]",
    )
  })
})
