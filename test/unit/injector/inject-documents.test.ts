import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { injectDocuments } from '../../../src/injector/inject-documents.js'
import { settingsDefaults } from '../../../src/injector/sidecar-settings.js'

const inject = (text: string) => injectDocuments(text, 'in.yaml', settingsDefaults)

function done(text: string) {
  const result = inject(text)
  if (!result.ok) throw new Error(result.error)
  return result
}

const template = (indent: string) =>
  [
    'metadata:',
    '  labels: { app: shop }',
    'spec:',
    '  containers:',
    '    - name: app   # the application',
    '      image: shop:1',
    '      ports:',
    '        - name: http',
    '          containerPort: 3000',
  ]
    .map(line => indent + line)
    .join('\n')

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  selector: { matchLabels: { app: shop } }
  template:
${template('    ')}
`

describe('what is not a workload', () => {
  const around = `# a note at the top
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data:   { a:   "1" }   # spaced as somebody liked it
---
`
  test('stays byte for byte, workloads beside it or not', () => {
    expect(done(around).text).toBe(around)
    expect(done(around + deployment).text.startsWith(around)).toBe(true)
    const behind = `${deployment}---\n${around}`
    expect(done(behind).text.endsWith(`---\n${around}`)).toBe(true)
  })

  test('is an empty file, and an empty document', () => {
    expect(done('').text).toBe('')
    expect(done('---\n---\n').text).toBe('---\n---\n')
  })
})

describe('workloads', () => {
  const at: Record<string, readonly string[]> = {
    Deployment: ['spec', 'template'],
    StatefulSet: ['spec', 'template'],
    DaemonSet: ['spec', 'template'],
    ReplicaSet: ['spec', 'template'],
    Job: ['spec', 'template'],
  }

  test.each(Object.keys(at))('%s gets the sidecar in its template', kind => {
    const [document] = parseAllDocuments(done(deployment.replace('Deployment', kind)).text)
    const path = ['spec', 'template', 'spec', 'initContainers', 0, 'name']
    expect(document?.getIn(path)).toBe('grapevine')
  })

  test('a Pod and a CronJob have theirs elsewhere', () => {
    const pod = `apiVersion: v1\nkind: Pod\n${template('')}\n`
    const [first] = parseAllDocuments(done(pod).text)
    expect(first?.getIn(['spec', 'initContainers', 0, 'name'])).toBe('grapevine')
    const job = `kind: CronJob\nspec:\n  jobTemplate:\n    spec:\n      template:\n${template('        ')}\n`
    const [second] = parseAllDocuments(done(job).text)
    const path = ['spec', 'jobTemplate', 'spec', 'template', 'spec', 'initContainers', 0, 'name']
    expect(second?.getIn(path)).toBe('grapevine')
  })

  test('comments and the order of keys survive', () => {
    const { text } = done(deployment)
    expect(text).toContain('- name: app # the application')
    expect(text.indexOf('kind: Deployment')).toBeLessThan(text.indexOf('metadata:'))
    expect(text).toContain('name: http-app')
  })

  test('in a List are found', () => {
    const list = `kind: List\nitems:\n  - kind: Pod\n${template('    ')}\n`
    const [document] = parseAllDocuments(done(list).text)
    expect(document?.getIn(['items', 0, 'spec', 'initContainers', 0, 'name'])).toBe('grapevine')
  })

  test('that share parts through aliases and merge keys each get what is theirs', () => {
    const shared = [
      'kind: List',
      'items:',
      '  - kind: Pod',
      '    metadata: &about { labels: { app: shop } }',
      '    spec: &spec',
      '      containers: &all',
      '        - { name: app, ports: [{ name: http, containerPort: 3000 }] }',
      '      volumes: &none []   # nothing yet',
      '  - kind: Pod',
      '    metadata: *about',
      '    spec: { <<: *spec, volumes: *none, restartPolicy: Never }',
      '',
    ].join('\n')
    const { text, notes } = done(shared)
    expect(notes).toHaveLength(2)
    expect(text).toContain('# nothing yet')
    expect(text).not.toMatch(/[&*<]/)
    const { items } = parseAllDocuments(text)[0]!.toJS()
    const { restartPolicy, ...second } = items[1].spec
    expect(restartPolicy).toBe('Never')
    expect(second).toEqual(items[0].spec)
    expect(second.initContainers).toHaveLength(1)
    expect(done(text).text).toBe(text)
  })

  test('with null where there could be a list get the list', () => {
    const { text } = done(
      deployment.replace(
        '      containers:',
        '      volumes:\n      initContainers: null\n      containers:',
      ),
    )
    const spec = parseAllDocuments(text)[0]!.toJS().spec.template.spec
    expect(spec.initContainers).toHaveLength(1)
    expect(spec.volumes.length).toBeGreaterThan(0)
  })

  test('the second pass changes nothing', () => {
    const once = done(deployment)
    const twice = done(once.text)
    expect(twice.text).toBe(once.text)
    expect(twice.notes).toEqual([
      'deployment/shop: left as it is: has a container named grapevine already',
    ])
  })

  test('Services of the file that bypass the proxy are named', () => {
    const service = (namespace: string) =>
      `---\nkind: Service\nmetadata: { name: web${namespace} }\nspec:\n  selector: { app: shop }\n  ports: [{ port: 80, targetPort: 3000 }]\n`
    const { warnings, text } = done(deployment + service(''))
    expect(warnings).toEqual([expect.stringContaining('Service web: 80 -> 3000')])
    expect(text).toContain('bypassed')
    const other = service('').replace('name: web', 'name: web, namespace: other')
    expect(done(deployment + other).warnings).toEqual([])
  })

  test('that cannot be injected are told by name, and the others are done', () => {
    const broken = deployment.replace('containerPort: 3000', 'containerPort: 7946')
    const { failures, notes } = done(`${broken}---\n${deployment.replace('shop', 'two')}`)
    expect(failures).toEqual([
      'deployment/shop: container app has port 7946, which the sidecar needs',
    ])
    expect(notes).toEqual(['deployment/two: sidecar added; in its Service: targetPort: http'])
  })

  test.each([
    ['kind: Pod\nmetadata: { name: p }\n', 'pod/p: has no spec'],
    ['kind: Pod\nspec: { containers: [] }\n', 'pod/: has no containers'],
    ['kind: Pod\nspec: { containers: [1] }\n', 'pod/: spec.containers is malformed'],
    [
      'kind: Pod\nmetadata: { labels: { a: 1 } }\nspec: { containers: [{ name: a }] }\n',
      'pod/: metadata.labels is no map of texts',
    ],
    [
      'kind: Pod\nspec: { containers: [{ name: a, ports: [{ name: x }] }] }\n',
      'pod/: a container has malformed ports',
    ],
  ])('%j is told what it lacks', (text, failure) => {
    expect(done(text).failures).toEqual([failure])
  })
})

test('what is no YAML is an error with its place', () => {
  expect(inject('a: [')).toMatchObject({ ok: false, error: expect.stringContaining('line 1') })
})

test('an alias bomb is an error', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 9; level++) {
    const alias = `*a${level - 1}`
    lines.push(`a${level}: &a${level} [${Array(9).fill(alias).join(', ')}]`)
  }
  expect(inject(lines.join('\n')).ok).toBe(false)
})
