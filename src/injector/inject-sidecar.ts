/**
 * The patch builder: a pod template and settings in, the template with the sidecar out. The webhook
 * and `grapevine inject` both are a shell around it, and the library chart renders the same. Pure.
 */

import { version } from '../version.js'
import {
  type AppPort,
  bypassingServices,
  findAppPort,
  renamePort,
  replacementName,
} from './app-port.js'
import { annotations, containerName, labels, portNames, ports, volumeNames } from './names.js'
import type { Container, PodTemplate, ServicePorts } from './pod-template.js'
import { portsOf } from './pod-template.js'
import { sidecarContainer, sidecarVolumes } from './sidecar-container.js'
import { annotatedSettings, durationSeconds, type SidecarSettings } from './sidecar-settings.js'

export type SkipReason = 'already-injected' | 'host-network' | 'opted-out'

export type Injection =
  | {
      readonly kind: 'injected'
      readonly template: PodTemplate
      /** What a Service's `targetPort` must say to reach the proxy; null: there is no proxy. */
      readonly targetPort: string | null
      /** For whoever asked: things that will not work as they may expect. */
      readonly warnings: readonly string[]
    }
  | { readonly kind: 'skipped'; readonly reason: SkipReason; readonly text: string }
  /** The template or its annotations are wrong; it stays as it is. */
  | { readonly kind: 'failed'; readonly error: string }

/** `drainTimeout` and the second that exit may take after it (product.md §8), by default. */
const exitSeconds = 4
/** What Kubernetes gives a pod that says nothing. */
const graceSecondsDefault = 30

/** `services` are those of the pod's namespace as far as they are known. */
export function injectSidecar(
  template: PodTemplate,
  base: SidecarSettings,
  services: readonly ServicePorts[],
): Injection {
  const found = template.metadata?.annotations ?? {}
  const skipped = reasonToSkip(template)
  if (skipped !== null) return skipped
  const read = annotatedSettings(base, found)
  if (!read.ok) return { kind: 'failed', error: read.error }
  const { settings } = read
  const appPort = settings.mode === 'proxy' ? appPortOf(template, settings) : null
  if (typeof appPort === 'string') return { kind: 'failed', error: appPort }
  const clash = clashOf(template)
  if (clash !== null) return { kind: 'failed', error: clash }
  const podLabels = { ...template.metadata?.labels, [labels.ring]: settings.ring }
  const targetPort = appPort === null ? null : (appPort.name ?? portNames.proxy)
  const bypassed = appPort === null ? [] : bypassingServices(services, podLabels, appPort.number)
  return {
    kind: 'injected',
    template: {
      ...template,
      metadata: {
        ...template.metadata,
        labels: podLabels,
        annotations: {
          ...found,
          [annotations.defaultContainer]:
            found[annotations.defaultContainer] ?? template.spec.containers[0]!.name,
          ...(settings.prometheusAnnotations ? scrapeAnnotations(found) : {}),
          [annotations.status]: statusText(settings, appPort, bypassed),
        },
      },
      spec: patchedSpec(template.spec, settings, appPort),
    },
    targetPort,
    warnings: [
      ...read.warnings,
      ...bypassed.map(
        service =>
          `Service ${service}: targets the application by number and bypasses the limiter; ` +
          `use targetPort: ${targetPort}`,
      ),
      ...graceWarnings(template, settings),
    ],
  }
}

function reasonToSkip(template: PodTemplate): Injection | null {
  const skip = (reason: SkipReason, text: string): Injection => ({ kind: 'skipped', reason, text })
  const { spec, metadata } = template
  const present = [...spec.containers, ...(spec.initContainers ?? [])].some(
    container => container.name === containerName,
  )
  if (present) {
    return skip('already-injected', `has a container named ${containerName} already`)
  }
  if (metadata?.labels?.[labels.inject] === 'false') {
    return skip('opted-out', `the label ${labels.inject} is "false"`)
  }
  // On the host's network the sidecars of one node would fight over the same ports.
  if (spec.hostNetwork === true) return skip('host-network', 'uses the network of its host')
  return null
}

function appPortOf(template: PodTemplate, settings: SidecarSettings): AppPort | string {
  const appPort = findAppPort(template.spec.containers, settings.appPort)
  return typeof appPort === 'string'
    ? `${appPort}; name the application's port in the annotation ${annotations.appPort}`
    : appPort
}

/** Containers of a pod share one network and one list of volumes. */
function clashOf(template: PodTemplate): string | null {
  const own = new Set<number>([ports.proxy, ports.api, ports.gossip, ports.telemetry, ports.admin])
  const { containers, initContainers, volumes } = template.spec
  for (const container of [...containers, ...(initContainers ?? [])]) {
    const port = portsOf(container).find(entry => own.has(entry.containerPort))
    if (port !== undefined) {
      return `container ${container.name} has port ${port.containerPort}, which the sidecar needs`
    }
  }
  const names: readonly string[] = Object.values(volumeNames)
  const volume = volumes?.find(entry => names.includes(entry.name))
  return volume === undefined ? null : `a volume is named ${volume.name}, as the sidecar's`
}

function patchedSpec(
  spec: PodTemplate['spec'],
  settings: SidecarSettings,
  appPort: AppPort | null,
): PodTemplate['spec'] {
  const sidecar = sidecarContainer(settings, appPort)
  const taken = appPort?.name ?? null
  const free = taken === null ? '' : replacementName(taken, spec.containers)
  // Every container: whichever still had the name would win over a native sidecar.
  const containers: readonly Container[] =
    taken === null
      ? spec.containers
      : spec.containers.map(container => renamePort(container, taken, free))
  const volumes = [...(spec.volumes ?? []), ...sidecarVolumes(settings)]
  return settings.nativeSidecar
    ? {
        ...spec,
        // First, so that it is there for the other init containers and stops last.
        initContainers: [sidecar, ...(spec.initContainers ?? [])],
        containers,
        volumes,
      }
    : { ...spec, containers: [...containers, sidecar], volumes }
}

/** JSON with sorted keys, so that Helm's `toJson` writes the same. */
function statusText(
  settings: SidecarSettings,
  appPort: AppPort | null,
  bypassed: readonly string[],
): string {
  return JSON.stringify({
    ...(appPort === null ? {} : { appPort: appPort.number }),
    ...(bypassed.length === 0 ? {} : { bypassed }),
    mode: settings.mode,
    nativeSidecar: settings.nativeSidecar,
    ...(appPort === null ? {} : { port: appPort.name ?? portNames.proxy }),
    version,
  })
}

/** Only where the application is not scraped by annotations itself: a pod has one such port. */
function scrapeAnnotations(found: Readonly<Record<string, string>>): Record<string, string> {
  if (Object.keys(found).some(name => name.startsWith('prometheus.io/'))) return {}
  return {
    'prometheus.io/scrape': 'true',
    'prometheus.io/port': String(ports.telemetry),
    'prometheus.io/path': '/metrics',
  }
}

function graceWarnings(template: PodTemplate, settings: SidecarSettings): string[] {
  const grace = template.spec.terminationGracePeriodSeconds ?? graceSecondsDefault
  const needed = durationSeconds(settings.drainWait) + exitSeconds
  if (grace >= needed) return []
  return [
    `terminationGracePeriodSeconds is ${grace}: draining takes up to ${needed} s, ` +
      'and requests may be cut off',
  ]
}
