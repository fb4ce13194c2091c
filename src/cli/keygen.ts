/** `grapevine keygen`: a key for `gossip.encryptionKeys`. */
import { systemEntropy } from '../gossip/system-clock.js'
import { exitStatus, type Host } from './host.js'

/** AES-256. */
const keyBytes = 32

export function keygen(host: Host): number {
  host.stdout.write(`${Buffer.from(systemEntropy(keyBytes)).toString('base64')}\n`)
  return exitStatus.ok
}
