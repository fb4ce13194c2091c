/**
 * The encrypted unit of packets and streams, AES-GCM with 128-bit tags:
 *
 *     version u8 | nonce 12 | ciphertext | tag 16
 *
 * Version 0 pads the plaintext to whole blocks of 16 (PKCS #7), version 1 does not. Version and
 * nonce are not authenticated. Source: memberlist security.go.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Entropy } from '../../ports.js'
import type { Keyring, RingKey } from './keyring.js'
import { type Decoded, refused } from './wire-error.js'

const nonceBytes = 12
const tagBytes = 16
const blockBytes = 16
const headBytes = 1 + nonceBytes

export type EncryptionVersion = 0 | 1

/** Most bytes encryption adds to a plaintext; what packet budgets subtract. */
export function encryptOverhead(version: EncryptionVersion): number {
  return version === 0 ? headBytes + blockBytes + tagBytes : headBytes + tagBytes
}

/** Length of the unit around `plainBytes` bytes. */
export function encryptedLength(version: EncryptionVersion, plainBytes: number): number {
  const padding = version === 0 ? blockBytes - (plainBytes % blockBytes) : 0
  return headBytes + plainBytes + padding + tagBytes
}

/** `aad`: authenticated with the text but not part of the unit. */
export function encrypt(
  key: RingKey,
  version: EncryptionVersion,
  plain: Uint8Array,
  aad: Uint8Array,
  entropy: Entropy,
): Uint8Array {
  const unit = new Uint8Array(encryptedLength(version, plain.length))
  const nonce = entropy(nonceBytes)
  unit[0] = version
  unit.set(nonce, 1)
  const cipher = createCipheriv(key.algorithm, key.secret, nonce, { authTagLength: tagBytes })
  if (aad.length > 0) cipher.setAAD(aad)
  unit.set(cipher.update(plain), headBytes)
  const paddingBytes = unit.length - headBytes - tagBytes - plain.length
  if (paddingBytes > 0) {
    const padding = new Uint8Array(paddingBytes).fill(paddingBytes)
    unit.set(cipher.update(padding), headBytes + plain.length)
  }
  cipher.final()
  unit.set(cipher.getAuthTag(), unit.length - tagBytes)
  return unit
}

/** Opens a unit with whichever key of the ring fits. */
export function decrypt(keyring: Keyring, unit: Uint8Array, aad: Uint8Array): Decoded<Uint8Array> {
  const version = unit[0]
  if (version === undefined) return refused('empty')
  if (version > 1) return refused('encryptionMalformed')
  if (unit.length < encryptedLength(version as EncryptionVersion, 0))
    return refused('encryptionMalformed')
  for (const key of keyring.keys) {
    const plain = open(key, unit, aad)
    if (plain === null) continue
    return version === 0 ? unpad(plain) : { ok: true, value: plain }
  }
  return refused('undecryptable')
}

function open(key: RingKey, unit: Uint8Array, aad: Uint8Array): Uint8Array | null {
  const nonce = unit.subarray(1, headBytes)
  const tagStart = unit.length - tagBytes
  const decipher = createDecipheriv(key.algorithm, key.secret, nonce, { authTagLength: tagBytes })
  if (aad.length > 0) decipher.setAAD(aad)
  decipher.setAuthTag(unit.subarray(tagStart))
  const plain = decipher.update(unit.subarray(headBytes, tagStart))
  try {
    decipher.final()
  } catch {
    return null
  }
  return new Uint8Array(plain.buffer, plain.byteOffset, plain.length)
}

/**
 * Takes version 0's padding off. Version 1 rewritten to 0 opens too, the version not being
 * authenticated, so the padding is checked before it is believed.
 */
function unpad(plain: Uint8Array): Decoded<Uint8Array> {
  const padding = plain[plain.length - 1] ?? 0
  if (padding < 1 || padding > blockBytes || padding > plain.length)
    return refused('encryptionMalformed')
  return { ok: true, value: plain.subarray(0, plain.length - padding) }
}
