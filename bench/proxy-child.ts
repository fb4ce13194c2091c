/**
 * The processes of the proxy benchmarks, one role each, so that every part has its own event loop:
 *
 *   upstream                 node:http, answers each GET with 1 KiB
 *   proxy UPSTREAM MODE      the proxy with the real core; MODE is off, allowed or denied
 *   load PORT CLIENTS MS     keep-alive clients on node:net, one request each at a time
 *
 * A child prints one line of JSON: `{"port"}` when it listens, `{"requests", …}` when it is done.
 */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'
import { Core } from '../src/core.js'
import { Engine } from '../src/engine.js'
import { systemClock, systemEntropy, systemRandom } from '../src/gossip/system-clock.js'
import type { RuleSet, RuleSpec } from '../src/limiter/rule.js'
import { ReverseProxy } from '../src/proxy/proxy.js'
import { lanDefaults } from '../src/swim/options.js'
import type { MemberName, RuleName } from '../src/vocabulary.js'
import { plainRule } from '../test/helpers/plain-rule.js'

const body = Buffer.alloc(1024, 'x')

function report(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function upstream(): void {
  const server = createServer((_req, res) => {
    res.setHeader('Content-Type', 'text/plain')
    res.end(body)
  })
  server.listen(0, '127.0.0.1', () => report(server.address() as object))
}

/** A rule that looks at a header, as an API's would; so high that nobody is denied, or so low that all are. */
function rulesFor(mode: string): RuleSet {
  const count = mode === 'allowed' ? 1e9 : 1
  const rule: RuleSpec = {
    ...plainRule,
    name: 'api' as RuleName,
    match: { path: '/**', method: ['GET'], header: null },
    key: [[{ kind: 'header', name: 'x-api-key' }, { kind: 'ip' }]],
    limit: { count, windowMs: mode === 'allowed' ? 1000 : 3_600_000, calendar: null },
  }
  return { allow: [], deny: [], rules: mode === 'off' ? [] : [rule], hash: 1 }
}

async function proxy(upstreamPort: number, mode: string): Promise<void> {
  const core = new Core(
    {
      node: 'bench',
      version: 'bench',
      startWallMs: systemClock.wallMs(),
      swim: {
        ...lanDefaults,
        label: 'bench',
        name: 'bench-1' as MemberName,
        advertise: { host: '127.0.0.1', port: 7946 },
      },
      counters: { keysMax: 100_000, secret: null },
      rules: rulesFor(mode),
    },
    { random: systemRandom, entropy: systemEntropy },
  )
  core.start(systemClock.monotonicMs(), systemClock.wallMs())
  setInterval(() => {
    core.advance(systemClock.monotonicMs(), systemClock.wallMs())
    core.takeEffects()
  }, 50)
  const engine = new Engine({ core, clock: systemClock, wake: () => {} })
  const server = new ReverseProxy(
    {
      listen: { host: '127.0.0.1', port: 0 },
      upstream: { kind: 'http', host: '127.0.0.1', port: upstreamPort },
      trusts: () => false,
      headers: { ietf: 'draft-11', legacy: 'x-ratelimit', reset: 'epoch' },
    },
    { engine, random: systemRandom, monotonicMs: () => performance.now() },
  )
  report(await server.listen())
}

const request = Buffer.from(
  'GET /1k.txt HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Api-Key: abc\r\n\r\n',
)

/** Upper edges of the latency histogram: 10 µs steps up to 1 s. */
const latencySteps = 100_000

async function load(port: number, clients: number, durationMs: number): Promise<void> {
  const latencies = new Uint32Array(latencySteps + 1)
  let requests = 0
  let errors = 0
  const endMs = performance.now() + durationMs
  const runClient = (): Promise<void> =>
    new Promise(resolve => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let sentMs = 0
      let missing = 0
      const send = (): void => {
        sentMs = performance.now()
        socket.write(request)
      }
      socket.on('connect', send)
      socket.on('error', () => {
        errors++
        resolve()
      })
      socket.on('data', chunk => {
        if (missing === 0) {
          const headEnd = chunk.indexOf('\r\n\r\n')
          const length = /content-length: (\d+)/i.exec(chunk.toString('latin1', 0, headEnd))
          if (headEnd < 0 || !length) errors++
          missing = headEnd + 4 + Number(length?.[1] ?? 0)
        }
        missing -= chunk.length
        if (missing > 0) return
        missing = 0
        requests++
        const nowMs = performance.now()
        const step = Math.min(latencySteps, Math.floor((nowMs - sentMs) * 100))
        latencies[step] = (latencies[step] ?? 0) + 1
        if (nowMs < endMs) send()
        else {
          socket.destroy()
          resolve()
        }
      })
    })
  const startMs = performance.now()
  await Promise.all(Array.from({ length: clients }, runClient))
  const seconds = (performance.now() - startMs) / 1000
  const at = (share: number): number => {
    let seen = 0
    for (let step = 0; step <= latencySteps; step++) {
      seen += latencies[step] ?? 0
      if (seen >= requests * share) return step / 100
    }
    return latencySteps / 100
  }
  report({ requests, errors, perSecond: requests / seconds, p50Ms: at(0.5), p99Ms: at(0.99) })
}

const [role, first, second, third] = process.argv.slice(2)
if (role === 'upstream') upstream()
else if (role === 'proxy') await proxy(Number(first), second ?? 'off')
else if (role === 'load') await load(Number(first), Number(second), Number(third))
