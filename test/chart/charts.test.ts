/** The charts: linted, rendered over a matrix of values, and every object checked by Kubernetes' API. */
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { describe, expect, inject, test } from 'vitest'
import { isScalar, isMap as isYamlMap, type Pair, parse, parseDocument, visit } from 'yaml'
import { parseInjectorConfig } from '../../src/injector/injector-config.js'
import { version } from '../../src/version.js'
import { type KubernetesObject, only, render, root, helm as run } from './helm.js'
import { foreignKinds, kindOf, kubernetesSchema } from './kubernetes-schema.js'

const { helm, kubernetesApis } = inject('peers')
const charts = ['grapevine', 'grapevine-sidecar'] as const
const read = (path: string) => readFileSync(`${root}helm/${path}`, 'utf8')
const monitoring = ['--api-versions', 'monitoring.coreos.com/v1']

const matrix: Readonly<Record<string, readonly string[]>> = {
  defaults: [],
  'with the operator': monitoring,
  'dns discovery': ['--set', 'discovery=dns'],
  'watched rules': ['--set', 'sidecar.watchRules=true'],
  'without the injector': ['--set', 'injector.enabled=false'],
  'cert-manager': ['--set', 'injector.certificates.source=cert-manager'],
  'a given issuer': [
    '--set',
    'injector.certificates.source=cert-manager,injector.certificates.issuerRef.name=ca',
  ],
  'an existing certificate': [
    '--set',
    'injector.certificates.source=existing,injector.certificates.caBundle=PEM',
  ],
  'everything tuned': [
    ...monitoring,
    '--set-json',
    JSON.stringify({
      ring: 'checkout',
      networkPolicy: {
        enabled: true,
        proxyFrom: [{ podSelector: {} }],
        telemetryFrom: [{ namespaceSelector: {} }],
        extraIngress: [{ ports: [{ port: 9090 }] }],
      },
      rbac: { serviceAccounts: ['a', 'b'] },
      keys: { create: false },
      commonLabels: { team: 'x' },
      gossip: { label: 'x', encryption: false, allow: ['10.0.0.0/8'] },
      sidecar: { appPort: 3000, nativeSidecar: false, trustedProxies: ['10.0.0.0/8'] },
      injector: {
        replicas: 3,
        priorityClassName: 'high',
        imagePullSecrets: [{ name: 'pull' }],
        tolerations: [{ operator: 'Exists' }],
        nodeSelector: { a: 'b' },
        webhook: { url: 'https://localhost:8443/mutate', failurePolicy: 'Fail' },
        certificates: { extraNames: ['localhost'] },
      },
    }).replace(/^\{|\}$/g, ''),
  ],
}

/** `--set-json` takes one key at a time; an object is spread over several flags. */
function flags(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    if (args[index - 1] !== '--set-json') return arg === '--set-json' ? [] : [arg]
    const values = JSON.parse(`{${arg}}`) as Record<string, unknown>
    return Object.entries(values).flatMap(([key, value]) => [
      '--set-json',
      `${key}=${JSON.stringify(value)}`,
    ])
  })
}

describe.skipIf(helm === null)('helm', () => {
  test.each(charts)('lints %s', chart => {
    const { status, out } = run(helm!, ['lint', '--strict', `helm/${chart}`])
    expect({ status, out }).toMatchObject({ status: 0 })
  })

  describe.each(Object.entries(matrix))('renders %s:', (_name, args) => {
    const objects = render(helm!, 'helm/grapevine', flags(args))

    describe.each(Object.entries(kubernetesApis))('for Kubernetes %s', (_release, file) => {
      test.skipIf(file === null)('every object is valid', () => {
        const schema = kubernetesSchema(file!)
        expect(objects.flatMap(object => schema.findings(object))).toEqual([])
      })
    })

    test('no two objects are the same one', () => {
      const names = objects.map(object => `${object.kind}/${object.metadata.name}`)
      expect(new Set(names).size).toBe(names.length)
    })

    test('the injector can read its file', () => {
      for (const object of objects.filter(isInjectorConfig)) {
        const text = (object.data as Record<string, string>)['injector.yaml']!
        expect(parseInjectorConfig(text, 'injector.yaml')).toMatchObject({ ok: true })
      }
    })
  })

  test('the matrix has every kind that is not checked', () => {
    const kinds = Object.values(matrix)
      .flatMap(args => render(helm!, 'helm/grapevine', flags(args)))
      .map(kindOf)
    expect(kinds).toEqual(expect.arrayContaining([...foreignKinds]))
  })

  test('a misspelt value and a wrong one are refused', () => {
    const refuse = (set: string) => run(helm!, ['template', 'helm/grapevine', '--set', set])
    expect(refuse('injector.replica=3')).toMatchObject({ status: 1 })
    expect(refuse('discovery=magic').err).toContain('discovery')
    expect(refuse('sidecar.resources.limits.memory=lots').err).toContain('memory')
  })

  test('the Role is for EndpointSlices and nothing more', () => {
    const role = only(render(helm!, 'helm/grapevine'), 'Role', 'grapevine-discovery')
    expect(role.rules).toEqual([
      {
        apiGroups: ['discovery.k8s.io'],
        resources: ['endpointslices'],
        verbs: ['get', 'list', 'watch'],
      },
    ])
  })

  test('watched rules add the right to read their one ConfigMap', () => {
    const watched = ['--set', 'sidecar.watchRules=true,ring=checkout']
    const roleOf = (...args: string[]) =>
      only(render(helm!, 'helm/grapevine', [...watched, ...args]), 'Role', 'checkout-discovery')
    const right = {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: ['checkout-rules'],
      verbs: ['get', 'list', 'watch'],
    }
    expect(roleOf().rules).toEqual([expect.anything(), right])
    expect(roleOf('--set', 'discovery=dns').rules).toEqual([right])
  })

  test('the webhook ignores its own failure and asks for both labels', () => {
    const webhook = only(render(helm!, 'helm/grapevine'), 'MutatingWebhookConfiguration')
    expect(webhook.webhooks).toMatchObject([
      {
        failurePolicy: 'Ignore',
        reinvocationPolicy: 'IfNeeded',
        sideEffects: 'None',
        namespaceSelector: { matchLabels: { 'grapevine.dev/injection': 'enabled' } },
        objectSelector: { matchLabels: { 'grapevine.dev/inject': 'true' } },
      },
    ])
  })

  test('gossip is found before pods are ready, and no mesh reads it as HTTP', () => {
    const service = only(render(helm!, 'helm/grapevine'), 'Service', 'grapevine-gossip')
    expect(service.spec).toMatchObject({
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      selector: { 'grapevine.dev/ring': 'grapevine' },
      ports: [{ port: 7946, protocol: 'TCP', appProtocol: 'tcp' }, { protocol: 'UDP' }],
    })
  })

  test('keys are 32 random bytes each, label and encryption are on', () => {
    const objects = render(helm!, 'helm/grapevine')
    const { data } = only(objects, 'Secret', 'grapevine-keys') as unknown as {
      data: Record<string, string>
    }
    const key = Buffer.from(data.gossip!, 'base64').toString()
    expect(Buffer.from(key, 'base64')).toHaveLength(32)
    expect(data.counters).not.toBe(data.gossip)
    const config = only(objects, 'ConfigMap', 'grapevine-config').data as Record<string, string>
    expect(parse(config['sidecar.yaml']!)).toMatchObject({
      gossip: {
        label: 'shop/grapevine',
        encryptionKeys: ['file:/etc/grapevine/keys/gossip'],
      },
      counters: { secret: 'file:/etc/grapevine/keys/counters' },
      discovery: { kubernetes: { service: 'grapevine-gossip', namespace: 'shop' } },
    })
  })

  test('every container of the charts is restricted and has limits', () => {
    const objects = render(helm!, 'helm/grapevine')
    const deployment = only(objects, 'Deployment').spec as {
      template: { spec: { containers: { securityContext: unknown; resources: unknown }[] } }
    }
    for (const container of deployment.template.spec.containers) {
      expect(container).toMatchObject({
        securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
        resources: { limits: { memory: expect.any(String) } },
      })
    }
  })
})

function isInjectorConfig(object: KubernetesObject): boolean {
  return object.kind === 'ConfigMap' && object.metadata.name.endsWith('-injector')
}

describe.each(charts)('values of %s', chart => {
  const text = read(`${chart}/values.yaml`)
  const schema = JSON.parse(read(`${chart}/values.schema.json`)) as Record<string, unknown>

  test('fit their schema, which knows nothing more', () => {
    const ajv = new Ajv({ strictTypes: false })
    const check = ajv.compile(schema)
    expect(check(parse(text)), JSON.stringify(check.errors)).toBe(true)
    expect(schema.additionalProperties).toBe(false)
    const helmsOwn = ['global', 'grapevine-sidecar']
    const known = Object.keys(schema.properties as object).filter(key => !helmsOwn.includes(key))
    expect(known.sort()).toEqual(Object.keys(parse(text) as object).sort())
  })

  test('are each explained', () => {
    expect(unexplained(text)).toEqual([])
  })

  test('belong to the version of the program', () => {
    expect(parse(read(`${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version })
    expect(read('grapevine-sidecar/templates/_names.tpl')).toContain(
      `define "grapevine-sidecar.version" -}}${version}{{`,
    )
  })
})

/** Keys without a `# --` comment, on them or on a key around them. */
function unexplained(text: string): string[] {
  const document = parseDocument(text)
  const found: string[] = []
  const comments = (pair: Pair) =>
    [(pair.key as { commentBefore?: string }).commentBefore ?? '']
      .join('\n')
      .split('\n')
      .some(line => line.trim().startsWith('--'))
  visit(document, {
    Pair(_index, pair, path) {
      const above = path.filter(node => (node as Pair).key !== undefined) as Pair[]
      const explained = [...above, pair].some(comments)
      const section = isYamlMap(pair.value) && pair.value.items.length > 0
      // The first key below a section carries the section's first comment.
      const first = path.at(-1) as { commentBefore?: string | null } | undefined
      const onMap = (first?.commentBefore ?? '').split('\n').some(l => l.trim().startsWith('--'))
      if (!explained && !section && !onMap && isScalar(pair.key)) found.push(String(pair.key.value))
    },
  })
  return found
}
