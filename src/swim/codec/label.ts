/**
 * The label header, outermost on packets and at the start of a dialled stream:
 *
 *     f4 | size u8 (1..255) | label
 *
 * Source: memberlist label.go.
 */
import { messageType } from '../messages.js'
import type { Wire } from './wire.js'
import type { WireError } from './wire-error.js'

export const labelHeadBytes = 2

/**
 * Where the bytes after the label begin, if a label header that this node accepts (or rightly none)
 * stands at the front; else the error. `truncated` on a stream means that the header has not
 * arrived whole.
 */
export function labelEnd(bytes: Uint8Array, wire: Wire): number | WireError {
  if (bytes[0] !== messageType.label) {
    return wire.skipInboundLabelCheck || wire.labelBytes.length === 0 ? 0 : 'labelMismatch'
  }
  const size = bytes[1]
  if (size === 0) return 'labelMalformed'
  if (size === undefined || bytes.length < labelHeadBytes + size) return 'truncated'
  if (wire.skipInboundLabelCheck) return 'labelUnexpected'
  if (size !== wire.labelBytes.length) return 'labelMismatch'
  for (let index = 0; index < size; index++) {
    if (bytes[labelHeadBytes + index] !== wire.labelBytes[index]) return 'labelMismatch'
  }
  return labelHeadBytes + size
}
