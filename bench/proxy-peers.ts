/**
 * `npm run bench:proxy`: the proxy beside nginx with `limit_req` and HAProxy with a stick-table. Needs
 * wrk, nginx and haproxy (Debian: wrk, nginx-light, haproxy) and Linux.
 *
 * GET of 1 KiB from an nginx that all share, 64 connections, one process for each proxy, pinned to one
 * core where `taskset` is there; wrk and the upstream have the other. The candidates take turns in
 * several rounds, and ratios are made within a round, because the machine is never quiet.
 *
 *   npm run bench:proxy                     prints the tables
 *   npm run bench:proxy -- --write          also writes them into docs/performance.md
 *   npm run bench:proxy -- --rounds 5 --seconds 5
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './median.js'
import { startChild } from './proxy.js'

const { values: flags } = parseArgs({
  options: {
    write: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
  },
})
const connections = 64
const folder = mkdtempSync(join(tmpdir(), 'grapevine-bench-'))
const running: ChildProcess[] = []

interface Candidate {
  readonly name: string
  readonly port: number
  /** The process whose CPU time is counted. */
  readonly pid: number
}

interface Measure {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuUs: number
}

function has(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const pinned = has('taskset') && cpus().length > 1
/** The proxies' core, and the rest. */
const proxyCore = pinned ? ['taskset', '-c', '0'] : []
const otherCore = pinned
  ? ['taskset', '-c', cpus().length > 2 ? `1-${cpus().length - 1}` : '1']
  : []

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const address = server.address() as { port: number }
      server.close(() => resolve(address.port))
    })
  })
}

function start(prefix: readonly string[], ...words: readonly string[]): ChildProcess {
  const [command, ...rest] = [...prefix, ...words]
  const child = spawn(command as string, rest, { stdio: ['ignore', 'ignore', 'inherit'] })
  running.push(child)
  return child
}

/** One worker in the foreground, so that the child we started is the one that works. */
function nginx(prefix: readonly string[], name: string, http: string): ChildProcess {
  const file = join(folder, `${name}.conf`)
  writeFileSync(
    file,
    `master_process off; daemon off; worker_processes 1; error_log ${folder}/${name}.log crit;
pid ${folder}/${name}.pid;
events { worker_connections 2048; }
http { access_log off; default_type text/plain; keepalive_requests 100000000;
client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f;
uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${http} }\n`,
  )
  return start(prefix, 'nginx', '-p', folder, '-c', file)
}

async function nginxUpstream(): Promise<number> {
  const port = await freePort()
  mkdirSync(join(folder, 'www'))
  writeFileSync(join(folder, 'www', '1k.txt'), 'x'.repeat(1024))
  nginx(
    otherCore,
    'upstream',
    `server { listen 127.0.0.1:${port} backlog=1024; root ${folder}/www; }`,
  )
  return port
}

async function nginxProxy(upstream: number, denied: boolean): Promise<Candidate> {
  const port = await freePort()
  const rate = denied ? '1r/m' : '1000000r/s'
  const burst = denied ? '' : ' burst=1000000 nodelay'
  const child = nginx(
    proxyCore,
    denied ? 'nginx-denied' : 'nginx-allowed',
    `limit_req_zone $http_x_api_key zone=api:10m rate=${rate}; limit_req_status 429;
upstream up { server 127.0.0.1:${upstream}; keepalive 128; keepalive_requests 100000000; }
server { listen 127.0.0.1:${port} backlog=1024;
 location / { limit_req zone=api${burst}; proxy_http_version 1.1; proxy_set_header Connection "";
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_pass http://up; } }`,
  )
  return { name: 'nginx limit_req', port, pid: child.pid as number }
}

async function haproxy(upstream: number, denied: boolean): Promise<Candidate> {
  const port = await freePort()
  const file = join(folder, denied ? 'haproxy-denied.cfg' : 'haproxy-allowed.cfg')
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 2048
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 2s
  option http-keep-alive
  http-reuse always
frontend front
  bind 127.0.0.1:${port}
  stick-table type string len 32 size 100k expire 60s store http_req_rate(10s)
  http-request track-sc0 req.hdr(x-api-key)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt ${denied ? 0 : 1_000_000_000} }
  option forwardfor
  default_backend back
backend back
  server up 127.0.0.1:${upstream}\n`,
  )
  const child = start(proxyCore, 'haproxy', '-db', '-f', file)
  return { name: 'HAProxy stick-table', port, pid: child.pid as number }
}

async function grapevine(upstream: number, mode: string, name: string): Promise<Candidate> {
  const child = await startChild(['proxy', upstream, mode], proxyCore)
  running.push(child.process)
  return { name, port: child.report.port as number, pid: child.process.pid as number }
}

/** CPU time that a process has used, in microseconds. A clock tick of Linux is 10 ms. */
function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

function milliseconds(text: string | undefined): number {
  const match = /^([\d.]+)(us|ms|s)$/.exec(text ?? '')
  const unit = { us: 0.001, ms: 1, s: 1000 }[match?.[2] ?? 'ms'] ?? 1
  return Number(match?.[1] ?? Number.NaN) * unit
}

function measure({ port, pid }: Candidate, seconds: number, denied: boolean): Measure {
  const before = cpuUsOf(pid)
  const words = [...otherCore, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
  words.push('-H', 'X-Api-Key: abc', `http://127.0.0.1:${port}/1k.txt`)
  const out = execFileSync(words[0] as string, words.slice(1), { encoding: 'utf8' })
  const cpuUs = cpuUsOf(pid) - before
  const requests = Number(/(\d+) requests in/.exec(out)?.[1])
  const others = Number(/Non-2xx or 3xx responses: (\d+)/.exec(out)?.[1] ?? 0)
  const wrong = denied ? requests - others : others
  if (wrong > 100 || /Socket errors/.test(out)) throw new Error(`unexpected answers:\n${out}`)
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(out)?.[1]),
    p50Ms: milliseconds(/^ +50% +(\S+)/m.exec(out)?.[1]),
    p99Ms: milliseconds(/^ +99% +(\S+)/m.exec(out)?.[1]),
    cpuUs: cpuUs / requests,
  }
}

/** Candidates in turn, round by round; the first is the base of the ratios. */
function compare(candidates: readonly Candidate[], denied: boolean): string[] {
  const seconds = Number(flags.seconds)
  for (const candidate of candidates) measure(candidate, 1, denied)
  const rounds = Array.from({ length: Number(flags.rounds) }, () =>
    candidates.map(candidate => measure(candidate, seconds, denied)),
  )
  const base = rounds.map(round => round[0] as Measure)
  return candidates.map((candidate, index) => {
    const own = rounds.map(round => round[index] as Measure)
    const of = (pick: (measure: Measure) => number): number => median(own.map(pick))
    const ratio = (pick: (measure: Measure) => number): number =>
      median(own.map((measure, round) => pick(measure) / pick(base[round] as Measure)))
    const cells = [
      candidate.name,
      Math.round(of(m => m.perSecond)).toLocaleString('en-US'),
      ratio(m => m.perSecond).toFixed(2),
      of(m => m.p50Ms).toFixed(2),
      of(m => m.p99Ms).toFixed(2),
      ratio(m => m.p99Ms).toFixed(2),
      of(m => m.cpuUs).toFixed(1),
    ]
    return `| ${cells.join(' | ')} |`
  })
}

const head = (title: string): string[] => [
  `**${title}**`,
  '',
  '| proxy | requests/s | of nginx | p50 ms | p99 ms | p99 of nginx | CPU µs/request |',
  '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
]

const startMark = '<!-- bench:proxy -->'
const endMark = '<!-- /bench:proxy -->'

/** Puts the tables between the marks of docs/performance.md. */
function write(lines: readonly string[]): void {
  const file = new URL('../docs/performance.md', import.meta.url)
  const text = readFileSync(file, 'utf8')
  const from = text.indexOf(startMark)
  const to = text.indexOf(endMark)
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no ${startMark}`)
  const table = [startMark, '', ...lines, '', ''].join('\n')
  writeFileSync(file, text.slice(0, from) + table + text.slice(to))
}

async function main(): Promise<void> {
  const missing = ['wrk', 'nginx', 'haproxy'].filter(program => !has(program))
  if (missing.length > 0) throw new Error(`bench:proxy needs ${missing.join(', ')}`)
  const loadBefore = loadavg()[0] ?? 0
  const upstream = await nginxUpstream()
  const nginxAllowed = await nginxProxy(upstream, false)
  const off = await grapevine(upstream, 'off', 'Grapevine, no rules')
  const allowed = [
    nginxAllowed,
    await haproxy(upstream, false),
    off,
    await grapevine(upstream, 'allowed', 'Grapevine'),
  ]
  const denied = [
    await nginxProxy(upstream, true),
    await haproxy(upstream, true),
    await grapevine(upstream, 'denied', 'Grapevine'),
  ]
  await new Promise(resolve => setTimeout(resolve, 500))
  const lines = [
    ...head('Allowed requests'),
    ...compare(allowed, false),
    '',
    ...head('Denied requests'),
    ...compare(denied, true),
    '',
    `Node.js ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim()}), ${connections} connections,` +
      ` ${flags.rounds} rounds of ${flags.seconds} s, medians${pinned ? ', each proxy pinned to one core' : ''};` +
      ` load average before the run ${loadBefore.toFixed(1)}.`,
  ]
  console.log(lines.join('\n'))
  if (flags.write) write(lines)
}

try {
  await main()
} finally {
  for (const child of running) child.kill()
  rmSync(folder, { recursive: true, force: true })
}
