/** The configuration as it may be shown: texts of secrets left out, references kept. Pure. */
import type { SecretRef, SidecarConfig } from '../config/sidecar-config.js'

export function publicConfig(config: SidecarConfig): unknown {
  const { gossip, counters, identity } = config
  const jwt = identity.jwt && { ...identity.jwt, secret: shown(identity.jwt.secret) }
  return {
    ...config,
    gossip: { ...gossip, encryptionKeys: gossip.encryptionKeys.map(shown) },
    counters: { ...counters, secret: shown(counters.secret) },
    identity: { ...identity, jwt },
  }
}

function shown(secret: SecretRef | null): object | null {
  return secret?.kind === 'text' ? { kind: 'text', text: '[redacted]' } : secret
}
