/**
 * Kubernetes' OpenAPI description of single releases, out of the Kubernetes Go module: the oldest
 * release with native sidecars, the one that the API server tests run, and the newest.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** SHA-256 of api/openapi-spec/swagger.json, by release. */
const hashes = {
  'v1.29.15': '86672d934e8b8b4c494aa06e665373cd13fa2a8d39ce36abd7588b2c77c92caa',
  'v1.31.14': 'ddcb3d5c3d85849f1fadb56387d3a7bf44712da291e5bd08b34df4e8a4247f8d',
  'v1.37.2': '465276aedf437726de5a6ed23a41b86d78bb0d347edf251a755ae26a93cdd8a6',
} as const

export type KubernetesRelease = keyof typeof hashes

export const kubernetesReleases = Object.keys(hashes) as readonly KubernetesRelease[]

/** Path of the release's swagger.json in `cache`, which is filled with the `go` program if need be. */
export async function getKubernetesApi(
  cache: string,
  release: KubernetesRelease,
  go: () => Promise<string>,
): Promise<string> {
  const target = join(cache, `kubernetes-api-${release}.json`)
  if (existsSync(target)) return target
  const work = await mkdtemp(join(cache, 'kubernetes-api-'))
  try {
    const module = await download(release, work, await go())
    const fresh = join(work, 'swagger.json')
    copyFileSync(join(module, 'api/openapi-spec/swagger.json'), fresh)
    const digest = createHash('sha256').update(readFileSync(fresh)).digest('hex')
    if (digest !== hashes[release]) throw new Error(`${release} is not the API it should be`)
    // In one step, so that another run never sees half of it.
    renameSync(fresh, target)
    return target
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/**
 * Folder of the module's files, below `work`. 4 MB of its 110 are wanted: a module cache of its own
 * goes away with the rest, for which it must be writable.
 */
async function download(release: KubernetesRelease, work: string, go: string): Promise<string> {
  const env = { ...process.env, GOMODCACHE: join(work, 'modules'), GOFLAGS: '-modcacherw' }
  const words = ['mod', 'download', '-json', `k8s.io/kubernetes@${release}`]
  // A failure is told in the answer, too, and better than by the exit status.
  const { stdout } = await run(go, words, { cwd: work, env }).catch(
    (error: Error & { readonly stdout?: string }) => {
      if (error.stdout?.startsWith('{')) return { stdout: error.stdout }
      throw error
    },
  )
  const { Dir: folder, Error: reason } = JSON.parse(stdout) as { Dir?: string; Error?: string }
  if (folder === undefined) throw new Error(reason ?? 'go told no folder')
  return folder
}
