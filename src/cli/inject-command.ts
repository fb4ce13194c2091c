/** `grapevine inject`: manifests in, the same with the sidecar out, as the webhook would do. */
import { readFile } from 'node:fs/promises'
import { formatFinding } from '../config/finding.js'
import { injectDocuments } from '../injector/inject-documents.js'
import { parseInjectorConfig } from '../injector/injector-config.js'
import { type SidecarSettings, settingsDefaults } from '../injector/sidecar-settings.js'
import { CommandError, exitStatus, type Host } from './host.js'

export interface InjectFlags {
  readonly filename?: string
  readonly config?: string
  readonly image?: string
  readonly ring?: string
}

export async function inject(host: Host, flags: InjectFlags): Promise<number> {
  if (flags.filename === undefined) {
    throw new CommandError('inject: -f FILE or -f - is required', exitStatus.usage)
  }
  const settings = await settingsOf(flags)
  const [text, name] =
    flags.filename === '-'
      ? [await host.readStdin(), 'standard input']
      : [await textOf(flags.filename), flags.filename]
  const result = injectDocuments(text, name, settings)
  if (!result.ok) throw new CommandError(result.error)
  for (const line of [...result.notes, ...result.warnings.map(text => `warning: ${text}`)]) {
    host.stderr.write(`${line}\n`)
  }
  for (const failure of result.failures) host.stderr.write(`error: ${failure}\n`)
  // Nothing goes to stdout that would be applied as if it were whole.
  if (result.failures.length > 0) return exitStatus.failed
  host.stdout.write(result.text)
  return exitStatus.ok
}

async function settingsOf(flags: InjectFlags): Promise<SidecarSettings> {
  let settings = settingsDefaults
  if (flags.config !== undefined) {
    const parsed = parseInjectorConfig(await textOf(flags.config), flags.config)
    if (!parsed.ok) throw new CommandError(parsed.findings.map(formatFinding).join('\n'))
    settings = parsed.config.sidecar
  }
  return {
    ...settings,
    ...(flags.image === undefined ? {} : { image: flags.image }),
    ...(flags.ring === undefined ? {} : { ring: flags.ring }),
  }
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${(error as Error).message}`)
  }
}
