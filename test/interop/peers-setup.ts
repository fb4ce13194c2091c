/**
 * Gets or builds the other programs that `npm run test:peers` runs against, once per run. Debian's
 * packages are installed where that is allowed; Go programs are built into a cache outside the work
 * tree. What cannot be had is said in one line and handed to the tests as null.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { getHelm } from '../chart/get-helm.js'
import {
  getKubernetesApi,
  type KubernetesRelease,
  kubernetesReleases,
} from '../chart/get-kubernetes-api.js'

const run = promisify(execFile)

/** Where every program is found, or null with the reason printed. */
export interface PeerPrograms {
  readonly goPeer: string | null
  readonly promtool: string | null
  readonly nginx: string | null
  readonly haproxy: string | null
  readonly caddy: string | null
  readonly helm: string | null
  readonly etcd: string | null
  /** Folder with `kube-apiserver` and `kubectl`, of one version. */
  readonly kubernetes: string | null
  /** OpenAPI descriptions of Kubernetes, by release. */
  readonly kubernetesApis: Readonly<Record<KubernetesRelease, string | null>>
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
    etcd: await attempt('etcd', () => debianProgram('etcd', 'etcd-server')),
    kubernetes: await attempt('kube-apiserver', buildKubernetes),
    helm: await attempt('helm', () => getHelm(cache)),
    kubernetesApis: await getKubernetesApis(),
  }
  project.provide('peers', peers)
}

async function getKubernetesApis(): Promise<PeerPrograms['kubernetesApis']> {
  const found: [string, string | null][] = []
  for (const release of kubernetesReleases) {
    const get = () => getKubernetesApi(cache, release, goProgram)
    found.push([release, await attempt(`the API of Kubernetes ${release}`, get)])
  }
  return Object.fromEntries(found) as PeerPrograms['kubernetesApis']
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
    // RUNLEVEL keeps a package from starting its service, which no test wants.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
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
  const target = join(cache, `go-peer-${hashOfModule(folder)}`)
  if (existsSync(target)) return target
  await goBuild(folder, ['-o', target, '.'])
  return target
}

/**
 * Builds kube-apiserver and kubectl from the Kubernetes module, whose staging modules
 * test/chart/kube-apiserver/go.mod pins to the same release: 1.31 is the first without cloud
 * providers in it. Takes four to eight minutes of two cores, once for each version.
 */
async function buildKubernetes(): Promise<string> {
  const folder = fileURLToPath(new URL('../chart/kube-apiserver', import.meta.url))
  const target = join(cache, `kubernetes-${hashOfModule(folder)}`)
  if (existsSync(target)) return target
  const release = /k8s\.io\/kubernetes (v1\.(\d+)\.\d+)/.exec(
    readFileSync(join(folder, 'go.mod'), 'utf8'),
  )
  if (release === null) throw new Error(`${folder}/go.mod names no release of Kubernetes`)
  // Clients, helm among them, ask the server for its version and refuse one without a number.
  const [, version, minor] = release
  const values = { gitVersion: version, gitMajor: '1', gitMinor: minor, gitTreeState: 'clean' }
  const named = Object.entries(values).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  )
  const fresh = `${target}.${process.pid}`
  const programs = ['kube-apiserver', 'kubectl'].map(name => `k8s.io/kubernetes/cmd/${name}`)
  console.error('peers: building kube-apiserver and kubectl, which takes some minutes')
  try {
    const flags = ['-trimpath', '-ldflags', `-s -w ${named.join(' ')}`, '-o', `${fresh}/`]
    mkdirSync(fresh)
    await goBuild(folder, [...flags, ...programs], { CGO_ENABLED: '0' })
    renameSync(fresh, target)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return target
}

/** Names a build in the cache by what it is made of. */
function hashOfModule(folder: string): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(folder).sort())
    if (/\.go$|^go\.(mod|sum)$/.test(name))
      hash.update(name).update(readFileSync(join(folder, name)))
  return hash.digest('hex').slice(0, 16)
}

function goProgram(): Promise<string> {
  return debianProgram('go', 'golang-go')
}

/** At the lowest priority: a build of minutes must not starve what runs beside it. */
async function goBuild(
  folder: string,
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  await run('nice', ['-n', '19', await goProgram(), 'build', ...words], {
    cwd: folder,
    env: { ...process.env, ...more },
    maxBuffer: 1 << 26,
  })
}
