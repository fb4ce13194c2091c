/** `grapevine check`: every finding in the files, one per line. */
import { checkFiles } from '../config/check.js'
import { formatFinding } from '../config/finding.js'
import { exitStatus, type Host } from './host.js'

export async function check(host: Host, files: readonly string[]): Promise<number> {
  const { ok, findings } = await checkFiles(files, { env: host.env })
  for (const finding of findings) host.stderr.write(`${formatFinding(finding)}\n`)
  if (ok) host.stdout.write(`${files.join(', ')}: valid\n`)
  return ok ? exitStatus.ok : exitStatus.failed
}
