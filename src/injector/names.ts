/**
 * Names that the injector, the charts and people's manifests share: labels, annotations, ports,
 * objects and paths. The library chart has the same; golden files hold them equal.
 */

export const domain = 'grapevine.dev'

export const labels = {
  /** On a pod: `"true"` asks for the sidecar, `"false"` refuses it. */
  inject: `${domain}/inject`,
  /** On a namespace: `enabled` lets the webhook see its pods. */
  injection: `${domain}/injection`,
  /** On a pod with the sidecar: which ring it gossips in; the headless Service selects by it. */
  ring: `${domain}/ring`,
} as const

export const annotations = {
  ring: `${domain}/ring`,
  mode: `${domain}/mode`,
  appPort: `${domain}/app-port`,
  appProtocol: `${domain}/app-protocol`,
  nativeSidecar: `${domain}/native-sidecar`,
  logLevel: `${domain}/log-level`,
  trustedProxies: `${domain}/trusted-proxies`,
  image: `${domain}/image`,
  config: `${domain}/config`,
  rules: `${domain}/rules`,
  cpuRequest: `${domain}/cpu-request`,
  memoryRequest: `${domain}/memory-request`,
  cpuLimit: `${domain}/cpu-limit`,
  memoryLimit: `${domain}/memory-limit`,
  /** Written for people and dashboards: what was injected, as JSON; or why nothing was. */
  status: `${domain}/status`,
  defaultContainer: 'kubectl.kubernetes.io/default-container',
} as const

/** Annotations of `domain` that are options; any other one of it is a mistake worth a warning. */
export const optionAnnotations: readonly string[] = Object.values(annotations).filter(
  name => name.startsWith(`${domain}/`) && name !== annotations.status,
)

export const containerName = 'grapevine'

/** The default listeners (product.md §2), as container ports. */
export const ports = { proxy: 7980, api: 7981, gossip: 7946, telemetry: 7990, admin: 7991 } as const

export const portNames = {
  /** The proxy's, where the application's port has no name that could be taken over. */
  proxy: 'rl-proxy',
  gossip: 'rl-gossip',
  gossipUdp: 'rl-gossip-udp',
  telemetry: 'rl-telemetry',
} as const

export const volumeNames = {
  config: 'grapevine-config',
  rules: 'grapevine-rules',
  keys: 'grapevine-keys',
  state: 'grapevine-state',
  api: 'grapevine-api',
} as const

export const paths = {
  config: '/etc/grapevine/config',
  rules: '/etc/grapevine/rules',
  keys: '/etc/grapevine/keys',
  state: '/var/lib/grapevine',
  api: '/var/run/secrets/kubernetes.io/serviceaccount',
} as const

/** Objects of a ring, in the namespace of its pods. */
export function ringObjects(ring: string) {
  return {
    config: `${ring}-config`,
    rules: `${ring}-rules`,
    keys: `${ring}-keys`,
    gossip: `${ring}-gossip`,
  } as const
}
