/** `grapevine drain`: the preStop hook. Readiness turns 503 while everything is still served. */
import { AdminClient } from './admin-client.js'
import { exitStatus, type Host } from './host.js'
import type { AdminFlags } from './members.js'

export interface DrainFlags extends AdminFlags {
  /** How long to wait afterwards, in milliseconds, so that load balancers notice; 0: not at all. */
  readonly wait: number
}

export async function drain(host: Host, flags: DrainFlags): Promise<number> {
  const answer = await new AdminClient(flags.admin).post('/drain')
  if (flags.wait > 0) await new Promise(resolve => setTimeout(resolve, flags.wait))
  const text = flags.output === 'json' ? JSON.stringify(answer ?? { draining: true }) : 'draining'
  host.stdout.write(`${text}\n`)
  return exitStatus.ok
}
