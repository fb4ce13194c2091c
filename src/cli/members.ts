/** `grapevine members`: who is in the fleet, as a running sidecar sees it. */
import { AdminClient } from './admin-client.js'
import { exitStatus, type Host } from './host.js'
import { type Column, textTable } from './text-table.js'

export interface AdminFlags {
  readonly admin: string
  readonly output: 'text' | 'json'
}

interface MemberRow {
  readonly name: string
  readonly address: string
  readonly state: string
  readonly self: boolean
  readonly meta: {
    readonly version?: string
    readonly start?: number
    readonly draining?: boolean
  } | null
}

const columns: readonly Column<MemberRow>[] = [
  { title: 'NAME', align: 'left', value: row => (row.self ? `${row.name} *` : row.name) },
  { title: 'ADDRESS', align: 'left', value: row => row.address },
  {
    title: 'STATE',
    align: 'left',
    value: row => (row.meta?.draining ? `${row.state}, draining` : row.state),
  },
  { title: 'VERSION', align: 'left', value: row => row.meta?.version ?? '-' },
  {
    title: 'STARTED',
    align: 'left',
    value: row => (row.meta?.start ? new Date(row.meta.start).toISOString() : '-'),
  },
]

export async function members(host: Host, flags: AdminFlags): Promise<number> {
  const answer = await new AdminClient(flags.admin).get('/members')
  if (flags.output === 'json') host.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
  else {
    const rows = (answer as { members: MemberRow[] }).members
    host.stdout.write(`${textTable(columns, rows).join('\n')}\n`)
  }
  return exitStatus.ok
}
