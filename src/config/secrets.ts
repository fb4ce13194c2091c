/** Reads what `SecretRef`s stand for, when it is needed and again when a file changes. */
import { readFileSync, statSync } from 'node:fs'
import { bad, good, type Read } from './grammar.js'
import { decodeGossipKey } from './schema-terms.js'
import type { SecretRef } from './sidecar-config.js'

/** Largest secret file in bytes; a Secret's keys are far smaller. */
const secretBytesMax = 64 * 1024
/** Fewest bytes of a counter secret. */
const secretBytesMin = 16
/** Most keys in a ring. */
export const keyringMax = 16

/** The secret as text, without white space around it. */
export function readSecretText(ref: SecretRef): Read<string> {
  if (ref.kind === 'text') return good(ref.text)
  try {
    if (statSync(ref.path).size > secretBytesMax) {
      return bad(`${ref.path} is larger than ${secretBytesMax} bytes`)
    }
    const text = readFileSync(ref.path, 'utf8').trim()
    return text === '' ? bad(`${ref.path} is empty`) : good(text)
  } catch (error) {
    return bad(`${ref.path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? error}`)
  }
}

/** `counters.secret` as bytes: the text in UTF-8, at least 16 bytes. */
export function readCounterSecret(ref: SecretRef): Read<Uint8Array> {
  const text = readSecretText(ref)
  if (!text.ok) return bad(text.error)
  const bytes = new TextEncoder().encode(text.value)
  if (bytes.length < secretBytesMin) {
    return bad(`a counter secret has at least ${secretBytesMin} bytes, got ${bytes.length}`)
  }
  return good(bytes)
}

/**
 * The gossip keys in order, the first of which encrypts. A file holds one base64 key per line;
 * blank lines and lines that begin with `#` are passed over. A key that stands twice counts once.
 */
export function readKeyring(refs: readonly SecretRef[]): Read<Uint8Array[]> {
  const keys = new Map<string, Uint8Array>()
  for (const ref of refs) {
    const text = readSecretText(ref)
    if (!text.ok) return bad(text.error)
    const lines = text.value.split(/\r?\n/).map(line => line.trim())
    for (const line of lines.filter(line => line !== '' && !line.startsWith('#'))) {
      const key = decodeGossipKey(line)
      if (!key.ok) return bad(`${ref.kind === 'file' ? ref.path : 'gossip key'}: ${key.error}`)
      keys.set(Buffer.from(key.value).toString('base64'), key.value)
    }
  }
  if (refs.length > 0 && keys.size === 0) return bad('the key files hold no key')
  if (keys.size > keyringMax) return bad(`more than ${keyringMax} gossip keys`)
  return good([...keys.values()])
}
