/** Configuration from files: reads what `parse.ts` judges. */
import { hostname } from 'node:os'
import { type RulesContext, type RulesResult, unknownContext } from './assemble-rules.js'
import type { Environment } from './expand.js'
import type { Finding } from './finding.js'
import type { Flags } from './overrides.js'
import { parseRules, parseSidecar, type SidecarResult } from './parse.js'
import { readSnapshot, type Snapshot } from './snapshot.js'

export interface LoadSidecarOptions {
  readonly env?: Environment
  readonly flags?: Flags
}

/** A result and the digest of what it was made from, for `watchPath` to compare with. */
export type Loaded<T> = T & { readonly digest: string }

/** The sidecar file at `path`. Never throws; an unreadable file is a finding. */
export async function loadSidecarConfig(
  path: string,
  options: LoadSidecarOptions = {},
): Promise<Loaded<SidecarResult>> {
  const snapshot = await readSnapshot(path)
  return { ...sidecarOf(snapshot, path, options), digest: snapshot.digest }
}

/** What a snapshot of the sidecar file means. */
export function sidecarOf(
  snapshot: Snapshot,
  path: string,
  options: LoadSidecarOptions = {},
): SidecarResult {
  if (snapshot.error !== null) return { ok: false, findings: [unreadable(path, snapshot.error)] }
  const [file, second] = snapshot.files
  if (file === undefined || second !== undefined) {
    return { ok: false, findings: [unreadable(path, 'expected one file, got a directory')] }
  }
  const { env = {}, flags = {} } = options
  return parseSidecar(file, { env, flags, hostname: hostname() })
}

/** The rules in a file, or in all YAML files of a directory. Never throws. */
export async function loadRules(
  path: string,
  context: RulesContext = unknownContext,
): Promise<Loaded<RulesResult>> {
  const snapshot = await readSnapshot(path)
  return { ...rulesOf(snapshot, path, context), digest: snapshot.digest }
}

/** What a snapshot of a rules path means. */
export function rulesOf(
  snapshot: Snapshot,
  path: string,
  context: RulesContext = unknownContext,
): RulesResult {
  if (snapshot.error !== null) return { ok: false, findings: [unreadable(path, snapshot.error)] }
  return parseRules(snapshot.files, context)
}

export function unreadable(file: string, message: string): Finding {
  return { level: 'error', code: 'unreadable', file, line: 0, column: 0, path: '', message }
}
