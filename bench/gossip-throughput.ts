/**
 * One node floods another with best-effort user messages over loopback: the whole way through codec,
 * encryption and sockets, for TypeScript nodes and, where Go is at hand, for nodes of the Go library
 * doing the same work.
 */
import { randomBytes } from 'node:crypto'
import { type PeerFlags, PeerProcess } from '../test/interop/peer-process.js'
import { goPeerProgram } from '../test/interop/peers-setup.js'

export interface GossipThroughput {
  readonly name: string
  readonly sentPerSecond: number
  /** Messages that arrived, per second of sending. */
  readonly receivedPerSecond: number
}

const messages = 60_000
const messageBytes = 1000

const variants: readonly { readonly name: string; readonly flags: Partial<PeerFlags> }[] = [
  { name: 'plain', flags: {} },
  { name: 'compressed', flags: { compress: true } },
  { name: 'encrypted', flags: { keys: [randomBytes(32).toString('base64')] } },
]

/** Text-like bytes: half of what is compressible in real counters is not in random ones. */
function payload(): string {
  const text = Array.from({ length: messageBytes / 10 }, (_, n) => `entry ${n % 97} `.padEnd(10))
  return Buffer.from(text.join('').slice(0, messageBytes)).toString('base64')
}

async function flood(
  kind: 'go' | 'ts',
  program: string,
  variant: (typeof variants)[number],
): Promise<GossipThroughput> {
  const receiver = await PeerProcess.start(kind, { name: 'receiver', ...variant.flags }, program)
  const sender = await PeerProcess.start(
    kind,
    { name: 'sender', join: [receiver.address], ...variant.flags },
    program,
  )
  try {
    await sender.until(report => report.node?.name === 'receiver', 10_000)
    const order = { to: 'receiver', data: payload(), count: messages }
    const { seconds = Number.NaN } = await sender.order('flood', order, 120_000)
    await new Promise(resolve => setTimeout(resolve, 500))
    const { messages: arrived = 0 } = await receiver.order('received')
    return {
      name: `${kind === 'go' ? 'Go' : 'TypeScript'}, ${variant.name}`,
      sentPerSecond: messages / seconds,
      receivedPerSecond: arrived / seconds,
    }
  } finally {
    await Promise.all([sender.stop(), receiver.stop()])
  }
}

export async function gossipThroughputBench(): Promise<GossipThroughput[]> {
  const program = await goPeerProgram()
  const results: GossipThroughput[] = []
  for (const variant of variants) {
    results.push(await flood('ts', '', variant))
    if (program) results.push(await flood('go', program, variant))
  }
  return results
}
