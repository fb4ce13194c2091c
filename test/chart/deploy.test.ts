/** deploy/: what the charts render, valid for Kubernetes and for Grapevine. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { checkFiles } from '../../src/config/check.js'
import { formatFinding } from '../../src/config/finding.js'
import { type KubernetesObject, objectsIn, root } from './helm.js'
import { kubernetesSchema } from './kubernetes-schema.js'

const { helm, promtool, kubernetes, kubernetesApis } = inject('peers')
const manifests = [
  'base/namespace.yaml',
  'base/ring.yaml',
  'base/injector.yaml',
  'base/dashboard.yaml',
  'example-shop/namespace.yaml',
  'example-shop/keys.yaml',
  'example-shop/storefront-ring.yaml',
  'example-shop/catalogue-ring.yaml',
  'example-shop/workloads.yaml',
]
const read = (path: string) => readFileSync(`${root}deploy/${path}`, 'utf8')

test.skipIf(helm === null)('every rendered file is what the charts render now', () => {
  const { status, stderr } = spawnSync('node', ['.ci/render-deploy.mjs', '--check'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, HELM: helm! },
  })
  expect({ status, stderr }).toMatchObject({ status: 0 })
})

describe.each(Object.entries(kubernetesApis))('for Kubernetes %s', (_release, file) => {
  test.skipIf(file === null).each(manifests)('%s is valid', path => {
    const schema = kubernetesSchema(file!)
    const objects = objectsIn(read(path))
    expect(objects.length).toBeGreaterThan(0)
    expect(objects.flatMap(object => schema.findings(object))).toEqual([])
  })
})

test.each([
  'base/ring.yaml',
  'example-shop/storefront-ring.yaml',
  'example-shop/catalogue-ring.yaml',
])('%s holds a configuration and rules that the sidecar accepts', async path => {
  const env = { POD_NAME: 'pod', POD_IP: '10.0.0.1' }
  const { findings } = await checkFiles([`${root}deploy/${path}`], { env })
  expect(findings.filter(finding => finding.level === 'error').map(formatFinding)).toEqual([])
})

describe('kustomize', () => {
  const program = kubernetes === null ? '/usr/bin/kubectl' : `${kubernetes}/kubectl`
  test.skipIf(!existsSync(program)).each(['base', 'example-shop'])('builds %s', folder => {
    const { status, stdout, stderr } = spawnSync(program, ['kustomize', `deploy/${folder}`], {
      cwd: root,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    const kinds = objectsIn(stdout).map((object: KubernetesObject) => object.kind)
    expect(kinds).toContain('Namespace')
    expect(kinds).toContain('Deployment')
  })
})

test.skipIf(promtool === null)('Prometheus can read its files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  copyFileSync(`${root}deploy/prometheus/alerts.yaml`, join(folder, 'alerts.yaml'))
  // Debian's promtool is built without the discovery of Kubernetes; the rest is read as it stands.
  const text = read('prometheus/prometheus.yaml')
  const discovery = /kubernetes_sd_configs:\n\s+- role: pod/
  expect(text).toMatch(discovery)
  writeFileSync(join(folder, 'prometheus.yaml'), text.replace(discovery, 'static_configs: []'))
  const { status, stdout, stderr } = spawnSync(
    promtool!,
    ['check', 'config', join(folder, 'prometheus.yaml')],
    { encoding: 'utf8' },
  )
  rmSync(folder, { recursive: true })
  expect({ status, text: stdout + stderr }).toMatchObject({ status: 0 })
})
