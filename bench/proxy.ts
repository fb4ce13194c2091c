/**
 * Requests per second through the proxy against the bare upstream, with nothing but Node: for
 * `npm run bench`. The comparison with nginx and HAProxy is in `proxy-peers.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const childFile = fileURLToPath(new URL('proxy-child.ts', import.meta.url))
let bundled: Promise<string> | null = null

/**
 * The child as the image has its code, in one file: compiling while running, as for tests, puts the
 * names of functions back at each call.
 */
function bundle(): Promise<string> {
  bundled ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), 'grapevine-bench-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    const outfile = join(folder, 'proxy-child.mjs')
    await build({
      entryPoints: [childFile],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20.19',
      minifyWhitespace: true,
      minifySyntax: true,
      banner: {
        js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
      },
      logLevel: 'warning',
    })
    return outfile
  })()
  return bundled
}

export interface Child {
  readonly process: ChildProcess
  /** Its first line, parsed. */
  readonly report: Readonly<Record<string, number>>
}

/** Starts a role of `proxy-child.ts` and waits for its line. `prefix` is a command to run it under. */
export async function startChild(
  args: readonly (string | number)[],
  prefix: readonly string[] = [],
): Promise<Child> {
  const words = [...prefix, process.execPath, await bundle(), ...args.map(String)]
  const child = spawn(words[0] as string, words.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${args.join(' ')} ended with ${code} before it reported`)
  })
  const [line] = (await Promise.race([once(lines, 'line'), failed])) as [string]
  failed.catch(() => {})
  return { process: child, report: JSON.parse(line) as Record<string, number> }
}

export interface ProxyMeasure {
  readonly name: string
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly ofUpstream: number
}

const clients = 64
const warmUpMs = 500
const measureMs = 2_000

/** Bare upstream, proxy without rules, with a rule that admits, with a rule that denies. */
export async function proxyBench(): Promise<ProxyMeasure[]> {
  const children: Child[] = []
  const start = async (...args: (string | number)[]): Promise<number> => {
    const child = await startChild(args)
    children.push(child)
    return child.report.port as number
  }
  try {
    const upstream = await start('upstream')
    const targets = [
      { name: 'bare upstream (node:http, 1 KiB)', port: upstream },
      { name: 'proxy, no rules', port: await start('proxy', upstream, 'off') },
      { name: 'proxy, allowed by a rule', port: await start('proxy', upstream, 'allowed') },
      { name: 'proxy, denied by a rule', port: await start('proxy', upstream, 'denied') },
    ]
    const rows: ProxyMeasure[] = []
    for (const { name, port } of targets) {
      await startChild(['load', port, clients, warmUpMs])
      const { report } = await startChild(['load', port, clients, measureMs])
      if (report.errors !== 0) throw new Error(`${name}: ${report.errors} requests failed`)
      const requestsPerSecond = report.perSecond as number
      rows.push({
        name,
        requestsPerSecond,
        p50Ms: report.p50Ms as number,
        p99Ms: report.p99Ms as number,
        ofUpstream: requestsPerSecond / (rows[0]?.requestsPerSecond ?? requestsPerSecond),
      })
    }
    return rows
  } finally {
    for (const child of children) child.process.kill()
  }
}
