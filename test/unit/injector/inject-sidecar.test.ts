import { describe, expect, test } from 'vitest'
import { injectSidecar } from '../../../src/injector/inject-sidecar.js'
import { annotations, labels } from '../../../src/injector/names.js'
import type { PodTemplate, ServicePorts } from '../../../src/injector/pod-template.js'
import { type SidecarSettings, settingsDefaults } from '../../../src/injector/sidecar-settings.js'

const app = (over: Record<string, unknown> = {}): PodTemplate =>
  ({
    metadata: { labels: { app: 'shop' } },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'shop:1',
          ports: [{ name: 'http', containerPort: 3000 }],
          readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
          livenessProbe: { tcpSocket: { port: 3000 } },
        },
      ],
    },
    ...over,
  }) as unknown as PodTemplate

const annotated = (found: Record<string, string>, template = app()): PodTemplate => ({
  ...template,
  metadata: { ...template.metadata, annotations: found },
})

function injected(
  template: PodTemplate,
  settings: Partial<SidecarSettings> = {},
  services: readonly ServicePorts[] = [],
) {
  const result = injectSidecar(template, { ...settingsDefaults, ...settings }, services)
  if (result.kind !== 'injected') throw new Error(JSON.stringify(result))
  const { spec, metadata } = result.template
  const sidecar = [...(spec.initContainers ?? []), ...spec.containers].find(
    container => container.name === 'grapevine',
  ) as unknown as Record<string, unknown>
  return {
    ...result,
    spec,
    sidecar,
    app: spec.containers[0] as unknown as Record<string, unknown>,
    status: JSON.parse(metadata?.annotations?.[annotations.status] ?? '') as unknown,
    labels: metadata?.labels,
    annotations: metadata?.annotations,
  }
}

describe('the port of the application', () => {
  test('gives its name to the proxy, and probes by name follow the application', () => {
    const { app: patched, sidecar, status } = injected(app())
    expect(patched).toMatchObject({
      ports: [{ name: 'http-app', containerPort: 3000 }],
      readinessProbe: { httpGet: { path: '/healthz', port: 'http-app' } },
      livenessProbe: { tcpSocket: { port: 3000 } },
    })
    expect(sidecar.ports).toContainEqual({
      name: 'http',
      containerPort: 7980,
      protocol: 'TCP',
    })
    expect(sidecar.env).toContainEqual({
      name: 'GRAPEVINE_PROXY_UPSTREAM',
      value: 'http://127.0.0.1:3000',
    })
    expect(status).toMatchObject({ appPort: 3000, port: 'http', mode: 'proxy' })
  })

  test('probes and hooks of every kind are rewritten, and only those by that name', () => {
    const template = app()
    const [first] = template.spec.containers
    const { app: patched } = injected({
      ...template,
      spec: {
        containers: [
          {
            ...first!,
            startupProbe: { tcpSocket: { port: 'http' } },
            livenessProbe: { httpGet: { path: '/', port: 'metrics' } },
            lifecycle: {
              preStop: { httpGet: { path: '/stop', port: 'http' } },
              postStart: { exec: { command: ['true'] } },
            },
            ports: [
              { name: 'http', containerPort: 3000 },
              { name: 'metrics', containerPort: 9090 },
            ],
          },
        ],
      } as unknown as PodTemplate['spec'],
    })
    expect(patched).toMatchObject({
      startupProbe: { tcpSocket: { port: 'http-app' } },
      livenessProbe: { httpGet: { port: 'metrics' } },
      lifecycle: {
        preStop: { httpGet: { port: 'http-app' } },
        postStart: { exec: { command: ['true'] } },
      },
      ports: [{ name: 'http-app' }, { name: 'metrics' }],
    })
  })

  test('the name is taken from every container, since the first one that has it wins', () => {
    const template = app()
    const second = { name: 'other', ports: [{ name: 'http', containerPort: 8080 }] }
    const { spec } = injected({
      ...template,
      spec: { containers: [...template.spec.containers, second] } as never,
    })
    const names = spec.containers.flatMap(container =>
      (container.ports as unknown as { name: string }[]).map(port => port.name),
    )
    expect(names).toEqual(['http-app', 'http-app'])
  })

  test('a long name is cut so that the new one is a port name too', () => {
    const { app: patched } = injected(withPorts([{ name: 'public-frontend', containerPort: 80 }]))
    expect(patched.ports).toEqual([{ name: 'public-fron-app', containerPort: 80 }])
  })

  test('a name that is taken already is not given twice', () => {
    const { app: patched } = injected(
      withPorts([
        { name: 'http', containerPort: 80 },
        { name: 'http-app', containerPort: 81 },
      ]),
    )
    expect(patched.ports).toEqual([
      { name: 'http-app2', containerPort: 80 },
      { name: 'http-app', containerPort: 81 },
    ])
  })

  test('an only port without the customary name is found, unnamed ones get a port of their own', () => {
    expect(injected(withPorts([{ name: 'web', containerPort: 80 }])).status).toMatchObject({
      port: 'web',
      appPort: 80,
    })
    const unnamed = injected(withPorts([{ containerPort: 80 }]))
    expect(unnamed.status).toMatchObject({ port: 'rl-proxy', appPort: 80 })
    expect(unnamed.app.ports).toEqual([{ containerPort: 80 }])
  })

  test('an annotation names it where there are several', () => {
    const several = withPorts([
      { name: 'web', containerPort: 80 },
      { name: 'admin', containerPort: 81 },
    ])
    const without = injectSidecar(several, settingsDefaults, [])
    expect(without).toMatchObject({
      kind: 'failed',
      error: expect.stringContaining('2 TCP ports are declared'),
    })
    const by = (text: string) =>
      injected(annotated({ [annotations.appPort]: text }, several)).status
    expect(by('admin')).toMatchObject({ port: 'admin', appPort: 81 })
    expect(by('80')).toMatchObject({ port: 'web', appPort: 80 })
    expect(by('3000')).toMatchObject({ port: 'rl-proxy', appPort: 3000 })
  })

  test('is left alone in decision mode', () => {
    const {
      app: patched,
      sidecar,
      status,
    } = injected(annotated({ [annotations.mode]: 'decision' }))
    expect(patched).toEqual(app().spec.containers[0])
    expect((sidecar.ports as { name: string }[]).map(port => port.name)).toEqual([
      'rl-gossip',
      'rl-gossip-udp',
      'rl-telemetry',
    ])
    expect(JSON.stringify(sidecar.env)).not.toContain('UPSTREAM')
    expect(status).toEqual({ mode: 'decision', nativeSidecar: true, version: expect.any(String) })
  })

  test('Services that name it by number are reported, others are not', () => {
    const service = (name: string, targetPort?: number | string, selector = { app: 'shop' }) => ({
      name,
      selector,
      ports: [{ port: 80, ...(targetPort === undefined ? {} : { targetPort }) }],
    })
    const { status, warnings } = injected(app(), {}, [
      service('by-number', 3000),
      service('by-name', 'http'),
      service('elsewhere', 3000, { app: 'other' }),
      service('default-target'),
    ])
    expect(status).toMatchObject({ bypassed: ['by-number: 80 -> 3000'] })
    expect(warnings).toEqual([expect.stringContaining('use targetPort: http')])
  })
})

describe('the container', () => {
  test('fits the restricted Pod Security level', () => {
    expect(injected(app()).sidecar.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
      runAsGroup: 65532,
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    })
  })

  test('runs first of the init containers and keeps running, or last as an ordinary one', () => {
    const template = {
      ...app(),
      spec: { ...app().spec, initContainers: [{ name: 'migrate' }] },
    }
    const native = injected(template).spec
    expect(native.initContainers?.map(container => container.name)).toEqual([
      'grapevine',
      'migrate',
    ])
    expect(native.initContainers?.[0]).toMatchObject({ restartPolicy: 'Always' })
    const ordinary = injected(annotated({ [annotations.nativeSidecar]: 'false' }, template)).spec
    expect(ordinary.containers.map(container => container.name)).toEqual(['app', 'grapevine'])
    expect(ordinary.containers[1]).not.toHaveProperty('restartPolicy')
    expect(ordinary.initContainers).toEqual([{ name: 'migrate' }])
  })

  test('takes image, ring, objects, level and resources from annotations', () => {
    const {
      sidecar,
      spec,
      labels: podLabels,
    } = injected(
      annotated({
        [annotations.image]: 'elsewhere/grapevine:2',
        [annotations.ring]: 'checkout',
        [annotations.rules]: 'strict-rules',
        [annotations.logLevel]: 'debug',
        [annotations.trustedProxies]: '10.0.0.0/8, 192.168.0.0/16',
        [annotations.memoryLimit]: '512Mi',
        [annotations.cpuRequest]: '100m',
        [annotations.appProtocol]: 'h2c',
      }),
    )
    expect(sidecar).toMatchObject({
      image: 'elsewhere/grapevine:2',
      resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '512Mi' } },
    })
    expect(sidecar.env).toEqual(
      expect.arrayContaining([
        { name: 'GRAPEVINE_PROXY_UPSTREAM', value: 'h2c://127.0.0.1:3000' },
        { name: 'GRAPEVINE_PROXY_TRUSTED_PROXIES', value: '10.0.0.0/8,192.168.0.0/16' },
        { name: 'GRAPEVINE_LOG_LEVEL', value: 'debug' },
      ]),
    )
    expect(podLabels).toMatchObject({ [labels.ring]: 'checkout' })
    expect(spec.volumes).toEqual(
      expect.arrayContaining([
        { name: 'grapevine-config', configMap: { name: 'checkout-config' } },
        { name: 'grapevine-rules', configMap: { name: 'strict-rules', optional: true } },
        { name: 'grapevine-keys', secret: { secretName: 'checkout-keys' } },
      ]),
    )
  })

  test('has its own token for the API, and none where discovery needs none', () => {
    const mounts = (apiToken: boolean) =>
      (injected(app(), { apiToken }).sidecar.volumeMounts as { mountPath: string }[]).map(
        mount => mount.mountPath,
      )
    const token = '/var/run/secrets/kubernetes.io/serviceaccount'
    expect(mounts(true)).toContain(token)
    expect(mounts(false)).not.toContain(token)
  })

  test('watches the rules that the pod names instead of mounting them', () => {
    const pod = annotated({ [annotations.rules]: 'strict-rules' })
    const { sidecar, spec } = injected(pod, { watchRules: true, apiToken: false })
    expect(sidecar.args).toEqual([
      'run',
      '--config',
      '/etc/grapevine/config/sidecar.yaml',
      '--rules-from',
      'strict-rules',
    ])
    const names = (list: unknown) => (list as { name: string }[]).map(({ name }) => name)
    for (const list of [sidecar.volumeMounts, spec.volumes]) {
      expect(names(list)).not.toContain('grapevine-rules')
      expect(names(list)).toContain('grapevine-api')
    }
  })

  test('drains before the end, and a pod that leaves no time for it is warned about', () => {
    expect(injected(app()).sidecar.lifecycle).toEqual({
      preStop: { exec: { command: ['grapevine', 'drain', '--wait', '5s'] } },
    })
    const hasty = { ...app(), spec: { ...app().spec, terminationGracePeriodSeconds: 5 } }
    expect(injected(hasty).warnings).toEqual([
      expect.stringContaining('terminationGracePeriodSeconds is 5: draining takes up to 9 s'),
    ])
  })

  test('kubectl logs and exec keep going to the application', () => {
    expect(injected(app()).annotations).toMatchObject({ [annotations.defaultContainer]: 'app' })
    const chosen = annotated({ [annotations.defaultContainer]: 'worker' })
    expect(injected(chosen).annotations).toMatchObject({ [annotations.defaultContainer]: 'worker' })
  })

  test('is offered to scraping by annotation only where the application is not', () => {
    const on = { prometheusAnnotations: true }
    expect(injected(app(), on).annotations).toMatchObject({ 'prometheus.io/port': '7990' })
    const own = annotated({ 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9090' })
    expect(injected(own, on).annotations).toMatchObject({ 'prometheus.io/port': '9090' })
  })
})

describe('nothing is done', () => {
  test('a second time', () => {
    const once = injected(app()).template
    expect(injectSidecar(once, settingsDefaults, [])).toMatchObject({
      kind: 'skipped',
      reason: 'already-injected',
    })
  })

  test('on the network of the host', () => {
    const template = { ...app(), spec: { ...app().spec, hostNetwork: true } }
    expect(injectSidecar(template, settingsDefaults, [])).toMatchObject({ reason: 'host-network' })
  })

  test('where the label refuses', () => {
    const template = app({ metadata: { labels: { [labels.inject]: 'false' } } })
    expect(injectSidecar(template, settingsDefaults, [])).toMatchObject({ reason: 'opted-out' })
  })

  test.each([
    [annotations.mode, 'sideways', 'expected proxy or decision'],
    [annotations.nativeSidecar, 'yes', 'expected "true" or "false"'],
    [annotations.memoryLimit, 'lots', 'expected a quantity'],
    [annotations.trustedProxies, '10.0.0.0/99', 'expected networks in CIDR form'],
    [annotations.ring, 'UPPER', 'expected the name of an object'],
    [annotations.appPort, '70000', 'out of range'],
    [annotations.appPort, 'admin', 'no container has a TCP port named "admin"'],
    [annotations.logLevel, 'loud', 'expected trace or debug'],
  ])('%s: %s', (name, text, error) => {
    const result = injectSidecar(annotated({ [name]: text }), settingsDefaults, [])
    expect(result).toMatchObject({ kind: 'failed', error: expect.stringContaining(error) })
  })

  test('when ports or volumes of the pod are in the way', () => {
    const taken = withPorts([{ name: 'http', containerPort: 7990 }])
    expect(injectSidecar(taken, settingsDefaults, [])).toMatchObject({
      error: 'container app has port 7990, which the sidecar needs',
    })
    const volumes = { ...app(), spec: { ...app().spec, volumes: [{ name: 'grapevine-keys' }] } }
    expect(injectSidecar(volumes, settingsDefaults, [])).toMatchObject({
      error: expect.stringContaining('a volume is named grapevine-keys'),
    })
  })
})

test('an annotation that nobody knows is warned about', () => {
  const { warnings } = injected(annotated({ 'grapevine.dev/mod': 'proxy' }))
  expect(warnings).toEqual(['annotation grapevine.dev/mod is not known'])
})

test('neither the template nor the settings are written to', () => {
  const template = deepFrozen(app())
  const settings = deepFrozen({ ...settingsDefaults })
  expect(injectSidecar(template, settings, []).kind).toBe('injected')
})

function withPorts(ports: readonly unknown[]): PodTemplate {
  return app({ spec: { containers: [{ name: 'app', ports }] } })
}

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) deepFrozen(part)
    Object.freeze(value)
  }
  return value
}
