/**
 * The gossip keys: the first one encrypts, all of them decrypt. Rotation is: add the new key
 * everywhere, use it everywhere, remove the old one everywhere. Source: memberlist keyring.go.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { assert } from '../../lib/assert.js'

/** Each packet that no key opens costs one attempt per key, so the ring is short. */
export const keysMax = 16

export type KeyError = 'keyLength' | 'ringFull' | 'keyUnknown' | 'keyPrimary'

/** A key with its cipher; AES-128, 192 or 256 by length. */
export interface RingKey {
  readonly bytes: Uint8Array
  readonly secret: KeyObject
  readonly algorithm: 'aes-128-gcm' | 'aes-192-gcm' | 'aes-256-gcm'
}

export class Keyring {
  private ring: readonly RingKey[] = []

  /** Why these keys make no ring, or null. An empty list is fine: encryption is off. */
  static problem(keys: readonly Uint8Array[]): KeyError | null {
    if (keys.length > keysMax) return 'ringFull'
    return keys.every(key => algorithmFor(key) !== null) ? null : 'keyLength'
  }

  /** `keys`: primary first, each of 16, 24 or 32 bytes; they must have passed `Keyring.problem`. */
  constructor(keys: readonly Uint8Array[] = []) {
    assert(this.replace(keys) === null, 'the keys were checked before a ring is made of them')
  }

  get size(): number {
    return this.ring.length
  }

  /** Primary first. */
  get keys(): readonly RingKey[] {
    return this.ring
  }

  get primary(): RingKey | null {
    return this.ring[0] ?? null
  }

  /** Takes a whole new ring, as a re-read key file gives it. On a problem the old ring stays. */
  replace(keys: readonly Uint8Array[]): KeyError | null {
    const problem = Keyring.problem(keys)
    if (problem !== null) return problem
    const ring: RingKey[] = []
    for (const key of keys) {
      if (!ring.some(known => sameBytes(known.bytes, key))) ring.push(prepare(key))
    }
    this.ring = ring
    return null
  }

  /** Adds a key that decrypts; the first one added to an empty ring is the primary. */
  add(key: Uint8Array): KeyError | null {
    if (algorithmFor(key) === null) return 'keyLength'
    if (this.find(key) !== undefined) return null
    if (this.ring.length >= keysMax) return 'ringFull'
    this.ring = [...this.ring, prepare(key)]
    return null
  }

  /** Makes a known key the primary. */
  use(key: Uint8Array): KeyError | null {
    const found = this.find(key)
    if (found === undefined) return 'keyUnknown'
    this.ring = [found, ...this.ring.filter(other => other !== found)]
    return null
  }

  /** Forgets a key; the primary cannot be removed. */
  remove(key: Uint8Array): KeyError | null {
    const found = this.find(key)
    if (found === undefined) return null
    if (found === this.primary) return 'keyPrimary'
    this.ring = this.ring.filter(other => other !== found)
    return null
  }

  private find(key: Uint8Array): RingKey | undefined {
    return this.ring.find(known => sameBytes(known.bytes, key))
  }
}

function algorithmFor(key: Uint8Array): RingKey['algorithm'] | null {
  if (key.length === 16) return 'aes-128-gcm'
  if (key.length === 24) return 'aes-192-gcm'
  return key.length === 32 ? 'aes-256-gcm' : null
}

function prepare(key: Uint8Array): RingKey {
  const bytes = Uint8Array.from(key)
  const algorithm = algorithmFor(bytes) as RingKey['algorithm']
  return { bytes, secret: createSecretKey(bytes), algorithm }
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index])
}
