import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemEntropy } from '../../../src/gossip/system-clock.js'
import { issueCertificate } from '../../../src/injector/certificate.js'
import { Injector } from '../../../src/injector/injector.js'
import { type InjectorConfig, parseInjectorConfig } from '../../../src/injector/injector-config.js'
import { FakeCluster } from '../../helpers/fake-cluster.js'

const day = 86_400_000

function config(certificate: string): InjectorConfig {
  const parsed = parseInjectorConfig(
    `version: 1\nlisten: 127.0.0.1:0\ntelemetry: 127.0.0.1:0\nreportServices: true\ncertificate: ${certificate}\nsidecar: { image: "grapevine:test" }\n`,
    'injector.yaml',
  )
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.findings))
  return parsed.config
}

const selfManaged =
  '{ source: self-managed, namespace: shop, secret: tls, service: hook, webhook: hook }'

interface World {
  readonly wall: { ms: number }
  readonly cluster: FakeCluster
}

let running: Injector | null = null
let folder = ''

async function start(certificate: string, world: World): Promise<Injector> {
  const parsed = config(certificate)
  running = await Injector.start(parsed, parsed.certificate!, {
    log: pino({ level: 'silent' }),
    clock: { wallMs: () => world.wall.ms, monotonicMs: () => 0 },
    entropy: systemEntropy,
    cluster: world.cluster,
  })
  return running
}

const world = (): World => ({ wall: { ms: Date.now() }, cluster: new FakeCluster() })

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'injector-'))
})

afterEach(async () => {
  await running?.stop()
  running = null
  await rm(folder, { recursive: true })
})

/** POSTs over TLS, trusting `ca` for the name the API server would use. */
function post(
  address: string,
  ca: string,
  body: unknown,
): Promise<{ status: number; body: never }> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host,
        port,
        path: '/mutate?timeout=5s',
        method: 'POST',
        ca,
        servername: 'hook.shop.svc',
        headers: { 'content-type': 'application/json' },
        agent: false,
      },
      answer => {
        let text = ''
        answer.on('data', chunk => {
          text += chunk
        })
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, body: JSON.parse(text) as never }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
}

function served(address: string): Promise<string> {
  const [host, port] = address.split(':')
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

const review = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u-1',
    operation: 'CREATE',
    namespace: 'shop',
    kind: { kind: 'Pod' },
    object: {
      metadata: { labels: { app: 'shop' } },
      spec: { containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 3000 }] }] },
    },
  },
}

describe('the injector', () => {
  test('serves reviews under a certificate that the bundle trusts, and counts them', async () => {
    const { wall, cluster } = world()
    cluster.services_ = [
      { name: 'web', selector: { app: 'shop' }, ports: [{ port: 80, targetPort: 3000 }] },
    ]
    const injector = await start(selfManaged, { wall, cluster })
    const answer = await post(injector.addresses.webhook!, cluster.bundles[0]!, review)
    expect(answer).toMatchObject({
      status: 200,
      body: { response: { uid: 'u-1', allowed: true, patchType: 'JSONPatch' } },
    })
    expect(JSON.stringify(answer.body)).toContain('bypasses the limiter')
    expect((await post(injector.addresses.webhook!, cluster.bundles[0]!, '{')).status).toBe(400)
    expect((await post(injector.addresses.webhook!, cluster.bundles[0]!, {})).status).toBe(400)
    const metrics = await (await fetch(`http://${injector.addresses.telemetry}/metrics`)).text()
    expect(metrics).toContain('grapevine_injector_admission_requests_total{result="injected"} 1')
    expect(metrics).toContain('grapevine_injector_admission_requests_total{result="invalid"} 2')
    expect(metrics).toMatch(/grapevine_injector_certificate_expiry_timestamp_seconds \d{10}/)
  })

  test('answers although Services cannot be read', async () => {
    const { wall, cluster } = world()
    const injector = await start(selfManaged, { wall, cluster })
    const bundle = cluster.bundles[0]!
    cluster.down = true
    expect((await post(injector.addresses.webhook!, bundle, review)).status).toBe(200)
    expect(injector.counts.serviceLookupFailures).toBe(1)
  })

  test('is not ready until it has a certificate, and then is', async () => {
    const { wall, cluster } = world()
    cluster.down = true
    const injector = await start(selfManaged, { wall, cluster })
    const ready = async () => (await fetch(`http://${injector.addresses.telemetry}/readyz`)).status
    expect(injector.addresses.webhook).toBeNull()
    expect(await ready()).toBe(503)
    cluster.down = false
    await injector.look()
    expect(await ready()).toBe(200)
    expect(injector.counts.certificateFailures).toBe(1)
  })

  test('serves a renewed certificate without a restart, and keeps the old one if that fails', async () => {
    const { wall, cluster } = world()
    const injector = await start(selfManaged, { wall, cluster })
    const address = injector.addresses.webhook!
    const first = await served(address)
    wall.ms += 61 * day
    cluster.down = true
    await injector.look()
    expect(await served(address)).toBe(first)
    cluster.down = false
    await injector.look()
    expect(await served(address)).not.toBe(first)
    expect(injector.counts.certificateReloads).toBe(2)
  })

  test('takes certificates from files, and again when they change', async () => {
    const write = async () => {
      const issued = issueCertificate({
        dnsNames: ['hook.shop.svc'],
        notBeforeMs: Date.now() - day,
        notAfterMs: Date.now() + day,
        entropy: systemEntropy,
      })
      await writeFile(join(folder, 'tls.crt'), issued.certificate)
      await writeFile(join(folder, 'tls.key'), issued.key)
      return issued.authority
    }
    const before = await write()
    const injector = await start(`{ source: files, directory: ${folder} }`, world())
    const address = injector.addresses.webhook!
    expect((await post(address, before, review)).status).toBe(200)
    const after = await write()
    await injector.look()
    expect((await post(address, after, review)).status).toBe(200)
    await expect(post(address, before, review)).rejects.toThrow()
  })

  test('a port that is taken is an error at the start', async () => {
    const first = await start(selfManaged, world())
    const taken = config(selfManaged)
    const [host, port] = first.addresses.webhook!.split(':')
    const busy = { ...taken, listen: { kind: 'tcp' as const, host: host!, port: Number(port) } }
    await expect(
      Injector.start(busy, busy.certificate!, {
        log: pino({ level: 'silent' }),
        clock: { wallMs: () => Date.now(), monotonicMs: () => 0 },
        entropy: systemEntropy,
        cluster: new FakeCluster(),
      }),
    ).rejects.toThrow('already in use')
  })
})

describe('the injector’s file', () => {
  test.each([
    ['version: 2\n', 'version'],
    ['version: 1\nsidecar: { imagee: x }\n', 'sidecar.imagee'],
    ['version: 1\ncertificate: { source: magic }\n', 'certificate'],
    ['version: 1\nlisten: nowhere\n', 'listen'],
    ['version: 1\nsidecar: { drainWait: 5 }\n', 'sidecar.drainWait'],
  ])('%j is refused at its place', (text, path) => {
    const parsed = parseInjectorConfig(text, 'injector.yaml')
    if (parsed.ok) throw new Error('was accepted')
    expect(parsed.findings.map(finding => finding.path)).toContain(path)
    expect(parsed.findings[0]?.line).toBeGreaterThan(0)
  })

  test('may be as short as its version', () => {
    expect(parseInjectorConfig('version: 1\n', 'x')).toMatchObject({
      ok: true,
      config: { certificate: null, sidecar: { ring: 'grapevine' } },
    })
  })
})
