/**
 * The name of a counter between pods: 64 bits of HMAC-SHA-256 over the rule's identity and the key
 * text. Raw keys never leave the pod; without the secret a hash cannot be guessed back. counters.md
 * §2.
 */
import { createHash, createHmac } from 'node:crypto'

export interface CounterId {
  readonly hi: number
  readonly lo: number
}

export class CounterIds {
  readonly #secret: Uint8Array

  /** `secret` null: derived from the gossip label, which keeps fleets apart but hides nothing. */
  constructor(secret: Uint8Array | null, label: string) {
    this.#secret = secret ?? createHmac('sha256', 'grapevine counter ids').update(label).digest()
  }

  /** About 5 microseconds: to be called once per key, at first sight. */
  of(identity: string, key: string): CounterId {
    const digest = createHmac('sha256', this.#secret)
      .update(`${identity.length}:${identity}`)
      .update(key)
      .digest()
    return { hi: digest.readUInt32BE(0), lo: digest.readUInt32BE(4) }
  }
}

export function counterIdText(hi: number, lo: number): string {
  return hi.toString(16).padStart(8, '0') + lo.toString(16).padStart(8, '0')
}

/** Null for text that is not 16 hex digits. */
export function parseCounterId(text: string): CounterId | null {
  if (!/^[0-9a-fA-F]{16}$/.test(text)) return null
  return { hi: Number.parseInt(text.slice(0, 8), 16), lo: Number.parseInt(text.slice(8), 16) }
}

/** Stands for a key text that is too long to keep; the same on every pod. */
export function longKeyDigest(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('base64url')}`
}
