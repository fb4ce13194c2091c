/** `grapevine run`: the sidecar, from its files to its last signal. */
import { type Finding, formatFinding } from '../config/finding.js'
import { loadSidecarConfig } from '../config/load.js'
import { systemClock, systemEntropy, systemRandom } from '../gossip/system-clock.js'
import { ListenError } from '../http/server.js'
import { createLogger } from '../metrics/logger.js'
import { makeLiveRules } from '../sidecar/make-live-rules.js'
import { StartError } from '../sidecar/start-error.js'
import { Sidecar } from '../sidecar.js'
import { CommandError, exitStatus, type Host } from './host.js'

export interface RunFlags {
  readonly config?: string
  readonly rules?: string
  readonly stdinLifeline?: boolean
  /** By flag name without dashes, as `config/overrides.ts` lists them. */
  readonly overrides: Readonly<Record<string, string | undefined>>
}

/** How long after a failed stop the process may still hang, in milliseconds. */
const exitGraceMs = 900

/** Resolves once the sidecar has stopped; a start that fails is a `CommandError`. */
export async function run(host: Host, flags: RunFlags): Promise<number> {
  const startWallMs = systemClock.wallMs()
  if (flags.config === undefined) {
    throw new CommandError('run: --config FILE is required', exitStatus.usage)
  }
  const load = { env: host.env, flags: flags.overrides }
  const loaded = await loadSidecarConfig(flags.config, load)
  if (!loaded.ok) throw invalid(loaded.findings)
  const { config } = loaded
  const log = createLogger({ level: config.log.level, node: config.node.name })
  for (const finding of loaded.warnings) log.warn(formatFinding(finding))
  const shadowed = flags.rules !== undefined || config.rulesFrom !== null
  if (shadowed && loaded.inlineRules !== null) {
    log.warn('rules in the sidecar file are not used: others are given (--rules or rulesFrom)')
  }
  if (flags.rules !== undefined && config.rulesFrom !== null) {
    log.warn({ rules: flags.rules }, '--rules is given: rulesFrom is not used')
  }
  const rules = makeLiveRules(
    { config, rulesPath: flags.rules ?? null, configPath: flags.config, load },
    { log, clock: systemClock, random: systemRandom },
  )
  const outcome = await rules.reload()
  if (!outcome.ok && config.onStartupError === 'fail') {
    throw new CommandError(
      `invalid rules, and onStartupError is fail\n${outcome.errors.join('\n')}`,
    )
  }
  if (!outcome.ok) log.error('nothing is limited until the rules are mended (onStartupError: open)')
  const ports = { log, clock: systemClock, random: systemRandom, entropy: systemEntropy }
  let sidecar: Sidecar
  try {
    sidecar = await Sidecar.start({ config, rules, startWallMs }, ports)
  } catch (error) {
    if (error instanceof ListenError || error instanceof StartError) {
      log.fatal(error.message)
      throw new CommandError(error.message)
    }
    throw error
  }
  log.info({ addresses: sidecar.addresses }, 'listening')
  host.onSignal('SIGHUP', () => void sidecar.reload())
  await untilTold(host, flags.stdinLifeline === true)
  log.info('stopping')
  setTimeout(() => host.exit(exitStatus.failed), config.drainTimeoutMs + exitGraceMs).unref()
  await sidecar.stop()
  return exitStatus.ok
}

/** Resolves at the first SIGTERM or SIGINT; the second one ends the process at once. */
function untilTold(host: Host, stdinLifeline: boolean): Promise<void> {
  return new Promise(resolve => {
    let told = false
    const tell = () => {
      if (told) host.exit(exitStatus.failed)
      told = true
      resolve()
    }
    host.onSignal('SIGTERM', tell)
    host.onSignal('SIGINT', tell)
    if (stdinLifeline) host.onStdinEnd(resolve)
  })
}

function invalid(findings: readonly Finding[]): CommandError {
  return new CommandError(`invalid configuration\n${findings.map(formatFinding).join('\n')}`)
}
