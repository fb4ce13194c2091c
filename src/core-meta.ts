/**
 * A node's meta: how a Grapevine node says what it is, in the at most 512 bytes that memberlist
 * gives every member. Bytes that are not ours (a Go peer's meta) decode to null and are left alone.
 */
import type { NodeMeta } from './core-types.js'
import type { OriginId } from './vocabulary.js'

/** Opens every meta of ours; the digit is the format, raised when an old reader could not cope. */
const magic = 'gv1'

/** memberlist's MetaMaxSize (memberlist.go). */
export const metaBytesMax = 512

/** Longest node name that always fits beside the other fields. */
export const nodeNameLengthMax = 253

const utf8 = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true })

/** The bytes for `meta`; at most 512 for a node name of up to 253 ASCII characters. */
export function encodeNodeMeta(meta: NodeMeta): Uint8Array {
  const fields = [
    magic,
    meta.origin,
    meta.start.toString(36),
    meta.configHash.toString(36),
    meta.draining ? 'd' : '-',
    meta.version,
    meta.node,
  ]
  return utf8.encode(fields.join(' '))
}

/** What a member's bytes say, or null when they are not a Grapevine node's. Never throws. */
export function decodeNodeMeta(bytes: Uint8Array): NodeMeta | null {
  if (bytes.length < magic.length || bytes.length > metaBytesMax) return null
  if (bytes[0] !== 0x67 || bytes[1] !== 0x76) return null
  const fields = splitFields(bytes)
  if (fields?.length !== 7 || fields[0] !== magic) return null
  const [, origin = '', start = '', configHash = '', draining = '', version = '', node = ''] =
    fields
  const startMs = Number.parseInt(start, 36)
  const hash = Number.parseInt(configHash, 36)
  if (!/^[0-9a-f]{16}$/.test(origin) || !Number.isSafeInteger(startMs)) return null
  if (!Number.isSafeInteger(hash) || node === '') return null
  return {
    node,
    origin: origin as OriginId,
    start: startMs,
    version,
    configHash: hash,
    draining: draining === 'd',
  }
}

/** The seven fields; the node name comes last and keeps its spaces. */
function splitFields(bytes: Uint8Array): string[] | null {
  try {
    const parts = strict.decode(bytes).split(' ')
    return parts.length < 7 ? null : [...parts.slice(0, 6), parts.slice(6).join(' ')]
  } catch {
    return null
  }
}

/** The origin that 8 random bytes stand for, as 16 hex digits. */
export function originOf(bytes: Uint8Array): OriginId {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text as OriginId
}
