/**
 * `npm run bench`: what a decision, a counter entry, a packet, a gossip message and a proxied request
 * cost on this machine. Compare within one run only; `docs/performance.md` says how to read it.
 *
 *   npm run bench                    everything
 *   npm run bench -- core codec      some of it: core, memory, exchange, codec, …
 */
import '../src/tune-v8.js'
import { coreDecisionBench, counterCodecBench } from './core-decisions.js'
import { gossipThroughputBench } from './gossip-throughput.js'
import { memoryBench } from './memory.js'
import { packetCodecBench } from './packet-codec.js'
import { proxyBench } from './proxy.js'
import { stateExchangeBench } from './state-exchange.js'

const parts: Readonly<Record<string, () => Promise<void>>> = {
  core: async () => {
    print('Decisions of the core', await coreDecisionBench())
    print('Counter entries', await counterCodecBench())
  },
  memory: async () => print('Resident memory', memoryBench()),
  exchange: async () => print('Exchange of a full state, one call at a time', stateExchangeBench()),
  codec: async () => print('Packets through the memberlist codec', await packetCodecBench()),
  gossip: async () => print('User messages between two nodes', await gossipThroughputBench()),
  proxy: async () => print('Requests through the proxy', await proxyBench()),
}

/** One table: the first column as it is, numbers with thousands separators. */
function print(title: string, rows: readonly object[]): void {
  const cells = rows.map(row => Object.values(row).map(text))
  const heads = Object.keys(rows[0] ?? {}).map(words)
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...cells.map(row => row[column]?.length ?? 0)),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return column === 0 ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
  console.log(`\n${title}\n`)
  for (const row of [heads, widths.map(width => '-'.repeat(width)), ...cells])
    console.log(line(row))
}

function text(value: unknown): string {
  if (typeof value !== 'number') return String(value)
  const digits = Math.abs(value) < 100 ? 2 : 0
  return value.toLocaleString('en-US', { maximumFractionDigits: digits })
}

/** `opsPerSecond` as `ops per second`. */
const words = (name: string) => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

const asked = process.argv.slice(2)
const unknown = asked.filter(name => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  console.error(`bench: no part ${unknown.join(', ')}; there are: ${Object.keys(parts).join(', ')}`)
  process.exit(2)
}
for (const [name, run] of Object.entries(parts))
  if (asked.length === 0 || asked.includes(name)) await run()
