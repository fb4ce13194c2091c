/**
 * Brings a clone into a state that runs: dependencies as the lock file says, sources compiled.
 * Node builtins only, since it runs before anything is installed. Silent when nothing is to be
 * done; one line on stderr for each thing it does.
 *
 *   node .ci/setup.mjs                 install and compile what is out of date
 *   node .ci/setup.mjs --install-only  dependencies only
 *   node .ci/setup.mjs --build         compile even if nothing changed
 *
 * Several may run at once (a test run beside a demo): a lock directory lets one work while the
 * others wait, and compiled files are replaced one by one, so a running process keeps what it has.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = join(root, 'node_modules')
const lockFile = join(root, 'package-lock.json')
const installStamp = join(modules, '.grapevine-install')
const dist = join(root, 'dist')
const buildStamp = join(dist, '.build')

/** How long to wait for another run; above any honest `npm ci`. */
const lockWaitMs = 600_000
/** A lock directory without a readable owner is taken over after this. */
const ownerlessLockMs = 10_000

const flags = new Set(process.argv.slice(2))
for (const flag of flags) {
  if (flag !== '--install-only' && flag !== '--build') fail(`unknown flag ${flag}`, 2)
}

if (needsInstall() || (!flags.has('--install-only') && needsBuild())) {
  const release = acquireLock()
  let complaint = null
  try {
    complaint = needsInstall() ? install() : null
    if (complaint === null && !flags.has('--install-only') && needsBuild()) complaint = build()
  } finally {
    release()
  }
  if (complaint !== null) fail(complaint, 1)
}

function needsInstall() {
  const wanted = sha256(readFileSync(lockFile))
  if (readText(installStamp) === wanted) return false
  if (!installedMatchesLock()) return true
  // Somebody ran `npm ci` by hand; there is nothing left to do but to remember it.
  writeFileSync(installStamp, wanted)
  return false
}

/** Whether npm's own record of `node_modules` lists every package of the lock file, same versions. */
function installedMatchesLock() {
  const record = readText(join(modules, '.package-lock.json'))
  if (record === null) return false
  const installed = JSON.parse(record).packages
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages
  return Object.entries(wanted).every(
    ([path, entry]) =>
      path === '' || entry.optional === true || installed[path]?.version === entry.version,
  )
}

/** Returns a complaint, or null when all went well. */
function install() {
  say('installing dependencies (npm ci)')
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const npmScript = process.env.npm_execpath
  const [command, commandArgs] = npmScript?.endsWith('.js')
    ? [process.execPath, [npmScript, ...args]]
    : ['npm', args]
  if (!succeeds(command, commandArgs)) return 'npm ci failed'
  writeFileSync(installStamp, sha256(readFileSync(lockFile)))
  return null
}

function needsBuild() {
  return flags.has('--build') || readText(buildStamp) !== sourcesFingerprint()
}

/** Names, sizes and times of everything the compiler reads, and the compiler's version. */
function sourcesFingerprint() {
  const files = [
    ...listFiles(join(root, 'src')),
    join(root, 'tsconfig.json'),
    join(root, 'package.json'),
    lockFile,
  ]
  const lines = files.map(file => {
    const stat = statSync(file, { throwIfNoEntry: false })
    return `${relative(root, file)} ${stat?.size} ${stat?.mtimeMs}`
  })
  return sha256(lines.join('\n'))
}

/** Returns a complaint, or null when all went well. */
function build() {
  say('compiling TypeScript into dist/')
  const fingerprint = sourcesFingerprint()
  // Beside dist, so that the source maps' relative paths hold after the move.
  const fresh = join(root, 'dist.tmp')
  rmSync(fresh, { recursive: true, force: true })
  try {
    const compiler = join(modules, 'typescript', 'bin', 'tsc')
    const args = [compiler, '-p', root, '--outDir', fresh]
    if (!succeeds(process.execPath, args)) return 'compilation failed'
    replaceTree(fresh, dist)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  chmodSync(join(dist, 'main.js'), 0o755)
  writeFileSync(buildStamp, fingerprint)
  return null
}

/** Moves every file of `from` over its namesake in `to`, then removes what `from` does not have. */
function replaceTree(from, to) {
  const kept = new Set([buildStamp])
  for (const file of listFiles(from)) {
    const target = join(to, relative(from, file))
    kept.add(target)
    mkdirSync(dirname(target), { recursive: true })
    renameSync(file, target)
  }
  for (const file of listFiles(to)) {
    if (!kept.has(file)) rmSync(file, { force: true })
  }
}

/** Takes the lock directory, waiting for a live owner, and returns what gives it back. */
function acquireLock() {
  const name = `grapevine-setup-${userInfo().uid}-${sha256(root).slice(0, 16)}.lock`
  const lock = join(tmpdir(), name)
  const owner = join(lock, 'pid')
  const deadline = Date.now() + lockWaitMs
  let told = false
  for (;;) {
    try {
      mkdirSync(lock)
      writeFileSync(owner, String(process.pid))
      return () => rmSync(lock, { recursive: true, force: true })
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (isAbandoned(lock, owner)) {
      rmSync(lock, { recursive: true, force: true })
      continue
    }
    if (Date.now() > deadline) fail(`another setup holds ${lock}; remove it if none is running`, 1)
    if (!told) say('waiting for another setup of this clone to finish')
    told = true
    sleepMs(100)
  }
}

function isAbandoned(lock, owner) {
  const pid = Number(readText(owner))
  if (!(pid > 0)) {
    const stat = statSync(lock, { throwIfNoEntry: false })
    return stat !== undefined && Date.now() - stat.mtimeMs > ownerlessLockMs
  }
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return error.code === 'ESRCH'
  }
}

function succeeds(command, args) {
  // Whatever a child prints is a message here: stdout belongs to the program started afterwards.
  const result = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (result.error) say(result.error.message)
  return result.status === 0
}

function listFiles(directory) {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath ?? entry.path, entry.name))
    .sort()
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

function sha256(data) {
  return createHash('sha256').update(data).digest('hex')
}

function sleepMs(durationMs) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs)
}

function say(text) {
  process.stderr.write(`grapevine setup: ${text}\n`)
}

function fail(text, status) {
  say(text)
  process.exit(status)
}
