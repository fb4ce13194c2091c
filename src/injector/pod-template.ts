/**
 * Pod templates as the injector sees them: only the parts it reads are typed, everything else is
 * carried along untouched. Shapes follow core/v1 `PodTemplateSpec`; a Pod has the same two fields.
 */

import { isMap, textOf } from '../lib/untrusted.js'

export type Json = null | boolean | number | string | readonly Json[] | JsonMap
export interface JsonMap {
  readonly [key: string]: Json
}

export interface ContainerPort extends Record<string, Json | undefined> {
  readonly name?: string
  readonly containerPort: number
  readonly protocol?: string
  readonly hostPort?: number
}

export interface Container extends Record<string, Json | undefined> {
  readonly name: string
  readonly restartPolicy?: string
}

/** A field that is null is absent: some writers of manifests put it so. */
export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>> | null
    readonly annotations?: Readonly<Record<string, string>> | null
    readonly [key: string]: unknown
  } | null
  readonly spec: {
    readonly containers: readonly Container[]
    readonly initContainers?: readonly Container[] | null
    readonly volumes?: readonly { readonly name: string; readonly [key: string]: unknown }[] | null
    readonly hostNetwork?: boolean
    readonly terminationGracePeriodSeconds?: number
    readonly [key: string]: unknown
  }
  readonly [key: string]: unknown
}

/** What a Service says about where its traffic goes; the parts of core/v1 `Service` that matter. */
export interface ServicePorts {
  readonly name: string
  readonly selector: Readonly<Record<string, string>>
  readonly ports: readonly {
    readonly port: number
    /** Absent: the same as `port`. */
    readonly targetPort?: number | string | null
  }[]
}

/** `value` as a pod template, or a sentence that says what it lacks. */
export function readPodTemplate(value: unknown): PodTemplate | string {
  if (!isMap(value)) return 'is no object'
  const { metadata, spec } = value
  if (!isMap(spec)) return 'has no spec'
  if (metadata !== undefined && metadata !== null) {
    if (!isMap(metadata)) return 'metadata is no object'
    for (const part of ['labels', 'annotations']) {
      const texts = metadata[part] ?? {}
      if (!isMap(texts) || Object.values(texts).some(text => typeof text !== 'string')) {
        return `metadata.${part} is no map of texts`
      }
    }
  }
  if (!Array.isArray(spec.containers) || spec.containers.length === 0) return 'has no containers'
  for (const list of ['containers', 'initContainers', 'volumes']) {
    const entries = spec[list] ?? []
    if (!Array.isArray(entries) || !entries.every(isNamed)) return `spec.${list} is malformed`
  }
  const all = [...spec.containers, ...((spec.initContainers ?? []) as unknown[])]
  const badPorts = all.some(container => !hasReadablePorts(container as Record<string, unknown>))
  if (badPorts) return 'a container has malformed ports'
  return value as unknown as PodTemplate
}

function isNamed(entry: unknown): boolean {
  return isMap(entry) && typeof entry.name === 'string'
}

function hasReadablePorts(container: Record<string, unknown>): boolean {
  const ports = container.ports ?? []
  if (!Array.isArray(ports)) return false
  return ports.every(
    port =>
      isMap(port) &&
      Number.isInteger(port.containerPort) &&
      (port.name === undefined || port.name === null || typeof port.name === 'string'),
  )
}

/** The ports of a container that `readPodTemplate` let through. */
export function portsOf(container: Container): readonly ContainerPort[] {
  return (container.ports ?? []) as unknown as readonly ContainerPort[]
}

export function isTcp(port: ContainerPort): boolean {
  return (port.protocol ?? 'TCP') === 'TCP'
}

/** `value` as a Service, or null when it is none with a selector. */
export function readService(value: unknown): ServicePorts | null {
  if (!isMap(value) || !isMap(value.metadata) || !isMap(value.spec)) return null
  const { selector, ports } = value.spec
  if (!isMap(selector) || Object.keys(selector).length === 0 || !Array.isArray(ports)) return null
  return {
    name: textOf(value.metadata.name),
    selector: selector as Record<string, string>,
    ports: ports.filter(isServicePort),
  }
}

function isServicePort(value: unknown): value is ServicePorts['ports'][number] {
  if (!isMap(value) || !Number.isInteger(value.port)) return false
  const target = value.targetPort ?? 0
  return typeof target === 'number' || typeof target === 'string'
}
