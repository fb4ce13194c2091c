import { describe, expect, test } from 'vitest'
import { answer, readReview, reviewOf } from '../../../src/injector/admission.js'
import { annotations } from '../../../src/injector/names.js'
import { settingsDefaults } from '../../../src/injector/sidecar-settings.js'
import { applyPatch } from '../../helpers/apply-patch.js'

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'shop-', labels: { app: 'shop' } },
  spec: { containers: [{ name: 'app', ports: [{ name: 'http', containerPort: 3000 }] }] },
}

const review = (over: Record<string, unknown> = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u-1',
    operation: 'CREATE',
    namespace: 'shop',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    object: pod,
    ...over,
  },
})

function answered(over: Record<string, unknown> = {}) {
  const request = readReview(review(over))
  if (typeof request === 'string') throw new Error(request)
  return answer(request, settingsDefaults, [])
}

interface Response {
  readonly response: {
    readonly uid: string
    readonly allowed: boolean
    readonly patch?: string
    readonly patchType?: string
    readonly warnings?: readonly string[]
  }
}

describe('an admission review', () => {
  test('is answered with a base64 JSON patch that adds the sidecar', () => {
    const { response } = reviewOf('u-1', answered()) as Response
    expect(response).toMatchObject({ uid: 'u-1', allowed: true, patchType: 'JSONPatch' })
    const operations = JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString())
    const patched = applyPatch(pod, operations) as typeof pod
    expect(patched).toMatchObject({
      metadata: { generateName: 'shop-' },
      spec: { initContainers: [{ name: 'grapevine' }] },
    })
    const second = answered({ object: patched })
    expect(second).toEqual({ result: 'already-injected', operations: [], warnings: [] })
  })

  test('allows what it cannot inject, and says why in a warning and on the pod', () => {
    const object = { ...pod, metadata: { annotations: { [annotations.mode]: 'sideways' } } }
    const result = answered({ object })
    expect(result).toMatchObject({
      result: 'failed',
      warnings: [expect.stringContaining('expected proxy or decision')],
    })
    expect(applyPatch(object, result.operations)).toMatchObject({
      metadata: { annotations: { [annotations.status]: expect.stringContaining('sideways') } },
      spec: pod.spec,
    })
    const { response } = reviewOf('u-1', result) as Response
    expect(response.allowed).toBe(true)
    expect(response.warnings?.[0]).toMatch(/^grapevine: no sidecar: /)
  })

  test.each([
    [{ object: null }],
    [{ object: { metadata: 1 } }],
    [{ object: { metadata: {}, spec: { containers: 'none' } } }],
    [{ object: { metadata: { annotations: [] }, spec: { containers: [{ name: 'a' }] } } }],
  ])('allows the malformed pod %j', over => {
    const result = answered(over)
    expect(result.result).toBe('failed')
    expect((reviewOf('u', result) as Response).response.allowed).toBe(true)
  })

  test('leaves other kinds and operations alone', () => {
    expect(answered({ operation: 'UPDATE' })).toMatchObject({ result: 'not-a-pod', operations: [] })
    expect(answered({ kind: { kind: 'Service' } })).toMatchObject({ result: 'not-a-pod' })
  })

  test('warnings are cut to what the API server hands on', () => {
    const { response } = reviewOf('u', {
      result: 'failed',
      operations: [],
      warnings: ['x'.repeat(1000)],
    }) as Response
    expect(response.warnings?.[0]).toHaveLength(240)
  })

  test.each([
    [null, 'expected an AdmissionReview'],
    [{ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1beta1' }, 'expected admission'],
    [{ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' }, 'expected a request'],
    [review({ uid: '' }), 'expected a request with a uid'],
  ])('%j is refused', (body, reason) => {
    expect(readReview(body)).toContain(reason)
  })
})
