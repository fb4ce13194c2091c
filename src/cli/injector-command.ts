/** `grapevine injector`: the mutating admission webhook, from its file to its last signal. */
import { readFile } from 'node:fs/promises'
import { formatFinding } from '../config/finding.js'
import { systemClock, systemEntropy } from '../gossip/system-clock.js'
import { ListenError } from '../http/server.js'
import { connectCluster } from '../injector/cluster.js'
import { Injector } from '../injector/injector.js'
import { type InjectorConfig, parseInjectorConfig } from '../injector/injector-config.js'
import { createLogger } from '../metrics/logger.js'
import { CommandError, exitStatus, type Host } from './host.js'

export interface InjectorFlags {
  readonly config?: string
}

export async function injector(host: Host, flags: InjectorFlags): Promise<number> {
  if (flags.config === undefined) {
    throw new CommandError('injector: --config FILE is required', exitStatus.usage)
  }
  const config = await configOf(flags.config)
  const { certificate } = config
  if (certificate === null) {
    throw new CommandError(`${flags.config}: certificate: says where it comes from, and is missing`)
  }
  const log = createLogger({
    level: config.logLevel,
    node: host.env.POD_NAME ?? 'injector',
  })
  const selfManaged = certificate.source === 'self-managed'
  const cluster =
    selfManaged || config.reportServices
      ? await connectCluster(selfManaged ? certificate : { namespace: '', secret: '', webhook: '' })
      : null
  let running: Injector
  try {
    const ports = { log, clock: systemClock, entropy: systemEntropy, cluster }
    running = await Injector.start(config, certificate, ports)
  } catch (error) {
    if (error instanceof ListenError) throw new CommandError(error.message)
    throw error
  }
  await untilTold(host)
  await running.stop()
  return exitStatus.ok
}

async function configOf(path: string): Promise<InjectorConfig> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${(error as Error).message}`)
  }
  const parsed = parseInjectorConfig(text, path)
  if (!parsed.ok) throw new CommandError(parsed.findings.map(formatFinding).join('\n'))
  return parsed.config
}

/** Resolves at the first signal to end; the second one ends the process at once. */
function untilTold(host: Host): Promise<void> {
  return new Promise(resolve => {
    let told = false
    const tell = () => {
      if (told) host.exit(exitStatus.failed)
      told = true
      resolve()
    }
    host.onSignal('SIGTERM', tell)
    host.onSignal('SIGINT', tell)
  })
}
