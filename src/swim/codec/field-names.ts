/**
 * The field names of memberlist's structs as small numbers, so that decoding a map allocates no key
 * strings. Source: the Go struct fields in memberlist net.go; names are case-sensitive.
 */

export const fields = {
  end: -2,
  unknown: -1,
  addr: 0,
  algo: 1,
  buf: 2,
  error: 3,
  from: 4,
  incarnation: 5,
  join: 6,
  meta: 7,
  nack: 8,
  name: 9,
  node: 10,
  nodes: 11,
  payload: 12,
  port: 13,
  seqNo: 14,
  sourceAddr: 15,
  sourceNode: 16,
  sourcePort: 17,
  state: 18,
  target: 19,
  userMsgLen: 20,
  userStateLen: 21,
  vsn: 22,
} as const

export type FieldId = (typeof fields)[keyof typeof fields]

const names: readonly string[] = [
  'Addr',
  'Algo',
  'Buf',
  'Error',
  'From',
  'Incarnation',
  'Join',
  'Meta',
  'Nack',
  'Name',
  'Node',
  'Nodes',
  'Payload',
  'Port',
  'SeqNo',
  'SourceAddr',
  'SourceNode',
  'SourcePort',
  'State',
  'Target',
  'UserMsgLen',
  'UserStateLen',
  'Vsn',
]

const encoder = new TextEncoder()

/** Each name as the bytes of a short msgpack string, ready to be written. Indexed by field id. */
export const encodedNames: readonly Uint8Array[] = names.map(name => {
  const bytes = encoder.encode(name)
  return Uint8Array.of(0xa0 + bytes.length, ...bytes)
})

const longestName = 12

/** The ids of the names of each length. */
const idsOfLength: readonly (readonly number[])[] = Array.from(
  { length: longestName + 1 },
  (_, length) => names.flatMap((name, id) => (name.length === length ? [id] : [])),
)

/** The id of the name in `bytes[start, start + length)`. */
export function fieldIdOf(bytes: Uint8Array, start: number, length: number): FieldId {
  if (length > longestName) return fields.unknown
  const candidates = idsOfLength[length] as readonly number[]
  for (const id of candidates) {
    const name = encodedNames[id] as Uint8Array
    let matched = 0
    while (matched < length && bytes[start + matched] === name[matched + 1]) matched += 1
    if (matched === length) return id as FieldId
  }
  return fields.unknown
}
