/** The texts behind a configuration path at one moment: a file, or a directory of YAML files. */
import { createHash } from 'node:crypto'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfigFile } from './documents.js'
import { textLengthMax } from './yaml-text.js'

/** Most files read of a directory. */
export const filesMax = 256

export interface Snapshot {
  /** By name; of a directory the `*.yaml` and `*.yml`, hidden ones left out. */
  readonly files: readonly ConfigFile[]
  /** Why nothing could be read; null when `files` is whole. */
  readonly error: string | null
  /** SHA-256 over names, texts and error: equal digests mean nothing has changed. */
  readonly digest: string
}

/** Never throws: what goes wrong is in `error`. */
export async function readSnapshot(path: string): Promise<Snapshot> {
  try {
    const info = await stat(path)
    const paths = info.isDirectory() ? await yamlFiles(path) : [path]
    const files: ConfigFile[] = []
    for (const name of paths) files.push({ name, text: await readText(name) })
    return snapshotOf(files, null)
  } catch (error) {
    return snapshotOf([], reasonOf(error, path))
  }
}

async function yamlFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder)
  const names = entries.filter(name => /^[^.].*\.ya?ml$/.test(name)).sort()
  if (names.length === 0) throw new SnapshotError(`${folder} holds no *.yaml file`)
  if (names.length > filesMax)
    throw new SnapshotError(`${folder} holds more than ${filesMax} files`)
  return names.map(name => join(folder, name))
}

class SnapshotError extends Error {}

/** Bounded even when the file grows while it is read. */
async function readText(path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const buffer = Buffer.allocUnsafe(Math.min((await file.stat()).size, textLengthMax) + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > textLengthMax) {
      throw new SnapshotError(`${path} is larger than ${textLengthMax} bytes`)
    }
    return buffer.toString('utf8', 0, length)
  } finally {
    await file.close()
  }
}

/** `error` is what kept `files` from being whole, or null. */
export function snapshotOf(files: readonly ConfigFile[], error: string | null): Snapshot {
  const hash = createHash('sha256')
  for (const { name, text } of files) hash.update(`${name.length}:${name}${text.length}:${text}`)
  return { files, error, digest: hash.update(`!${error ?? ''}`).digest('hex') }
}

function reasonOf(error: unknown, path: string): string {
  if (error instanceof SnapshotError) return error.message
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return `${path} does not exist`
  if (code === 'EACCES') return `${path} may not be read`
  return `${path} cannot be read: ${code ?? error}`
}
