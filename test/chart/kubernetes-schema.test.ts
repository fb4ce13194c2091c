/** That the check by Kubernetes' OpenAPI finds what it is there for, and lets the rest through. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { describe, expect, inject, test } from 'vitest'
import { type KubernetesObject, objectsIn, root } from './helm.js'
import { kubernetesSchema } from './kubernetes-schema.js'

const golden = `${root}test/golden/sidecar/`
const cases = readdirSync(golden).filter(name => statSync(golden + name).isDirectory())

/** A Deployment with one sidecar, its container's fields changed. */
function deployment(container: object, spec: object = {}): KubernetesObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', labels: { app: 'shop' } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'shop' } },
      template: {
        metadata: { labels: { app: 'shop' } },
        spec: {
          initContainers: [{ name: 'sidecar', restartPolicy: 'Always', ...container }],
          containers: [{ name: 'shop' }],
        },
      },
      ...spec,
    },
  }
}

const at = 'Deployment/shop/spec/template/spec/initContainers/0'

describe.each(Object.entries(inject('peers').kubernetesApis))('Kubernetes %s', (_release, file) => {
  const findings = (object: KubernetesObject) => kubernetesSchema(file!).findings(object)

  test.skipIf(file === null)('a right object is let through', () => {
    const probe = (port: unknown) => ({ readinessProbe: { httpGet: { path: '/readyz', port } } })
    expect(findings(deployment({}))).toEqual([])
    expect(findings(deployment(probe(7982)))).toEqual([])
    expect(findings(deployment(probe('telemetry')))).toEqual([])
    for (const memory of ['64Mi', '1.5G', '100m', '1e3', '.5', 64])
      expect(findings(deployment({ resources: { limits: { memory } } }))).toEqual([])
  })

  test.skipIf(file === null)('a typing mistake is found, however deep', () => {
    expect(findings(deployment({ restartPolcy: 'Always' }))).toEqual([
      `${at}: must NOT have additional properties: restartPolcy`,
    ])
    const securityContext = { capabilities: { dorp: ['ALL'] } }
    expect(findings(deployment({ securityContext }))).toEqual([
      `${at}/securityContext/capabilities: must NOT have additional properties: dorp`,
    ])
  })

  test.skipIf(file === null)('a missing field is found', () => {
    expect(findings(json(deployment({ name: undefined })))).toEqual([
      `${at}: must have required property 'name'`,
    ])
    expect(findings(json(deployment({}, { selector: undefined })))).toEqual([
      "Deployment/shop/spec: must have required property 'selector'",
    ])
  })

  test.skipIf(file === null).each([
    [{ args: 'run' }, '/args: must be array'],
    [{ env: [{ name: 'A', value: 1 }] }, '/env/0/value: must be string'],
    [{ ports: [{ containerPort: '80' }] }, '/ports/0/containerPort: must be integer'],
    [{ ports: [{ containerPort: 2 ** 31 }] }, '/ports/0/containerPort: must match format "int32"'],
    [{ readinessProbe: { tcpSocket: { port: 1.5 } } }, '/readinessProbe/tcpSocket/port: must be'],
    [{ resources: { limits: { memory: 'lots' } } }, '/resources/limits/memory: must match pattern'],
    [{ tty: 'yes' }, '/tty: must be boolean'],
  ])('a wrong value is found: %j', (container, finding) => {
    expect(findings(deployment(container))).toEqual([expect.stringContaining(at + finding)])
  })

  test.skipIf(file === null)('a kind that the release does not have is found', () => {
    const metadata = { name: 'old' }
    for (const [apiVersion, kind] of [
      ['policy/v1beta1', 'PodDisruptionBudget'],
      ['apps/v1', 'Deploymint'],
    ] as const)
      expect(findings({ apiVersion, kind, metadata })).toEqual([
        `${kind}/old: ${apiVersion} ${kind} is no kind of this release`,
      ])
  })

  test.skipIf(file === null).each(cases)('the golden pods of %s are valid', name => {
    const objects = objectsIn(readFileSync(`${golden}${name}/injected.yaml`, 'utf8'))
    expect(objects).toHaveLength(1)
    expect(objects.flatMap(findings)).toEqual([])
  })
})

/** Without the fields that are undefined. */
function json(object: KubernetesObject): KubernetesObject {
  return JSON.parse(JSON.stringify(object)) as KubernetesObject
}
