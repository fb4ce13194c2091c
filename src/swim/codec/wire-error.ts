/**
 * Why bytes from the network were refused. The set is closed: it labels counters and decides
 * whether a stream deserves an error reply. Decoders return these and never throw.
 */

export const wireErrors = [
  /** Nothing where a message should stand. */
  'empty',
  /** The bytes end before the structure they announce. */
  'truncated',
  /** A length, count or size above what this side accepts. */
  'tooLarge',
  /** Layers, or values inside values, nested deeper than any real sender does. */
  'tooDeep',
  /** A length or count below zero. */
  'negativeLength',
  /** Not a message type this transport carries. */
  'unknownType',
  /** Msgpack of another type than the field's. */
  'valueType',
  /** A number outside the field's range. */
  'valueRange',
  'labelMalformed',
  'labelMismatch',
  /** A label header although inbound labels are said to be stripped before they get here. */
  'labelUnexpected',
  /** Plain bytes where encryption is required. */
  'notEncrypted',
  /** An encrypted stream, and no key to open it. */
  'noKey',
  /** Encryption version or length that no sender produces. */
  'encryptionMalformed',
  /** No key on the ring opens it: a stranger's, or damaged. */
  'undecryptable',
  'checksumMismatch',
  'compressionUnknown',
  'compressionMalformed',
  /** A compress or encrypt frame around nothing on a stream. */
  'frameEmpty',
  /** The peer closed before sending a byte: a port probe, not a fault. */
  'closedUnused',
] as const

export type WireError = (typeof wireErrors)[number]

export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: WireError }

export function refused(error: WireError): { readonly ok: false; readonly error: WireError } {
  return { ok: false, error }
}
