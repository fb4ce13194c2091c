/**
 * `grapevine inject` and the webhook against the golden files. test/chart/golden.test.ts holds the
 * library chart to the same files, and the injector's settings in them to what the chart renders.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { answer } from '../../../src/injector/admission.js'
import { injectDocuments } from '../../../src/injector/inject-documents.js'
import { parseInjectorConfig } from '../../../src/injector/injector-config.js'
import { applyPatch } from '../../helpers/apply-patch.js'

const folder = fileURLToPath(new URL('../../golden/sidecar/', import.meta.url))
const workload = readFileSync(`${folder}workload.yaml`, 'utf8')
const cases = readdirSync(folder).filter(name => statSync(folder + name).isDirectory())

function settings(name: string) {
  const file = `${folder}${name}/injector.yaml`
  const parsed = parseInjectorConfig(readFileSync(file, 'utf8'), file)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.findings))
  return parsed.config.sidecar
}

interface Workload {
  readonly spec: { readonly template: { readonly metadata: object; readonly spec: object } }
}

describe.each(cases)('golden file %s', name => {
  const injected = injectDocuments(workload, 'workload.yaml', settings(name))

  test('is what `grapevine inject` makes', async () => {
    if (!injected.ok) throw new Error(injected.error)
    expect(injected.failures).toEqual([])
    await expect(injected.text).toMatchFileSnapshot(`${folder}${name}/injected.yaml`)
  })

  test('is what the webhook makes of the pods, and a second pass leaves', () => {
    const { template } = (parse(workload) as Workload).spec
    const expected = (parse(readFileSync(`${folder}${name}/injected.yaml`, 'utf8')) as Workload)
      .spec.template
    const request = { uid: 'u', namespace: 'shop', operation: 'CREATE', kind: 'Pod' }
    const first = answer({ ...request, object: template }, settings(name), [])
    const patched = applyPatch(template, first.operations)
    expect(patched).toEqual(expected)
    expect(answer({ ...request, object: patched }, settings(name), []).operations).toEqual([])
  })
})

test('there is a case for each kind of sidecar', () => {
  expect(cases).toEqual(['decision', 'default', 'dns', 'ordinary', 'tuned', 'watched'])
})
