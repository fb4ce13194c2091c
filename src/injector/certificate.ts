/**
 * The webhook's own certificate: an authority that signs one serving certificate and is forgotten,
 * so that no key lies around that could sign another. ECDSA over P-256, X.509 v3 (RFC 5280).
 */
import { createHash, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import {
  bitString,
  explicit,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
  set,
  time,
  truth,
  utf8String,
} from './der.js'

export interface IssuedCertificate {
  /** All PEM. The authority's certificate is what `caBundle` holds. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

export interface CertificateOrder {
  /** Names that the API server may call the webhook by; the first is the common name. */
  readonly dnsNames: readonly string[]
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** Source of serial numbers. */
  readonly entropy: (bytes: number) => Uint8Array
}

const oids = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

/** Most characters of a common name (RFC 5280, upper bound ub-common-name). */
const commonNameCharsMax = 64
/** RFC 5280 §4.1.2.2 allows 20 octets; the top bit is cleared, so that it never grows to 21. */
const serialBytes = 16
const dnsNameTag = 2
/** Bits of KeyUsage in one byte, the first bit being the highest: (bits, unused at the end). */
const keyUsages = {
  authority: { bits: 0b0000_0110, unused: 1 },
  serving: { bits: 0b1000_0000, unused: 7 },
} as const

export function issueCertificate(order: CertificateOrder): IssuedCertificate {
  const authority = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const serving = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const authorityName = nameOf('grapevine injector authority')
  const authorityKeyId = keyId(authority.publicKey)
  const authorityCertificate = signed(order, authority.privateKey, authorityName, {
    subject: authorityName,
    publicKey: authority.publicKey,
    extensions: [
      extension(oids.basicConstraints, true, sequence(truth(true), integer(Buffer.from([0])))),
      keyUsage('authority'),
      extension(oids.subjectKeyId, false, octetString(authorityKeyId)),
    ],
  })
  const commonName = (order.dnsNames[0] ?? 'grapevine').slice(0, commonNameCharsMax)
  const names = order.dnsNames.map(name => implicit(dnsNameTag, Buffer.from(name, 'ascii')))
  const certificate = signed(order, authority.privateKey, authorityName, {
    subject: nameOf(commonName),
    publicKey: serving.publicKey,
    extensions: [
      extension(oids.basicConstraints, true, sequence()),
      keyUsage('serving'),
      extension(oids.extendedKeyUsage, false, sequence(oid(oids.serverAuth))),
      extension(oids.subjectAltName, false, sequence(...names)),
      extension(oids.authorityKeyId, false, sequence(implicit(0, authorityKeyId))),
      extension(oids.subjectKeyId, false, octetString(keyId(serving.publicKey))),
    ],
  })
  return {
    authority: pem(authorityCertificate),
    certificate: pem(certificate),
    key: serving.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

interface Subject {
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
  readonly extensions: readonly Uint8Array[]
}

function signed(
  order: CertificateOrder,
  key: KeyObject,
  issuer: Uint8Array,
  { subject, publicKey, extensions }: Subject,
): Buffer {
  const serial = Buffer.from(order.entropy(serialBytes))
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const algorithm = sequence(oid(oids.ecdsaWithSha256))
  const version3 = explicit(0, integer(Buffer.from([2])))
  const body = sequence(
    version3,
    integer(serial),
    algorithm,
    issuer,
    sequence(time(order.notBeforeMs), time(order.notAfterMs)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions)),
  )
  return sequence(body, algorithm, bitString(sign('sha256', body, key)))
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(oid(oids.commonName), utf8String(commonName))))
}

function extension(id: string, critical: boolean, value: Uint8Array): Buffer {
  return critical
    ? sequence(oid(id), truth(true), octetString(value))
    : sequence(oid(id), octetString(value))
}

function keyUsage(whose: keyof typeof keyUsages): Buffer {
  const { bits, unused } = keyUsages[whose]
  return extension(oids.keyUsage, true, bitString(Buffer.from([bits]), unused))
}

/** RFC 5280 §4.2.1.2 leaves the method free: a hash over the key structure, cut to 160 bits. */
function keyId(publicKey: KeyObject): Buffer {
  const encoded = publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(encoded).digest().subarray(0, 20)
}

function pem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

export interface CertificateFacts {
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly dnsNames: readonly string[]
}

/** What `certificate` (PEM, the first one in it) says of itself; null when it is none. */
export function certificateFacts(certificate: string): CertificateFacts | null {
  try {
    const read = new X509Certificate(certificate)
    const names = [...(read.subjectAltName ?? '').matchAll(/DNS:([^,\s]+)/g)]
    return {
      notBeforeMs: Date.parse(read.validFrom),
      notAfterMs: Date.parse(read.validTo),
      dnsNames: names.map(match => match[1] ?? ''),
    }
  } catch {
    return null
  }
}

/** At two thirds of its life a certificate is replaced: a third is left for whatever goes wrong. */
export function renewalMs({
  notBeforeMs,
  notAfterMs,
}: Pick<CertificateFacts, 'notBeforeMs' | 'notAfterMs'>): number {
  return notBeforeMs + ((notAfterMs - notBeforeMs) * 2) / 3
}
