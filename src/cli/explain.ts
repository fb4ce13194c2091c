/**
 * `grapevine explain`: what a running sidecar would say to a request, and why; consumes nothing.
 */
import type { Explanation, OriginPart } from '../core-types.js'
import { AdminClient } from './admin-client.js'
import { CommandError, exitStatus, type Host } from './host.js'
import type { AdminFlags } from './members.js'
import { plain } from './text-table.js'

/** The admin answer: the core's, with a key's parts told apart. */
interface ExplainAnswer extends Omit<Explanation, 'rules'> {
  readonly rules: readonly (Omit<Explanation['rules'][number], 'key'> & {
    readonly key: {
      readonly hash: string
      /** Where the sidecar says `revealKeys`. */
      readonly key?: readonly string[]
      readonly own: OriginPart | null
      readonly peers: readonly OriginPart[]
    } | null
  })[]
}

export interface ExplainFlags extends AdminFlags {
  readonly method: string
  /** `name: value`, as curl takes them. */
  readonly header: readonly string[]
  readonly ip?: string
  readonly host?: string
}

export async function explain(host: Host, path: string, flags: ExplainFlags): Promise<number> {
  const request: Record<string, unknown> = {
    method: flags.method.toUpperCase(),
    path,
    headers: parseHeaders(flags.header),
  }
  if (flags.ip !== undefined) request.ip = flags.ip
  if (flags.host !== undefined) request.host = flags.host
  const answer = await new AdminClient(flags.admin).post('/explain', request)
  const text =
    flags.output === 'json'
      ? JSON.stringify(answer, null, 2)
      : explanationLines(answer as ExplainAnswer).join('\n')
  host.stdout.write(`${text}\n`)
  return exitStatus.ok
}

/** Repeated names are kept as a list, in order. */
export function parseHeaders(lines: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim().toLowerCase()
    if (colon < 1 || name === '') {
      throw new CommandError(`--header: expected "name: value", got "${line}"`, exitStatus.usage)
    }
    const value = line.slice(colon + 1).trim()
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return headers
}

export function explanationLines(explanation: ExplainAnswer): string[] {
  const verdict = explanation.allowed ? 'would be allowed' : 'would be denied'
  const lines = [`${verdict} (${plain(explanation.reason)})`]
  for (const rule of explanation.rules) {
    const mark = rule.matched ? '+' : '-'
    lines.push(`${mark} ${plain(rule.rule)}: ${plain(rule.because)}`)
    if (rule.verdict !== null) {
      const { allowed, remaining, limit, retryAfterMs } = rule.verdict
      const retry = allowed ? '' : `, retry after ${waitText(retryAfterMs)}`
      lines.push(`    ${allowed ? 'allows' : 'denies'}: ${leftText(remaining, limit)}${retry}`)
    }
    if (rule.key !== null) lines.push(`    key: ${keyText(rule.key)}`)
    else if (rule.verdict !== null) lines.push('    key: not seen yet, so nothing is used')
    if (rule.key?.own) lines.push(`    this pod: ${partText(rule.key.own)}`)
    for (const part of rule.key?.peers ?? []) {
      const who = part.node === null ? part.origin : plain(part.node)
      lines.push(`    ${who}: ${partText(part)}, heard of ${Math.round(part.ageMs)} ms ago`)
    }
  }
  return lines
}

function keyText({
  hash,
  key,
}: {
  readonly hash: string
  readonly key?: readonly string[]
}): string {
  return key === undefined ? plain(hash) : `${plain(hash)} (${key.map(plain).join(', ')})`
}

/** A bucket may hold more than one window's worth. */
function leftText(remaining: number, limit: number): string {
  return remaining > limit ? `${remaining} left, limit ${limit}` : `${remaining} of ${limit} left`
}

/** From ten seconds on nobody counts milliseconds. */
function waitText(ms: number): string {
  return ms < 10_000 ? `${ms} ms` : `${Math.ceil(ms / 1000)} s`
}

function partText(part: OriginPart): string {
  return `used ${part.consumed - part.returned}, offered ${part.offered}`
}
