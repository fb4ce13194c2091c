/** Runs the helm that `peers-setup.ts` got, and reads what it renders. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

export const root = fileURLToPath(new URL('../../', import.meta.url))

export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [key: string]: unknown
}

export interface Ran {
  readonly status: number | null
  readonly out: string
  readonly err: string
}

export function helm(program: string, args: readonly string[]): Ran {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  if (error) throw error
  // The library stands beside the chart as a symbolic link, which helm tells about each time.
  const err = stderr
    .split('\n')
    .filter(line => !line.includes('symbolic link'))
    .join('\n')
  return { status, out: stdout, err }
}

/** Every object that `helm template` makes of the chart at `path`; throws helm's own words. */
export function render(
  program: string,
  path: string,
  args: readonly string[] = [],
): KubernetesObject[] {
  const { status, out, err } = helm(program, [
    'template',
    'grapevine',
    path,
    '--namespace',
    'shop',
    ...args,
  ])
  if (status !== 0) throw new Error(err)
  return objectsIn(out)
}

export function objectsIn(text: string): KubernetesObject[] {
  return parseAllDocuments(text).flatMap(document => {
    const [error] = document.errors
    if (error) throw error
    const value = document.toJS() as KubernetesObject | null
    return value === null ? [] : [value]
  })
}

export function only(
  objects: readonly KubernetesObject[],
  kind: string,
  name?: string,
): KubernetesObject {
  const found = objects.filter(
    object => object.kind === kind && (name === undefined || object.metadata.name === name),
  )
  if (found.length !== 1) throw new Error(`${found.length} objects ${kind} ${name ?? ''}`)
  return found[0]!
}
