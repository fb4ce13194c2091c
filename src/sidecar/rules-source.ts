/** Where rules come from: a file or directory, or a ConfigMap by way of the API. */
import { readSnapshot, type Snapshot } from '../config/snapshot.js'
import { watchPath } from '../config/watch.js'
import type { ReflectorStats } from '../discovery/reflector.js'

export interface RulesSource {
  /** As messages name it. */
  readonly name: string
  /** What stands there now. Never rejects: what goes wrong is in the snapshot. */
  read(): Promise<Snapshot>
  /** Tells of new content; `digest` is of what is in use. Content in use may be told of again. */
  watch(onChange: (snapshot: Snapshot) => void, digest: string | null): { close(): void }
  /** How the API is doing, where the source is one of its objects. */
  stats?(): ReflectorStats
}

export function fileSource(path: string): RulesSource {
  return {
    name: path,
    read: () => readSnapshot(path),
    watch: (onChange, digest) => watchPath(path, onChange, { digest }),
  }
}
