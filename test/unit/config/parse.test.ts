// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the text under test has such variables.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkFiles } from '../../../src/config/check.js'
import { formatFinding } from '../../../src/config/finding.js'
import { overrides } from '../../../src/config/overrides.js'
import { parseRules, parseSidecar, type SidecarOptions } from '../../../src/config/parse.js'

const options: SidecarOptions = { env: {}, flags: {}, hostname: 'host-1' }

function sidecar(text: string, given: Partial<SidecarOptions> = {}) {
  const result = parseSidecar({ name: 'sidecar.yaml', text }, { ...options, ...given })
  if (!result.ok) throw new Error(result.findings.map(formatFinding).join('\n'))
  return result
}

function sidecarErrors(text: string, given: Partial<SidecarOptions> = {}): string[] {
  const result = parseSidecar({ name: 'sidecar.yaml', text }, { ...options, ...given })
  return result.ok ? [] : result.findings.map(formatFinding)
}

function rules(...texts: string[]) {
  const files = texts.map((text, index) => ({ name: `${index}.yaml`, text }))
  const result = parseRules(files)
  if (!result.ok) throw new Error(result.findings.map(formatFinding).join('\n'))
  return result.rules
}

const oneRule = (name: string, limit: string) =>
  `version: 1\nrules:\n  - { name: ${name}, key: [ip], limit: ${limit} }\n`

describe('the sidecar file', () => {
  it('has the defaults of the contract', () => {
    expect(sidecar('version: 1\n').config).toEqual({
      node: { name: 'host-1' },
      proxy: null,
      api: { listen: { kind: 'tcp', host: '127.0.0.1', port: 7981 } },
      telemetry: { listen: { kind: 'tcp', host: '0.0.0.0', port: 7990 } },
      admin: { listen: { kind: 'tcp', host: '127.0.0.1', port: 7991 }, revealKeys: false },
      gossip: {
        bind: { host: '0.0.0.0', port: 7946 },
        advertise: null,
        label: '',
        encryptionKeys: [],
        allow: null,
      },
      counters: { keysMax: 100_000, secret: null, checkpointPath: null },
      discovery: { static: [], dns: null, kubernetes: null },
      headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'epoch' },
      identity: { jwt: null },
      onStartupError: 'open',
      drainTimeoutMs: 3000,
      log: { level: 'info' },
      rulesFrom: null,
    })
  })

  it('is read whole, with every key of the contract that runs', () => {
    const text = `
version: 1
node: { name: "\${POD_NAME}" }
proxy:
  listen: 0.0.0.0:7980
  upstream: http://127.0.0.1:3000
  trustedProxies: [10.0.0.0/8]
api: { listen: "unix:/run/api.sock" }
admin: { listen: 127.0.0.1:7991, revealKeys: true }
gossip:
  bind: 0.0.0.0:7946
  advertise: "\${POD_IP}:7946"
  label: shop
  encryptionKeys: [file:/etc/grapevine/keys/gossip]
  allow: [10.0.0.0/8]
counters: { keys: 5000, secret: "file:/keys/counters", checkpoint: /var/lib/grapevine/totals }
discovery: { static: [127.0.0.1:7946], dns: grapevine-gossip.shop.svc }
headers: { ietf: off, legacy: github, reset: delta }
identity: { jwt: { jwks: https://issuer/jwks.json, issuer: https://issuer, audience: shop } }
onStartupError: fail
drainTimeout: 10s
log: { level: debug }
`
    const { config } = sidecar(text, { env: { POD_NAME: 'shop-1', POD_IP: '10.0.0.7' } })
    expect(config).toMatchObject({
      node: { name: 'shop-1' },
      proxy: {
        upstream: { protocol: 'http', address: { kind: 'tcp', host: '127.0.0.1', port: 3000 } },
        trustedProxies: ['10.0.0.0/8'],
      },
      api: { listen: { kind: 'unix', path: '/run/api.sock' } },
      admin: { revealKeys: true },
      gossip: {
        advertise: { host: '10.0.0.7', port: 7946 },
        label: 'shop',
        encryptionKeys: [{ kind: 'file', path: '/etc/grapevine/keys/gossip' }],
        allow: ['10.0.0.0/8'],
      },
      counters: {
        keysMax: 5000,
        secret: { kind: 'file', path: '/keys/counters' },
        checkpointPath: '/var/lib/grapevine/totals',
      },
      discovery: {
        static: [{ host: '127.0.0.1', port: 7946 }],
        dns: { host: 'grapevine-gossip.shop.svc', port: 7946 },
      },
      headers: { ietf: 'off', legacy: 'github', reset: 'delta' },
      identity: {
        jwt: {
          jwks: { kind: 'url', url: 'https://issuer/jwks.json' },
          secret: null,
          issuer: 'https://issuer',
          audience: 'shop',
        },
      },
      onStartupError: 'fail',
      drainTimeoutMs: 10_000,
      log: { level: 'debug' },
    })
  })

  it('takes false for off, which is what YAML 1.1 makes of it', () => {
    const { config } = sidecar('headers: { ietf: false, legacy: false, reset: false }')
    expect(config.headers).toEqual({ ietf: 'off', legacy: 'off', reset: 'off' })
  })

  it('keeps its own part when only the inline rules are wrong', () => {
    const result = sidecar('log: { level: warn }\nrules:\n  - { name: A }\n')
    expect(result.config.log.level).toBe('warn')
    expect(result.inlineRules?.ok).toBe(false)
  })

  it('has inline rules, in which variables are not expanded', () => {
    const text = `node: { name: "\${A}" }
rules:
  - name: api
    match: { header: { x-env: "\${A}" } }
    key: [ip]
    limit: 5/1s
`
    const { inlineRules } = sidecar(text, { env: { A: 'a' } })
    expect(inlineRules?.ok && inlineRules.rules.rules[0]?.match?.header).toEqual({
      'x-env': '${A}',
    })
    expect(sidecar('version: 1').inlineRules).toBeNull()
  })
})

describe('variables', () => {
  const label = (text: string, env = {}) =>
    sidecar(`gossip: { label: '${text}' }`, { env }).config.gossip.label

  it('are expanded anywhere in a text, and $$ is one $', () => {
    expect(label('a-${X}-${Y}', { X: '1', Y: '2' })).toBe('a-1-2')
    expect(label('$${X}', { X: '1' })).toBe('${X}')
    expect(label('$X cost$', { X: '1' })).toBe('$X cost$')
    expect(label('${X}', { X: '${Y}', Y: 'no' })).toBe('${Y}')
    expect(label('${X}', { X: '' })).toBe('')
  })

  it('are an error at their place when unset, and no other error hides it', () => {
    const text = 'gossip:\n  advertise: "${POD_IPS}:7946"\napi: { listen: nowhere }\n'
    expect(sidecarErrors(text, { env: { POD_IP: '10.0.0.7' } })).toEqual([
      'sidecar.yaml:2:14: error: gossip.advertise: environment variable POD_IPS is not set; did you mean "POD_IP"? [variable]',
      expect.stringContaining('sidecar.yaml:3:16: error: api.listen'),
    ])
  })

  it('may stand for a number or a truth value', () => {
    const text = 'counters: { keys: "${N}" }\nadmin: { revealKeys: "${R}" }\n'
    const { config } = sidecar(text, { env: { N: '2000', R: 'true' } })
    expect([config.counters.keysMax, config.admin.revealKeys]).toEqual([2000, true])
  })

  it('do not reach into the prototype of the environment', () => {
    expect(sidecarErrors('gossip: { label: "${constructor}" }')).toHaveLength(1)
  })
})

describe('overrides', () => {
  it('of flags win over the environment, which wins over the file', () => {
    const text = 'log: { level: warn }\nnode: { name: file }\ndrainTimeout: 1s\n'
    const { config } = sidecar(text, {
      env: { GRAPEVINE_LOG_LEVEL: 'debug', GRAPEVINE_NODE: 'env', GRAPEVINE_DRAIN_TIMEOUT: '' },
      flags: { node: 'flag' },
    })
    expect(config.log.level).toBe('debug')
    expect(config.node.name).toBe('flag')
    expect(config.drainTimeoutMs).toBe(1000)
  })

  it('make sections that the file does not have, and lists of commas', () => {
    const { config } = sidecar('version: 1', {
      env: {
        GRAPEVINE_PROXY_UPSTREAM: 'http://127.0.0.1:3000',
        GRAPEVINE_DISCOVERY_STATIC: '10.0.0.1:7946, 10.0.0.2:7946',
        GRAPEVINE_COUNTERS_KEYS: '2000',
      },
      flags: { 'admin-reveal-keys': 'true' },
    })
    expect(config.proxy?.upstream.text).toBe('http://127.0.0.1:3000')
    expect(config.discovery.static).toHaveLength(2)
    expect(config.counters.keysMax).toBe(2000)
    expect(config.admin.revealKeys).toBe(true)
  })

  it('are reported by what set them', () => {
    const errors = sidecarErrors('version: 1', {
      env: { GRAPEVINE_API_LISTEN: 'nowhere', GRAPEVINE_COUNTERS_KEYS: 'many' },
      flags: { 'log-level': 'loud' },
    })
    expect(errors).toEqual([
      expect.stringMatching(/^--log-level: error: log.level: "loud" is not one of/),
      expect.stringMatching(/^GRAPEVINE_API_LISTEN: error: api.listen: "nowhere"/),
      expect.stringMatching(/^GRAPEVINE_COUNTERS_KEYS: error: counters.keys: expected a whole/),
    ])
  })

  it('make an unset variable of the file moot', () => {
    const { config } = sidecar('node: { name: "${NOPE}" }', { flags: { node: 'a' } })
    expect(config.node.name).toBe('a')
  })

  it('pass over the variables that Kubernetes makes of a Service called grapevine', () => {
    const env = {
      GRAPEVINE_SERVICE_HOST: '10.0.0.1',
      GRAPEVINE_PORT: 'tcp://10.0.0.1:7946',
      GRAPEVINE_GOSSIP_PORT_7946_TCP: 'tcp://10.0.0.1:7946',
    }
    expect(sidecar('version: 1', { env }).config).toEqual(sidecar('version: 1').config)
    const made = /_(SERVICE_HOST|SERVICE_PORT.*|PORT|PORT_\d.*)$/
    expect(overrides.filter(({ env: name }) => made.test(name))).toEqual([])
  })
})

describe('rules', () => {
  it('have the defaults of the contract', () => {
    expect(rules(oneRule('api', '100/1s')).rules[0]).toEqual({
      name: 'api',
      match: null,
      key: [[{ kind: 'ip' }]],
      limit: { count: 100, windowMs: 1000, calendar: null },
      tier: null,
      concurrency: null,
      burst: null,
      algorithm: 'token-bucket',
      queue: null,
      maxWaitMs: null,
      onPartition: 'share',
      failureMode: 'open',
      mode: 'enforce',
      missing: 'ip',
      stop: false,
      count: 'all',
      cost: { fallback: 1, match: [], requestHeader: null, responseHeader: null },
      onExceeded: { status: 429, headers: {}, body: null, staleForMs: 0 },
      timezone: 'UTC',
    })
  })

  it('are fixed windows where the window is a calendar one', () => {
    expect(rules(oneRule('quota', '10000/day')).rules[0]?.algorithm).toBe('fixed-window')
  })

  it('let nobody wait in a leaky bucket without a queue', () => {
    const text = 'rules:\n  - { name: a, key: [ip], limit: 5/1s, algorithm: leaky-bucket }\n'
    expect(rules(text).rules[0]).toMatchObject({ queue: 0, maxWaitMs: null })
    expect(rules(text.replace('}', ', maxWait: 2s }')).rules[0]).toMatchObject({
      queue: null,
      maxWaitMs: 2000,
    })
  })

  it('of several files are merged in order, each with its own time zone', () => {
    const merged = rules(
      `timezone: Asia/Tokyo\nallow: [{ path: /a }]\n${oneRule('a', '5/day').replace('version: 1\n', '')}`,
      `allow: [{ path: /b }]\n${oneRule('b', '5/day').replace('version: 1\n', '')}`,
    )
    expect(merged.rules.map(({ name, timezone }) => [name, timezone])).toEqual([
      ['a', 'Asia/Tokyo'],
      ['b', 'UTC'],
    ])
    expect(merged.allow.map(({ path }) => path)).toEqual(['/a', '/b'])
  })

  it('may not bear one name in two files', () => {
    const files = ['a.yaml', 'b.yaml'].map(name => ({ name, text: oneRule('api', '5/1s') }))
    const result = parseRules(files)
    expect(result.ok ? [] : result.findings.map(formatFinding)).toEqual([
      'b.yaml:3:13: error: rules[0].name: rule "api" stands twice, first in line 3 of a.yaml [duplicate-rule]',
    ])
  })

  it('are hashed by what they mean, not by how they are written', () => {
    const one = rules('rules:\n  - { name: a, key: [ip], limit: 60/1m }\n')
    const same = rules('version: 1\nrules:\n  - limit: 60/60s\n    key: ip\n    name: a # same\n')
    const other = rules('rules:\n  - { name: a, key: [ip], limit: 61/1m }\n')
    expect(same.hash).toBe(one.hash)
    expect(other.hash).not.toBe(one.hash)
    expect(Number.isSafeInteger(one.hash) && one.hash < 2 ** 48).toBe(true)
  })

  it('come from the rules entries of ConfigMap manifests, lists of them included', () => {
    const manifest = `apiVersion: v1
kind: List
items:
  - apiVersion: apps/v1
    kind: Deployment
  - apiVersion: v1
    kind: ConfigMap
    metadata: { name: shop }
    data:
      sidecar.yaml: |
        log: { level: warn }
      rules.yaml: |
        version: 1
        rules:
          - { name: api, key: [ip], limit: 5/1s }
`
    expect(rules(manifest).rules.map(({ name }) => name)).toEqual(['api'])
    expect(sidecar(manifest).config.log.level).toBe('warn')
  })
})

describe('checkFiles', () => {
  it('judges rules of one directory together, and those of different ones apart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'grapevine-check-'))
    const paths = ['one/a.yaml', 'one/b.yaml', 'two/a.yaml'].map(name => join(folder, name))
    for (const path of paths) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, oneRule('api', '5/1s'))
    }
    const apart = await checkFiles([paths[0]!, paths[2]!])
    const together = await checkFiles(paths.slice(0, 2))
    const asFolder = await checkFiles([join(folder, 'one')])
    rmSync(folder, { recursive: true })
    expect([apart.ok, together.ok, asFolder.ok]).toEqual([true, false, false])
    expect(together.findings.map(({ code }) => code)).toEqual(['duplicate-rule'])
    expect(asFolder).toEqual(together)
  })

  it('judges rules by the sidecar file beside them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'grapevine-check-'))
    const rulesPath = join(folder, 'rules.yaml')
    const sidecarPath = join(folder, 'sidecar.yaml')
    writeFileSync(rulesPath, 'rules:\n  - { name: a, key: ["jwt:sub"], limit: 5/1s }\n')
    writeFileSync(sidecarPath, 'log: { level: info }\n')
    const alone = await checkFiles([rulesPath])
    const without = await checkFiles([rulesPath, sidecarPath])
    writeFileSync(sidecarPath, 'identity: { jwt: { secret: file:/keys/jwt } }\n')
    const withJwt = await checkFiles([rulesPath, sidecarPath])
    rmSync(folder, { recursive: true })
    expect([alone.ok, without.ok, withJwt.ok]).toEqual([true, false, true])
    expect(without.findings.map(({ code }) => code)).toContain('jwt-identity')
  })

  it('reports a file that is not there without a place', async () => {
    const { ok, findings } = await checkFiles(['/nowhere/rules.yaml'])
    expect(ok).toBe(false)
    expect(findings.map(formatFinding)).toEqual([
      '/nowhere/rules.yaml: error: /nowhere/rules.yaml does not exist [unreadable]',
    ])
  })
})
