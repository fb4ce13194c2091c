/**
 * Renders deploy/ from the charts: `node .ci/render-deploy.mjs [--check]`. With --check nothing is
 * written, and files that differ are named; the exit status is then 1. Needs helm (HELM names the
 * program, else it is looked for on PATH) and the compiled program in dist/.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const helm = process.env.HELM ?? 'helm'
const check = process.argv.includes('--check')

const heading = source => `# Made by .ci/render-deploy.mjs from ${source}. Do not edit.\n`

function run(program, args, input) {
  const result = spawnSync(program, args, {
    cwd: root,
    encoding: 'utf8',
    input,
    maxBuffer: 1 << 26,
  })
  if (result.error) throw result.error
  if (result.status !== 0) throw new Error(`${program} ${args.join(' ')}\n${result.stderr}`)
  return result.stdout
}

/** The chart's templates `shown`, without what says that Helm manages the objects. */
function chart(namespace, shown, args) {
  const show = shown.flatMap(name => ['--show-only', `templates/${name}`])
  const text = run(helm, [
    'template',
    'grapevine',
    'helm/grapevine',
    '--namespace',
    namespace,
    ...show,
    ...args,
  ])
  return text
    .replaceAll(/^ *(app\.kubernetes\.io\/managed-by|helm\.sh\/chart): .*\n/gm, '')
    .replaceAll(/^# Source: .*\n/gm, '')
    .replaceAll(/^---\n(?=---\n)/gm, '')
    .replace(/^---\n/, '')
}

const injector = ['config', 'certificates', 'rbac', 'service', 'deployment', 'webhook']
const noKeys = ['--set', 'keys.create=false']
const shop = name => ['--values', `deploy/example-shop/${name}.values.yaml`]

const files = {
  'deploy/base/ring.yaml': () =>
    heading('helm/grapevine') + chart('grapevine', ['ring.yaml'], noKeys),
  'deploy/base/injector.yaml': () =>
    heading('helm/grapevine') +
    chart(
      'grapevine',
      injector.map(name => `injector/${name}.yaml`),
      noKeys,
    ),
  'deploy/base/dashboard.yaml': () =>
    heading('helm/grapevine') + chart('grapevine', ['monitoring/dashboard.yaml'], noKeys),
  'deploy/example-shop/storefront-ring.yaml': () =>
    heading('storefront.values.yaml') + chart('shop', ['ring.yaml'], shop('storefront')),
  'deploy/example-shop/catalogue-ring.yaml': () =>
    heading('catalogue.values.yaml') + chart('shop', ['ring.yaml'], shop('catalogue')),
  'deploy/example-shop/workloads.yaml': () =>
    heading('workloads.in.yaml with `grapevine inject`') +
    run(process.execPath, [
      'dist/main.js',
      'inject',
      '-f',
      'deploy/example-shop/workloads.in.yaml',
    ]),
  'deploy/prometheus/alerts.yaml': () =>
    readFileSync(join(root, 'helm/grapevine/files/alerts.yaml'), 'utf8'),
  'deploy/grafana/dashboard.json': () =>
    readFileSync(join(root, 'helm/grapevine/files/dashboard.json'), 'utf8'),
}

let stale = 0
for (const [path, make] of Object.entries(files)) {
  const wanted = make()
  if (wanted === read(path)) continue
  stale++
  if (check) console.error(`${path} is not what the charts render; run: npm run render`)
  else writeFileSync(join(root, path), wanted)
}
if (check && stale > 0) process.exit(1)

function read(path) {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return null
  }
}
