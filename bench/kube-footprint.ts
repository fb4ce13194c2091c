/**
 * What discovery through the Kubernetes API costs a sidecar: start time and idle memory, from compiled
 * files and from the image's bundle, with `discovery.dns` and with `discovery.kubernetes` against a
 * stand-in for the API. Prints the table in docs/operations.md.
 *
 *   node .ci/bundle.mjs /tmp/bundle && node --import tsx bench/kube-footprint.ts /tmp/bundle
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SidecarProcess } from '../src/cli/demo/sidecar-process.js'
import { median } from './median.js'

const rounds = 5
const idleMs = 5_000

const bundle = process.argv[2]
if (bundle === undefined) throw new Error('usage: kube-footprint.ts BUNDLE')
const directory = mkdtempSync(join(tmpdir(), 'grapevine-footprint-'))
const api = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  // A watch stays open and says nothing, as for most of a pod's life.
  if (request.url?.includes('watch=true')) response.writeHead(200).flushHeaders()
  else response.end('{"metadata":{"resourceVersion":"1"},"items":[]}')
})
await new Promise<void>(done => api.listen(0, '127.0.0.1', done))
const server = `http://127.0.0.1:${(api.address() as AddressInfo).port}`
const kubeconfig = join(directory, 'kubeconfig')
writeFileSync(
  kubeconfig,
  JSON.stringify({
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'shop' } }],
    users: [{ name: 'u', user: { token: 't' } }],
  }),
)

const programs = {
  'compiled files': fileURLToPath(new URL('../dist/main.js', import.meta.url)),
  'bundle (image)': join(resolve(bundle), 'grapevine.mjs'),
}
const discoveries = {
  dns: '{ dns: localhost }',
  kubernetes: '{ kubernetes: { service: grapevine-gossip } }',
}

console.log('| program | discovery | start, ms | CPU until started, ms | idle RSS, MiB |')
console.log('| --- | --- | --- | --- | --- |')
for (const [program, path] of Object.entries(programs)) {
  for (const [discovery, text] of Object.entries(discoveries)) {
    const results = []
    for (let round = 0; round < rounds; round += 1) results.push(await measure(path, text))
    const start = median(results.map(({ startMs }) => startMs))
    const cpu = median(results.map(({ cpuMs }) => cpuMs))
    const memory = median(results.map(({ rssMiB }) => rssMiB))
    const cells = [start, cpu, memory].map(value => value.toFixed(0))
    console.log(`| ${[program, discovery, ...cells].join(' | ')} |`)
  }
}
api.close()
api.closeAllConnections()
rmSync(directory, { recursive: true, force: true })

async function measure(path: string, discovery: string) {
  const file = join(directory, 'sidecar.yaml')
  const any = '{ listen: "127.0.0.1:0" }'
  writeFileSync(
    file,
    `version: 1
node: { name: pod }
proxy: { listen: "127.0.0.1:0", upstream: "http://127.0.0.1:9" }
api: ${any}
telemetry: ${any}
admin: ${any}
gossip: { bind: "127.0.0.1:0" }
discovery: ${discovery}
rules: [{ name: api, key: [ip], limit: 100/1s }]
`,
  )
  const startedMs = performance.now()
  const env = { PATH: process.env.PATH, HOME: directory, KUBECONFIG: kubeconfig }
  const command = { command: process.execPath, args: [path], env }
  const pod = await SidecarProcess.start('pod', command, ['--config', file])
  const startMs = performance.now() - startedMs
  // Fields 14 and 15, in hundredths of a second; those before hold no space but the program's name.
  const fields = readFileSync(`/proc/${pod.pid}/stat`, 'utf8')
    .replace(/\(.*\)/, 'name')
    .split(' ')
  const cpuMs = (Number(fields[13]) + Number(fields[14])) * 10
  await new Promise(done => setTimeout(done, idleMs))
  const status = readFileSync(`/proc/${pod.pid}/status`, 'utf8')
  const rssMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
  await pod.stop()
  return { startMs, cpuMs, rssMiB }
}
