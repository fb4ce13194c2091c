/**
 * Gets or builds the other programs that `npm run test:peers` runs against, once per run. Debian's
 * packages are installed where that is allowed; Go programs are built into a cache outside the work
 * tree. What cannot be had is said in one line and handed to the tests as null.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'

const run = promisify(execFile)

/** Where every program is found, or null with the reason printed. */
export interface PeerPrograms {
  readonly goPeer: string | null
  readonly promtool: string | null
  readonly nginx: string | null
  readonly haproxy: string | null
  readonly caddy: string | null
}

declare module 'vitest' {
  export interface ProvidedContext {
    peers: PeerPrograms
  }
}

const cache =
  process.env.GRAPEVINE_PEER_CACHE ??
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'grapevine-peers')

export async function setup(project: TestProject): Promise<void> {
  mkdirSync(cache, { recursive: true })
  const peers: PeerPrograms = {
    promtool: await attempt('promtool', () => debianProgram('promtool', 'prometheus')),
    nginx: await attempt('nginx', () => debianProgram('nginx', 'nginx-light')),
    haproxy: await attempt('haproxy', () => debianProgram('haproxy', 'haproxy')),
    caddy: await attempt('caddy', () => debianProgram('caddy', 'caddy')),
    goPeer: await attempt('go-peer', buildGoPeer),
  }
  project.provide('peers', peers)
}

async function attempt(name: string, get: () => Promise<string>): Promise<string | null> {
  const started = Date.now()
  try {
    const path = await get()
    console.error(`peers: ${name} is ready (${((Date.now() - started) / 1000).toFixed(1)} s)`)
    return path
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
    console.error(`peers: SKIPPED: tests against ${name}, because: ${reason}`)
    return null
  }
}

function onPath(program: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/go/bin']
  return folders.map(folder => join(folder, program)).find(path => existsSync(path)) ?? null
}

/** A program from PATH, else from its Debian package. */
async function debianProgram(program: string, pack: string): Promise<string> {
  const present = onPath(program)
  if (present) return present
  await aptGet(['update'])
  await aptGet(['install', '--yes', '--no-install-recommends', pack])
  const installed = onPath(program)
  if (!installed) throw new Error(`the package ${pack} brings no ${program}`)
  return installed
}

async function aptGet(words: readonly string[]): Promise<void> {
  await run('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...words], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    maxBuffer: 1 << 26,
  })
}

/** The Go peer, built if need be; null, with the reason printed, where Go cannot be had. */
export function goPeerProgram(): Promise<string | null> {
  mkdirSync(cache, { recursive: true })
  return attempt('go-peer', buildGoPeer)
}

/** Builds test/interop/go-peer; the name in the cache is a hash of its sources. */
async function buildGoPeer(): Promise<string> {
  const folder = fileURLToPath(new URL('go-peer', import.meta.url))
  const hash = createHash('sha256')
  for (const name of readdirSync(folder).sort())
    if (/\.go$|^go\.(mod|sum)$/.test(name))
      hash.update(name).update(readFileSync(join(folder, name)))
  const target = join(cache, `go-peer-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(target)) return target
  const go = onPath('go') ?? (await debianProgram('go', 'golang-go'))
  await run(go, ['build', '-o', target, '.'], { cwd: folder, maxBuffer: 1 << 26 })
  return target
}
