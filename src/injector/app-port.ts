/**
 * Taking over a named port. Kubernetes resolves a Service's textual `targetPort` in each pod by
 * name, regular containers first, then native sidecars. So the name moves to the sidecar's proxy
 * port and the application's own port gets a new one; no packet filter, no privilege. Pure.
 */
import { isMap } from '../lib/untrusted.js'
import type { Container, ContainerPort, ServicePorts } from './pod-template.js'
import { isTcp, portsOf } from './pod-template.js'

/** IANA service names, and so port names, are at most this long. */
const portNameCharsMax = 15
/** The name that people give the port of an HTTP application. */
const customaryName = 'http'

export interface AppPort {
  /** Where the application listens. */
  readonly number: number
  /** The name to take over; null when the port has none. */
  readonly name: string | null
  /** Name of the container it belongs to; null when no container declares it. */
  readonly container: string | null
}

/** The port of the application: as `wanted` says (a name, a number), or the only candidate. */
export function findAppPort(containers: readonly Container[], wanted: string): AppPort | string {
  const all = containers.flatMap(container =>
    portsOf(container)
      .filter(isTcp)
      .map(port => ({ container: container.name, port })),
  )
  const found = (entry: { container: string; port: ContainerPort }): AppPort => ({
    number: entry.port.containerPort,
    name: entry.port.name || null,
    container: entry.container,
  })
  if (/^\d+$/.test(wanted)) {
    const number = Number(wanted)
    if (number < 1 || number > 65535) return `port ${wanted} is out of range`
    const declared = all.find(({ port }) => port.containerPort === number)
    return declared ? found(declared) : { number, name: null, container: null }
  }
  if (wanted !== '') {
    const named = all.find(({ port }) => port.name === wanted)
    return named ? found(named) : `no container has a TCP port named "${wanted}"`
  }
  const customary = all.find(({ port }) => port.name === customaryName)
  if (customary) return found(customary)
  const [only, second] = all
  if (only !== undefined && second === undefined) return found(only)
  return only === undefined
    ? 'no container declares a TCP port'
    : `${all.length} TCP ports are declared and none is named "${customaryName}"`
}

/** What `name` becomes in the application: `http-app`, cut to fit, free in every container. */
export function replacementName(name: string, containers: readonly Container[]): string {
  const taken = new Set(containers.flatMap(container => portsOf(container).map(port => port.name)))
  for (let attempt = 1; ; attempt++) {
    const ending = attempt === 1 ? '-app' : `-app${attempt}`
    const stem = name.slice(0, portNameCharsMax - ending.length).replace(/-+$/, '')
    if (!taken.has(stem + ending)) return stem + ending
  }
}

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
const hooks = ['postStart', 'preStop'] as const

/**
 * `container` with its port `from` renamed, and its probes and hooks with it: the kubelet resolves
 * names within the container, and probes must go on reaching the application, not the limiter.
 */
export function renamePort(container: Container, from: string, to: string): Container {
  const ports = portsOf(container)
  if (!ports.some(port => port.name === from)) return container
  const renamed: Record<string, unknown> = {
    ...container,
    ports: ports.map(port => (port.name === from ? { ...port, name: to } : port)),
  }
  for (const probe of probes) {
    if (isMap(renamed[probe])) renamed[probe] = renameInHandler(renamed[probe], from, to)
  }
  const lifecycle = renamed.lifecycle
  if (isMap(lifecycle)) {
    const changed: Record<string, unknown> = { ...lifecycle }
    for (const hook of hooks) {
      if (isMap(changed[hook])) changed[hook] = renameInHandler(changed[hook], from, to)
    }
    renamed.lifecycle = changed
  }
  return renamed as unknown as Container
}

function renameInHandler(
  handler: Record<string, unknown>,
  from: string,
  to: string,
): Record<string, unknown> {
  const changed = { ...handler }
  for (const action of ['httpGet', 'tcpSocket']) {
    const target = changed[action]
    if (isMap(target) && target.port === from) changed[action] = { ...target, port: to }
  }
  return changed
}

/**
 * Services of the pod whose traffic does not pass the proxy, because they name the application's
 * port by number: `web: 80 -> 3000`. The pod cannot change that; it can only be told.
 */
export function bypassingServices(
  services: readonly ServicePorts[],
  labels: Readonly<Record<string, string>>,
  appPort: number,
): string[] {
  return services
    .filter(service =>
      Object.entries(service.selector).every(([key, value]) => labels[key] === value),
    )
    .flatMap(service =>
      service.ports
        .filter(port => Number(port.targetPort ?? port.port) === appPort)
        .map(port => `${service.name}: ${port.port} -> ${appPort}`),
    )
    .sort()
}
