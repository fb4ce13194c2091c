/**
 * Whether two halves of a cluster can speak with each other (memberlist state.go verifyProtocol):
 * the ranges that all living members understand must overlap, and everybody, dead ones too, must
 * speak something within the overlap.
 */
import type { Member } from './member.js'
import { type NodeRecord, versionsBytes } from './messages.js'

/** Where a range and the spoken version stand in `[pmin, pmax, pcur, dmin, dmax, dcur]`. */
const parts = [
  { label: 'protocol version', min: 0, max: 1, spoken: 2 },
  { label: 'delegate protocol version', min: 3, max: 4, spoken: 5 },
] as const

interface Speaker {
  readonly name: string
  readonly alive: boolean
  /** Null when the record carries none: it then speaks version 0. */
  readonly versions: Uint8Array | null
}

/** Null if compatible, else the reason in the original's words. */
export function incompatibility(
  remote: readonly NodeRecord[],
  local: Iterable<Member>,
): string | null {
  const remotes = remote.map(record => ({
    name: record.name,
    alive: record.state === 0,
    versions: record.versions?.length === versionsBytes ? record.versions : null,
  }))
  const locals = Array.from(local, member => ({
    name: member.name,
    alive: member.state === 'alive',
    versions: member.versions,
  }))
  const speakers: readonly Speaker[] = [...remotes, ...locals]
  const ranges = parts.map(part => rangeOf(speakers, part))
  for (const { name, versions } of speakers) {
    for (const [index, part] of parts.entries()) {
      const { min, max } = ranges[index]!
      const spoken = versions?.[part.spoken] ?? 0
      if (spoken < min || spoken > max) {
        return `Node '${name}' ${part.label} (${spoken}) is incompatible: [${min}, ${max}]`
      }
    }
  }
  return null
}

function rangeOf(
  speakers: readonly Speaker[],
  part: (typeof parts)[number],
): { readonly min: number; readonly max: number } {
  let min = 0
  let max = 255
  for (const { alive, versions } of speakers) {
    if (!alive || versions === null) continue
    min = Math.max(min, versions[part.min] ?? 0)
    max = Math.min(max, versions[part.max] ?? 255)
  }
  return { min, max }
}
