/**
 * A large state as a row of small messages, so that neither writing nor reading it makes a request
 * wait: the parts are written ahead of time, a few hundred counters at once, and merged one after
 * the other.
 *
 *   bundle   'g' 'v'  version u8  kind 4  ends u8
 *            ends: 1 = the last part of the table is here, 2 = every part is
 *            then for each part:  length u32  heldMs f32  message
 */
import { bundleKind, magicFirst, magicSecond, messageVersion } from './counter-codec.js'
import { WireReader, WireWriter } from './wire-numbers.js'

export interface BundlePart {
  readonly bytes: Uint8Array
  /** How long ago it was written, milliseconds. */
  readonly heldMs: number
}

export interface Bundle {
  readonly parts: readonly BundlePart[]
  /**
   * A table is told in a row of bundles, from any place on: 1 where its end is passed, 2 when this
   * is all of it. So whoever has seen 2 of them in a row has seen everything.
   */
  readonly ends: number
}

const headerBytes = 5
const partHeaderBytes = 8
/** Parts in one bundle. */
const partsMax = 65_536

/** Takes parts in order as long as they fit into `bytesMax`. */
export function writeBundle(
  parts: readonly BundlePart[],
  bytesMax: number,
  ends: number,
): Uint8Array {
  let length = headerBytes
  const taken = parts.filter(part => {
    const longer = length + partHeaderBytes + part.bytes.length
    if (longer > bytesMax) return false
    length = longer
    return true
  })
  const out = new Uint8Array(length)
  out.set([magicFirst, magicSecond, messageVersion, bundleKind, ends])
  let at = headerBytes
  for (const part of taken) {
    const head = new WireWriter(partHeaderBytes)
    head.u32(part.bytes.length)
    head.f32(part.heldMs)
    out.set(head.take(), at)
    out.set(part.bytes, at + partHeaderBytes)
    at += partHeaderBytes + part.bytes.length
  }
  return out
}

/**
 * The parts of a bundle, views into it; null for anything else. A part that is cut short is left
 * out.
 */
export function readBundle(bytes: Uint8Array): Bundle | null {
  const isBundle =
    bytes[0] === magicFirst &&
    bytes[1] === magicSecond &&
    bytes[2] === messageVersion &&
    bytes[3] === bundleKind &&
    bytes.length >= headerBytes
  if (!isBundle) return null
  const parts: BundlePart[] = []
  let at = headerBytes
  while (at + partHeaderBytes <= bytes.length && parts.length < partsMax) {
    const head = new WireReader(bytes.subarray(at, at + partHeaderBytes))
    const length = head.u32()
    const heldMs = head.f32()
    at += partHeaderBytes
    if (head.failed || heldMs < 0 || at + length > bytes.length) break
    parts.push({ bytes: bytes.subarray(at, at + length), heldMs })
    at += length
  }
  return { parts, ends: bytes[4] as number }
}
