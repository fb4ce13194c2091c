/**
 * Keeps the webhook's certificate: made when there is none, renewed at two thirds of its life,
 * shared by all replicas through one Secret, and trusted by the API server through `caBundle`.
 *
 * At a renewal the old authority stays in the bundle beside the new one, and the bundle is written
 * before the new certificate is served: whichever replica the API server meets, it trusts it.
 */
import {
  type CertificateFacts,
  certificateFacts,
  issueCertificate,
  renewalMs,
} from './certificate.js'
import type { Cluster, StoredSecret } from './cluster.js'

export interface KeeperOptions {
  /** Names that the certificate is for. */
  readonly dnsNames: readonly string[]
  readonly lifetimeMs: number
}

export interface KeeperPorts {
  readonly cluster: Pick<Cluster, 'readSecret' | 'writeSecret' | 'readBundles' | 'writeBundles'>
  readonly wallMs: () => number
  readonly entropy: (bytes: number) => Uint8Array
}

/** What a TLS listener needs, PEM. */
export interface ServingPair {
  readonly cert: string
  readonly key: string
  readonly notAfterMs: number
}

/** Clocks of nodes differ; a certificate is valid from a little earlier than now. */
const skewMs = 5 * 60_000
const keys = { certificate: 'tls.crt', key: 'tls.key', authorities: 'ca.crt' } as const
/** Authorities kept in the bundle: the present one and the one before. */
const authoritiesMax = 2

export class KeeperError extends Error {}

/** Brings Secret and bundle into order, and returns what to serve. Rejects when the API fails. */
export async function reconcile(options: KeeperOptions, ports: KeeperPorts): Promise<ServingPair> {
  const { cluster } = ports
  let stored = await read(cluster)
  if (needsRenewal(stored, options, ports.wallMs())) {
    await renew(stored, options, ports)
    // Whether this replica won or another one did, what is stored now is what counts.
    stored = await read(cluster)
  }
  const pair = pairOf(stored)
  if (pair === null) throw new KeeperError('the stored certificate cannot be read')
  const authorities = stored.data[keys.authorities] ?? ''
  const bundles = await cluster.readBundles()
  if (bundles.some(bundle => bundle.trim() !== authorities.trim())) {
    await cluster.writeBundles(authorities)
  }
  return pair
}

async function read(cluster: KeeperPorts['cluster']): Promise<StoredSecret> {
  const stored = await cluster.readSecret()
  if (stored === null) throw new KeeperError('the secret for the certificate does not exist')
  return stored
}

function needsRenewal(stored: StoredSecret, options: KeeperOptions, wallMs: number): boolean {
  const pair = pairOf(stored)
  if (pair === null || (stored.data[keys.authorities] ?? '') === '') return true
  return wallMs >= renewalMs(pair) || wallMs < pair.notBeforeMs || !names(stored, options)
}

/** Whether the certificate is for all names wanted; a renamed Service needs a new one. */
function names(stored: StoredSecret, { dnsNames }: KeeperOptions): boolean {
  const facts = certificateFacts(stored.data[keys.certificate] ?? '')
  return facts !== null && dnsNames.every(name => facts.dnsNames.includes(name))
}

function pairOf(stored: StoredSecret): (ServingPair & CertificateFacts) | null {
  const cert = stored.data[keys.certificate] ?? ''
  const key = stored.data[keys.key] ?? ''
  const facts = key === '' ? null : certificateFacts(cert)
  return facts === null ? null : { cert, key, ...facts }
}

async function renew(
  stored: StoredSecret,
  { dnsNames, lifetimeMs }: KeeperOptions,
  { cluster, wallMs, entropy }: KeeperPorts,
): Promise<void> {
  const now = wallMs()
  const issued = issueCertificate({
    dnsNames,
    notBeforeMs: now - skewMs,
    notAfterMs: now + lifetimeMs,
    entropy,
  })
  const before = certificatesIn(stored.data[keys.authorities] ?? '').filter(
    authority => (certificateFacts(authority)?.notAfterMs ?? 0) > now,
  )
  const authorities = [issued.authority, ...before].slice(0, authoritiesMax).join('')
  await cluster.writeSecret(
    {
      [keys.certificate]: issued.certificate,
      [keys.key]: issued.key,
      [keys.authorities]: authorities,
    },
    stored.revision,
  )
}

function certificatesIn(text: string): string[] {
  return (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    pem => `${pem}\n`,
  )
}
