/** The library chart and the injector's settings against the golden files of `grapevine inject`. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { describe, expect, inject, test } from 'vitest'
import { parse } from 'yaml'
import { type KubernetesObject, only, render, root } from './helm.js'

const { helm } = inject('peers')
const folder = `${root}test/golden/sidecar/`
const cases = readdirSync(folder).filter(name => statSync(folder + name).isDirectory())

/** What a chart that brings its own workload must say besides: it knows the port. */
const ports = ['--set', 'grapevine.sidecar.appPort=http,grapevine.sidecar.appPortNumber=3000']

describe.skipIf(helm === null).each(cases)('golden file %s', name => {
  const values = `${folder}${name}/values.yaml`

  test('has the settings that the chart gives the injector', async () => {
    const objects = render(helm!, 'helm/grapevine', ['--values', values])
    const config = only(objects, 'ConfigMap', 'grapevine-injector').data as Record<string, string>
    await expect(config['injector.yaml']).toMatchFileSnapshot(`${folder}${name}/injector.yaml`)
  })

  test('is what the library chart renders', () => {
    const given = parse(readFileSync(values, 'utf8')) as Record<string, unknown>
    const set = ['--set-json', `grapevine=${JSON.stringify(given)}`]
    const taken = name === 'decision' ? ['--set', 'appPortName=http'] : []
    const rendered = render(helm!, 'test/chart/library-user', [...set, ...ports, ...taken])
    const expected = parse(
      readFileSync(`${folder}${name}/injected.yaml`, 'utf8'),
    ) as KubernetesObject
    expect(only(rendered, 'Deployment')).toEqual(expected)
  })
})
