/** Kubernetes objects with anything anywhere: read without an exception, whatever they carry. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { documentsOf } from '../../src/config/documents.js'
import { peersOfSlices } from '../../src/discovery/endpoint-slices.js'
import { answer, readReview, reviewOf } from '../../src/injector/admission.js'
import { injectDocuments } from '../../src/injector/inject-documents.js'
import { settingsDefaults } from '../../src/injector/sidecar-settings.js'

/** Longest a property may run, in milliseconds; it ends early rather than late. */
const limits = { interruptAfterTimeLimit: 2000, markInterruptAsFailure: false } as const

/** Names that an object inherits, and so names that code may find where nobody put them. */
const inherited = ['toString', 'valueOf', 'constructor', '__proto__', 'toJSON', 'hasOwnProperty']

const { junk } = fc.letrec(tie => ({
  junk: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom<unknown>(...inherited, null, true, 0, -1, 1e300, '', 'http', 'Pod', [], {}),
    fc.array(tie('junk'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom(...inherited, 'name', 'kind'), tie('junk'), { maxKeys: 2 }),
  ),
}))

const template = {
  metadata: { name: 'shop', annotations: { a: 'b' }, labels: { app: 'shop' } },
  spec: {
    containers: [
      {
        name: 'app',
        ports: [{ name: 'http', containerPort: 3000 }],
        readinessProbe: { httpGet: { port: 'http' } },
      },
    ],
    initContainers: [{ name: 'first' }],
    volumes: [{ name: 'data' }],
  },
}

const pod = { apiVersion: 'v1', kind: 'Pod', ...template }

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'shop', namespace: 'shop' },
  spec: { template },
}

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'shop', namespace: 'shop' },
  spec: { selector: { app: 'shop' }, ports: [{ port: 80, targetPort: 'http' }] },
}

const configMap = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'rules' },
  data: { 'rules.yaml': 'version: 1', other: 'x' },
}

const slice = {
  metadata: { name: 'shop-1' },
  addressType: 'IPv4',
  ports: [{ name: 'gossip', port: 7946 }],
  endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true }, targetRef: { name: 'a' } }],
}

/** Every place in `value`, the root among them. */
function placesIn(value: unknown): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [[]]
  return [
    [],
    ...Object.entries(value).flatMap(([key, child]) => placesIn(child).map(rest => [key, ...rest])),
  ]
}

function replaced(value: unknown, [step, ...rest]: readonly string[], by: unknown): unknown {
  if (step === undefined) return by
  const copy: unknown = Array.isArray(value) ? [...value] : { ...(value as object) }
  const parts = copy as Record<string, unknown>
  parts[step] = replaced(parts[step], rest, by)
  return copy
}

/** `valid` with up to two places of it exchanged for something else. */
function spoilt(valid: unknown): fc.Arbitrary<unknown> {
  const change = fc.tuple(fc.constantFrom(...placesIn(valid)), junk)
  return fc.array(change, { minLength: 1, maxLength: 2 }).map(([first, second]) => {
    const once = replaced(valid, first![0], first![1])
    if (second === undefined) return once
    const still = placesIn(once).some(place => place.join('/') === second[0].join('/'))
    return still ? replaced(once, second[0], second[1]) : once
  })
}

describe('objects with anything anywhere', () => {
  it('are read as configuration, or not', () => {
    const text = spoilt(configMap).map(value => stringify(value))
    fc.assert(
      fc.property(text, given => {
        const { documents, findings } = documentsOf({ name: 'f.yaml', text: given })
        expect(documents.length + findings.length).toBeGreaterThan(0)
      }),
      { ...limits, numRuns: 500 },
    )
  })

  it('are injected into, or left as they are', () => {
    const text = fc
      .tuple(spoilt(service), fc.oneof(spoilt(pod), spoilt(deployment)))
      .map(values => values.map(value => stringify(value)).join('---\n'))
    fc.assert(
      fc.property(text, given => {
        const result = injectDocuments(given, 'f.yaml', settingsDefaults)
        if (!result.ok) expect(result.error).not.toBe('')
        else if (result.notes.every(note => !note.includes('added')))
          expect(result.text).toBe(given)
      }),
      { ...limits, numRuns: 500 },
    )
  })

  it('are admitted, whatever the review says', () => {
    const request = { uid: 'u', operation: 'CREATE', namespace: 'n', kind: { kind: 'Pod' } }
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }
    const body = spoilt({ ...review, request: { ...request, object: pod } })
    fc.assert(
      fc.property(body, given => {
        const read = readReview(given)
        if (typeof read === 'string') return
        const answered = reviewOf(read.uid, answer(read, settingsDefaults, []))
        expect(answered).toMatchObject({ response: { uid: read.uid, allowed: true } })
      }),
      { ...limits, numRuns: 500 },
    )
  })

  it('give endpoints, or none', () => {
    fc.assert(
      fc.property(spoilt(slice), given => {
        const { ready, all } = peersOfSlices([given], { family: 4, port: 7946 })
        expect(ready.length).toBeLessThanOrEqual(all.length)
      }),
      { ...limits, numRuns: 500 },
    )
  })
})
