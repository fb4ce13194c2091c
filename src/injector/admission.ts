/**
 * One admission review, answered. Whatever is wrong, the pod is allowed: a limiter that cannot be
 * injected must not keep an application from starting. What went wrong is said in warnings and in
 * the pod's status annotation. Pure.
 */

import { fieldsOf, isMap, textOf } from '../lib/untrusted.js'
import { version } from '../version.js'
import { injectSidecar, type SkipReason } from './inject-sidecar.js'
import { jsonPatch, type PatchOperation } from './json-patch.js'
import { annotations } from './names.js'
import { readPodTemplate, type ServicePorts } from './pod-template.js'
import type { SidecarSettings } from './sidecar-settings.js'

/** Longest warning that the API server hands on in one piece, and the total of all. */
const warningCharsMax = 240

export type AdmissionResult = 'injected' | 'failed' | SkipReason | 'not-a-pod'

export interface AdmissionRequest {
  readonly uid: string
  readonly namespace: string
  readonly operation: string
  readonly kind: string
  readonly object: unknown
}

export interface AdmissionAnswer {
  readonly result: AdmissionResult
  readonly operations: readonly PatchOperation[]
  readonly warnings: readonly string[]
}

/** The request in an `AdmissionReview` (admission.k8s.io/v1), or a sentence on what it lacks. */
export function readReview(body: unknown): AdmissionRequest | string {
  if (!isMap(body) || body.kind !== 'AdmissionReview') return 'expected an AdmissionReview'
  if (body.apiVersion !== 'admission.k8s.io/v1') {
    return `expected admission.k8s.io/v1, got ${JSON.stringify(body.apiVersion ?? null)}`
  }
  const { request } = body
  if (!isMap(request) || typeof request.uid !== 'string' || request.uid === '') {
    return 'expected a request with a uid'
  }
  return {
    uid: request.uid,
    namespace: textOf(request.namespace),
    operation: textOf(request.operation),
    kind: textOf(fieldsOf(request.kind).kind),
    object: request.object,
  }
}

/** What to do with the pod in `request`. */
export function answer(
  request: AdmissionRequest,
  settings: SidecarSettings,
  services: readonly ServicePorts[],
): AdmissionAnswer {
  if (request.kind !== 'Pod' || request.operation !== 'CREATE') {
    return { result: 'not-a-pod', operations: [], warnings: [] }
  }
  const pod = readPodTemplate(request.object)
  if (typeof pod === 'string') return failed(request.object, `the pod ${pod}`)
  const result = injectSidecar(pod, settings, services)
  switch (result.kind) {
    case 'injected':
      return {
        result: 'injected',
        operations: jsonPatch(pod, result.template),
        warnings: result.warnings,
      }
    case 'skipped':
      return {
        result: result.reason,
        operations: [],
        warnings: result.reason === 'host-network' ? [`no sidecar: the pod ${result.text}`] : [],
      }
    case 'failed':
      return failed(pod, result.error)
  }
}

function failed(object: unknown, error: string): AdmissionAnswer {
  const operations: PatchOperation[] = []
  const metadata = isMap(object) ? object.metadata : undefined
  const found = isMap(metadata) ? (metadata.annotations ?? {}) : undefined
  if (isMap(found)) {
    const noted = { ...found, [annotations.status]: JSON.stringify({ error, version }) }
    operations.push(
      ...jsonPatch(object, {
        ...(object as Record<string, unknown>),
        metadata: { ...(metadata as Record<string, unknown>), annotations: noted },
      }),
    )
  }
  return { result: 'failed', operations, warnings: [`no sidecar: ${error}`] }
}

/** The `AdmissionReview` that answers the request `uid`. */
export function reviewOf(uid: string, { operations, warnings }: AdmissionAnswer): unknown {
  const patch =
    operations.length === 0
      ? {}
      : {
          patchType: 'JSONPatch',
          patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
        }
  const told = warnings.map(warning => `grapevine: ${warning}`.slice(0, warningCharsMax))
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: true,
      ...patch,
      ...(told.length === 0 ? {} : { warnings: told }),
    },
  }
}
