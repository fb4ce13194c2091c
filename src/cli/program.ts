/**
 * The command line: which commands there are, what they take, and what they end with. Each
 * command's code is loaded when it is asked for, so that `version` does not wait for a web server.
 */
import { Command, CommanderError, Option } from 'commander'
import { overrides } from '../config/overrides.js'
import { version } from '../version.js'
import { parseDurationMs, parseWholeNumber } from './duration.js'
import { CommandError, exitStatus, type Host } from './host.js'
import type { RunFlags } from './run.js'

const defaultAdmin = 'http://127.0.0.1:7991'

/** Runs one command and resolves with the exit status; messages went to stderr. */
export async function runCommandLine(host: Host): Promise<number> {
  let status: number = exitStatus.ok
  const program = buildProgram(host, async command => {
    status = await command()
  })
  try {
    await program.parseAsync([...host.args], { from: 'user' })
    return status
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitStatus.usage
    if (error instanceof CommandError) {
      host.stderr.write(`grapevine: ${error.message}\n`)
      return error.status
    }
    throw error
  }
}

type Launch = (command: () => number | Promise<number>) => Promise<void>

function buildProgram(host: Host, launch: Launch): Command {
  const program = new Command('grapevine')
    .description('One rate limit over a whole fleet of pods, held by gossip.')
    .exitOverride()
    .configureOutput({
      writeOut: text => host.stdout.write(text),
      writeErr: text => host.stderr.write(text),
      getOutHelpWidth: () => host.stdout.columns,
      getErrHelpWidth: () => host.stderr.columns,
    })
    .showHelpAfterError('(see --help)')
    .version(`grapevine ${version}`, '-V, --version')
    .helpCommand('help [command]', 'the help of a command')
  addRunning(program, host, launch)
  addFiles(program, host, launch)
  addKubernetes(program, host, launch)
  addAsking(program, host, launch)
  return program
}

function addRunning(program: Command, host: Host, launch: Launch): void {
  const sidecar = program
    .command('run')
    .description('the sidecar')
    .addOption(fromEnv(host, '--config <file>', 'sidecar file (YAML)', 'GRAPEVINE_CONFIG'))
    .addOption(
      fromEnv(
        host,
        '--rules <path>',
        'rules: a YAML file or a directory of them',
        'GRAPEVINE_RULES',
      ),
    )
    .addOption(new Option('--stdin-lifeline', 'end when standard input ends').hideHelp())
    .action(flags => launch(async () => (await import('./run.js')).run(host, runFlags(flags))))
  for (const { flag, env, path } of overrides) {
    const setting = path.filter(step => step !== undefined).join('.')
    sidecar.option(`--${flag} <value>`, `instead of the file's ${setting} (env: ${env})`)
  }
  program
    .command('demo')
    .description('a fleet on loopback that holds one limit, with a live table')
    .option('--pods <n>', 'how many sidecars', parseWholeNumber(1, 20), 3)
    .option(
      '--duration <time>',
      'end by itself, with status 0 only if the limit held',
      parseDurationMs,
    )
    .action(flags =>
      launch(async () => {
        const { demo } = await import('./demo/demo.js')
        return demo(host, { pods: flags.pods, durationMs: flags.duration ?? null })
      }),
    )
}

/** Commander files flags under camelCase names; the configuration knows them as they are typed. */
function runFlags(flags: Record<string, string | boolean | undefined>): RunFlags {
  const settings: Record<string, string> = {}
  for (const { flag } of overrides) {
    const value = flags[flag.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value === 'string') settings[flag] = value
  }
  return { ...flags, overrides: settings }
}

function addFiles(program: Command, host: Host, launch: Launch): void {
  program
    .command('check')
    .description('validate config and rules files, ConfigMap manifests too')
    .argument('<file...>', 'files')
    .action(files => launch(async () => (await import('./check.js')).check(host, files)))
  program
    .command('simulate')
    .description('the real node code on virtual time')
    .argument('<scenario>', 'scenario file (YAML)')
    .option('--json', 'one JSON object on stdout')
    .option('--seed <n>', 'seed of all chance', parseWholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option('--report <file>', 'write a self-contained HTML page')
    .action((scenario, flags) =>
      launch(async () => {
        const { simulateCommand } = await import('../simulator/simulate-command.js')
        return simulateCommand({ scenario, ...flags }, host)
      }),
    )
  program
    .command('keygen')
    .description('a gossip key (base64, 32 bytes)')
    .action(() => launch(async () => (await import('./keygen.js')).keygen(host)))
  program
    .command('version')
    .description('the version of this program')
    .action(() =>
      launch(() => {
        host.stdout.write(`grapevine ${version}\n`)
        return exitStatus.ok
      }),
    )
}

function addKubernetes(program: Command, host: Host, launch: Launch): void {
  program
    .command('inject')
    .description('add the sidecar to the pod templates in a file of manifests')
    .option('-f, --filename <file>', 'manifests (YAML, several documents), or - for stdin')
    .option('--config <file>', "the injector's file, for its sidecar settings")
    .option('--image <image>', 'image of the sidecar')
    .option('--ring <name>', 'which ring the pods join')
    .action(flags => launch(async () => (await import('./inject-command.js')).inject(host, flags)))
  program
    .command('injector')
    .description('the mutating admission webhook')
    .addOption(fromEnv(host, '--config <file>', "the injector's file", 'GRAPEVINE_INJECTOR_CONFIG'))
    .action(flags =>
      launch(async () => (await import('./injector-command.js')).injector(host, flags)),
    )
}

function addAsking(program: Command, host: Host, launch: Launch): void {
  asking(program, host, 'members')
    .description('who is in the fleet')
    .action(flags => launch(async () => (await import('./members.js')).members(host, flags)))
  asking(program, host, 'top')
    .description('keys with most denials or hits')
    .option('--rule <name>', 'of one rule only')
    .addOption(
      new Option('--by <what>', 'order').choices(['denied', 'hits'] as const).default('denied'),
    )
    .option('-n, --count <n>', 'how many', parseWholeNumber(1, 1000), 20)
    .action(flags => launch(async () => (await import('./top.js')).top(host, flags)))
  asking(program, host, 'explain')
    .description('what a request would be answered, and why; consumes nothing')
    .argument('<path>', 'path with query, or an absolute URI')
    .option('-X, --method <method>', 'request method', 'GET')
    .option('-H, --header <line>', '"name: value"; may be repeated', collect, [])
    .option('--ip <address>', "the client's address")
    .option('--host <name>', 'the Host asked for')
    .action((path, flags) =>
      launch(async () => (await import('./explain.js')).explain(host, path, flags)),
    )
  asking(program, host, 'drain')
    .description('turn readiness to 503 and keep serving; for preStop')
    .option('--wait <time>', 'return only after this long', parseDurationMs, 0)
    .action(flags => launch(async () => (await import('./drain.js')).drain(host, flags)))
}

/** A command that asks a running sidecar. */
function asking(program: Command, host: Host, name: string): Command {
  return program
    .command(name)
    .addOption(
      fromEnv(
        host,
        '--admin <url>',
        'admin address of the sidecar',
        'GRAPEVINE_ADMIN',
        defaultAdmin,
      ),
    )
    .addOption(
      new Option('-o, --output <format>', 'how to print')
        .choices(['text', 'json'] as const)
        .default('text'),
    )
}

/** An option whose default is taken from the environment, which a flag overrides. */
function fromEnv(
  host: Host,
  flags: string,
  description: string,
  variable: string,
  fallback?: string,
): Option {
  const option = new Option(flags, `${description} (env: ${variable})`)
  const value = host.env[variable] || fallback
  return value === undefined ? option : option.default(value)
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}
