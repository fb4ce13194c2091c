/** The sidecar's container and volumes. Pure; fits the `restricted` Pod Security level. */
import type { AppPort } from './app-port.js'
import { containerName, paths, portNames, ports, ringObjects, volumeNames } from './names.js'
import type { Container, JsonMap } from './pod-template.js'
import type { SidecarSettings } from './sidecar-settings.js'

/** The image's user; owns nothing. */
const user = 65532
/** Up to two minutes until listeners are up and rules are read or given up. */
const startupFailuresMax = 120
/** The kubelet renews the token well before this. The odd number is what it gives pods itself. */
const tokenSeconds = 3607

/** `appPort` is null where nothing is proxied. */
export function sidecarContainer(settings: SidecarSettings, appPort: AppPort | null): Container {
  return {
    name: containerName,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    ...(settings.nativeSidecar ? { restartPolicy: 'Always' } : {}),
    args: [
      'run',
      '--config',
      `${paths.config}/sidecar.yaml`,
      ...(settings.watchRules
        ? ['--rules-from', rulesConfigMap(settings)]
        : ['--rules', paths.rules]),
    ],
    env: environment(settings, appPort),
    ports: [
      ...(appPort === null
        ? []
        : [
            {
              name: appPort.name ?? portNames.proxy,
              containerPort: ports.proxy,
              protocol: 'TCP',
            },
          ]),
      { name: portNames.gossip, containerPort: ports.gossip, protocol: 'TCP' },
      { name: portNames.gossipUdp, containerPort: ports.gossip, protocol: 'UDP' },
      { name: portNames.telemetry, containerPort: ports.telemetry, protocol: 'TCP' },
    ],
    startupProbe: probe('/startupz', 1, startupFailuresMax),
    readinessProbe: probe('/readyz', 5, 3),
    livenessProbe: probe('/livez', 10, 6),
    lifecycle: {
      preStop: { exec: { command: ['grapevine', 'drain', '--wait', settings.drainWait] } },
    },
    resources: settings.resources as JsonMap,
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      readOnlyRootFilesystem: true,
      runAsGroup: user,
      runAsNonRoot: true,
      runAsUser: user,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: volumeNames.config, mountPath: paths.config, readOnly: true },
      ...(settings.watchRules
        ? []
        : [{ name: volumeNames.rules, mountPath: paths.rules, readOnly: true }]),
      { name: volumeNames.keys, mountPath: paths.keys, readOnly: true },
      { name: volumeNames.state, mountPath: paths.state },
      ...(needsToken(settings)
        ? [{ name: volumeNames.api, mountPath: paths.api, readOnly: true }]
        : []),
    ],
  }
}

function environment(settings: SidecarSettings, appPort: AppPort | null) {
  const field = (name: string, fieldPath: string) => ({
    name,
    valueFrom: { fieldRef: { fieldPath } },
  })
  const upstream = `${settings.appProtocol}://127.0.0.1:${appPort?.number}`
  const networks = settings.trustedProxies.join(',')
  return [
    field('POD_NAME', 'metadata.name'),
    field('POD_NAMESPACE', 'metadata.namespace'),
    field('POD_IP', 'status.podIP'),
    field('POD_UID', 'metadata.uid'),
    ...(appPort === null ? [] : [{ name: 'GRAPEVINE_PROXY_UPSTREAM', value: upstream }]),
    ...(appPort === null || networks === ''
      ? []
      : [{ name: 'GRAPEVINE_PROXY_TRUSTED_PROXIES', value: networks }]),
    ...(settings.logLevel === ''
      ? []
      : [{ name: 'GRAPEVINE_LOG_LEVEL', value: settings.logLevel }]),
  ]
}

function probe(path: string, periodSeconds: number, failureThreshold: number) {
  return {
    httpGet: { path, port: portNames.telemetry },
    periodSeconds,
    timeoutSeconds: 2,
    failureThreshold,
  }
}

function rulesConfigMap(settings: SidecarSettings): string {
  return settings.rulesConfigMap || ringObjects(settings.ring).rules
}

/** Discovery through the API and watched rules both ask it. */
function needsToken(settings: SidecarSettings): boolean {
  return settings.apiToken || settings.watchRules
}

export function sidecarVolumes(settings: SidecarSettings) {
  const objects = ringObjects(settings.ring)
  return [
    { name: volumeNames.config, configMap: { name: settings.configMap || objects.config } },
    // Absent rules are what `onStartupError` is for; they must not hold the pod back.
    ...(settings.watchRules
      ? []
      : [
          {
            name: volumeNames.rules,
            configMap: { name: rulesConfigMap(settings), optional: true },
          },
        ]),
    { name: volumeNames.keys, secret: { secretName: settings.keysSecret || objects.keys } },
    { name: volumeNames.state, emptyDir: { sizeLimit: '64Mi' } },
    ...(needsToken(settings) ? [apiVolume()] : []),
  ]
}

/**
 * The sidecar's own access to the API, in the usual place: works where the application has
 * `automountServiceAccountToken: false`, and gives the application nothing.
 */
function apiVolume() {
  return {
    name: volumeNames.api,
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: tokenSeconds } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  }
}
