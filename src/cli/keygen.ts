/** `grapevine keygen`: a key for `gossip.encryptionKeys`. */
import type { Entropy } from '../ports.js'
import type { Host } from './host.js'

/** AES-256. */
const keyBytes = 32

export function keygen(host: Host, entropy: Entropy): number {
  host.stdout.write(`${Buffer.from(entropy(keyBytes)).toString('base64')}\n`)
  return 0
}
