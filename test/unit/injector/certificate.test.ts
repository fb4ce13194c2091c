import { X509Certificate } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { certificateFacts, issueCertificate, renewalMs } from '../../../src/injector/certificate.js'
import { reconcile } from '../../../src/injector/certificate-keeper.js'
import { integer, oid, time } from '../../../src/injector/der.js'
import { FakeCluster } from '../../helpers/fake-cluster.js'

const day = 86_400_000
const start = Date.UTC(2026, 10, 30)
let counter = 0
const entropy = (bytes: number) => new Uint8Array(bytes).fill(++counter)

describe('DER', () => {
  test.each([
    [[0], '020100'],
    [[0x7f], '02017f'],
    [[0x80], '02020080'],
    [[0, 0, 1], '020101'],
  ])('integer %j', (bytes, hex) => {
    expect(integer(Buffer.from(bytes)).toString('hex')).toBe(hex)
  })

  test('object identifiers take seven bits a byte', () => {
    expect(oid('1.2.840.10045.4.3.2').toString('hex')).toBe('06082a8648ce3d040302')
  })

  test('times are UTCTime until 2049 and GeneralizedTime from 2050', () => {
    const text = (wallMs: number) => time(wallMs).subarray(2).toString()
    expect(text(Date.UTC(2049, 11, 31, 23, 59, 59))).toBe('491231235959Z')
    expect(text(Date.UTC(2050, 0, 1))).toBe('20500101000000Z')
  })
})

describe('an issued certificate', () => {
  const issued = issueCertificate({
    dnsNames: ['hook.shop.svc', 'localhost'],
    notBeforeMs: start,
    notAfterMs: start + 90 * day,
    entropy,
  })

  test('is signed by its authority, for its names and its time', () => {
    const certificate = new X509Certificate(issued.certificate)
    const authority = new X509Certificate(issued.authority)
    expect(certificate.verify(authority.publicKey)).toBe(true)
    expect(certificate.checkIssued(authority)).toBe(true)
    expect(authority.ca).toBe(true)
    expect(certificate.ca).toBe(false)
    expect(certificate.checkHost('hook.shop.svc')).toBe('hook.shop.svc')
    expect(certificate.checkHost('other.shop.svc')).toBeUndefined()
    expect(certificateFacts(issued.certificate)).toEqual({
      notBeforeMs: start,
      notAfterMs: start + 90 * day,
      dnsNames: ['hook.shop.svc', 'localhost'],
    })
  })

  test('serves TLS to whoever trusts the authority, and to nobody else', async () => {
    const fresh = issueCertificate({
      dnsNames: ['localhost'],
      notBeforeMs: Date.now() - day,
      notAfterMs: Date.now() + day,
      entropy,
    })
    const server = createServer({ cert: fresh.certificate, key: fresh.key })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const shake = (ca: string) =>
      new Promise<string>(resolve => {
        const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca })
        socket.once('secureConnect', () => {
          resolve('trusted')
          socket.destroy()
        })
        socket.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? ''))
      })
    expect(await shake(fresh.authority)).toBe('trusted')
    expect(await shake(issued.authority)).not.toBe('trusted')
    server.close()
  })

  test('is renewed at two thirds of its life', () => {
    expect(renewalMs({ notBeforeMs: 0, notAfterMs: 90 })).toBe(60)
  })
})

describe('the keeper', () => {
  const options = { dnsNames: ['hook.shop.svc'], lifetimeMs: 90 * day }

  test('makes a certificate where there is none, and makes it known', async () => {
    const cluster = new FakeCluster()
    const pair = await reconcile(options, { cluster, wallMs: () => start, entropy })
    expect(new X509Certificate(pair.cert).checkHost('hook.shop.svc')).toBe('hook.shop.svc')
    expect(cluster.bundles).toEqual([cluster.secret?.['ca.crt'], cluster.secret?.['ca.crt']])
    const again = await reconcile(options, { cluster, wallMs: () => start + 59 * day, entropy })
    expect(again).toEqual(pair)
    expect(cluster.writes).toBe(1)
  })

  test('renews at two thirds, and trusts the old authority until the next time', async () => {
    const cluster = new FakeCluster()
    const at = (days: number) => ({ cluster, wallMs: () => start + days * day, entropy })
    const first = await reconcile(options, at(0))
    const second = await reconcile(options, at(61))
    expect(second.cert).not.toBe(first.cert)
    const trusts = (bundle: string, cert: string) =>
      (bundle.match(/-----BEGIN[\s\S]+?END CERTIFICATE-----/g) ?? []).some(authority =>
        new X509Certificate(cert).verify(new X509Certificate(authority).publicKey),
      )
    expect(trusts(cluster.bundles[0] ?? '', first.cert)).toBe(true)
    expect(trusts(cluster.bundles[0] ?? '', second.cert)).toBe(true)
    await reconcile(options, at(122))
    expect(trusts(cluster.bundles[0] ?? '', first.cert)).toBe(false)
    expect(trusts(cluster.bundles[0] ?? '', second.cert)).toBe(true)
  })

  test('of two replicas one writes, and both serve the same', async () => {
    const cluster = new FakeCluster()
    const ports = { cluster, wallMs: () => start, entropy }
    const [one, two] = await Promise.all([reconcile(options, ports), reconcile(options, ports)])
    expect(one).toEqual(two)
    expect(cluster.writes).toBe(1)
  })

  test('renews for another name, and after garbage', async () => {
    const cluster = new FakeCluster()
    const ports = { cluster, wallMs: () => start, entropy }
    const first = await reconcile(options, ports)
    const renamed = await reconcile({ ...options, dnsNames: ['other.shop.svc'] }, ports)
    expect(renamed.cert).not.toBe(first.cert)
    cluster.secret = { ...cluster.secret, 'tls.crt': 'nonsense' }
    expect(certificateFacts((await reconcile(options, ports)).cert)).not.toBeNull()
  })

  test('puts a bundle right that something emptied', async () => {
    const cluster = new FakeCluster()
    const ports = { cluster, wallMs: () => start, entropy }
    await reconcile(options, ports)
    cluster.bundles = ['', cluster.bundles[1] ?? '']
    await reconcile(options, ports)
    expect(cluster.bundles[0]).toBe(cluster.secret?.['ca.crt'])
  })

  test('rejects without its secret and when the API is down', async () => {
    const cluster = new FakeCluster()
    const ports = { cluster, wallMs: () => start, entropy }
    cluster.secret = null
    await expect(reconcile(options, ports)).rejects.toThrow('does not exist')
    cluster.down = true
    await expect(reconcile(options, ports)).rejects.toThrow('the API is down')
  })
})
