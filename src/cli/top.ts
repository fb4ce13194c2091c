/** `grapevine top`: the keys with most hits or denials, as a running sidecar sees them. */
import { AdminClient } from './admin-client.js'
import { exitStatus, type Host } from './host.js'
import type { AdminFlags } from './members.js'
import { type Column, textTable } from './text-table.js'

export interface TopFlags extends AdminFlags {
  readonly rule?: string
  readonly by: 'denied' | 'hits'
  readonly count: number
}

/** The part of the admin answer that is shown. */
interface KeyRow {
  readonly rule: string
  readonly hash: string
  readonly key?: readonly string[] | null
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  readonly scarce: boolean
  readonly hits: number
  readonly denied: number
  readonly own: object | null
  readonly peers: readonly object[]
}

const columns: readonly Column<KeyRow>[] = [
  { title: 'RULE', align: 'left', value: row => row.rule },
  { title: 'KEY', align: 'left', value: row => row.key?.join(' | ') ?? row.hash },
  { title: 'LIMIT', align: 'right', value: row => `${row.limit}/${row.windowMs / 1000}s` },
  { title: 'REMAINING', align: 'right', value: row => String(row.remaining) },
  { title: 'HITS', align: 'right', value: row => String(row.hits) },
  { title: 'DENIED', align: 'right', value: row => String(row.denied) },
  { title: 'SCARCE', align: 'left', value: row => (row.scarce ? 'yes' : '') },
  {
    title: 'PODS',
    align: 'right',
    value: row => String(row.peers.length + (row.own === null ? 0 : 1)),
  },
]

export async function top(host: Host, flags: TopFlags): Promise<number> {
  const query = new URLSearchParams({ by: flags.by, n: String(flags.count) })
  if (flags.rule !== undefined) query.set('rule', flags.rule)
  const answer = await new AdminClient(flags.admin).get(`/limits/top?${query}`)
  if (flags.output === 'json') host.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
  else {
    const rows = (answer as { keys: KeyRow[] }).keys
    host.stdout.write(`${textTable(columns, rows).join('\n')}\n`)
    if (rows.length === 0) host.stderr.write('no key has been asked for yet\n')
  }
  return exitStatus.ok
}
