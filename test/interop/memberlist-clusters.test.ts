/**
 * Mixed clusters of three Go and three TypeScript nodes under every option operators use: all see all,
 * and what one node sends arrives intact at every other, in both directions.
 */
import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, inject, it } from 'vitest'
import { eventually, type PeerFlags, PeerProcess } from './peer-process.js'

const { goPeer } = inject('peers')

interface Variant {
  readonly title: string
  readonly flags: Partial<PeerFlags>
  /** Protocol version the Go side speaks, where it is not the library's. */
  readonly goProtocol?: number
}

const key = (length: number) => randomBytes(length).toString('base64')

const variants: Variant[] = [
  { title: 'plain', flags: {} },
  { title: 'compression on', flags: { compress: true } },
  { title: 'a key of 16 bytes', flags: { keys: [key(16)] } },
  { title: 'a key of 24 bytes', flags: { keys: [key(24)] } },
  { title: 'a key of 32 bytes', flags: { keys: [key(32)] } },
  { title: 'a label', flags: { label: 'shop' } },
  { title: 'a label and a key', flags: { label: 'shop', keys: [key(32)] } },
  {
    title: 'a label, a key and compression',
    flags: { label: 'shop', keys: [key(16)], compress: true },
  },
  { title: 'Go speaking protocol 2', flags: {}, goProtocol: 2 },
  { title: 'Go speaking protocol 3', flags: {}, goProtocol: 3 },
  { title: 'Go speaking protocol 4', flags: {}, goProtocol: 4 },
  { title: 'Go speaking protocol 5', flags: {}, goProtocol: 5 },
  { title: 'IPv6 loopback', flags: { bind: '::1' } },
]

const names = ['go-0', 'go-1', 'go-2', 'ts-0', 'ts-1', 'ts-2']
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** How long what takes tenths of a second may take on a busy machine. */
const patienceMs = 20_000
/** Of each cluster, until every node saw every other. */
const durationsMs: number[] = []

let peers: PeerProcess[] = []

afterEach(async () => {
  await Promise.all(peers.map(peer => peer.stop()))
  peers = []
})

/**
 * Starts the six; every node joins through the first Go or the first TypeScript node. The local preset
 * sends each piece of news twice, which misses a member now and then and leaves the rest to a
 * push/pull; eight times makes the gossip itself certain.
 */
async function startCluster(variant: Variant): Promise<void> {
  const start = async (name: string, join: readonly string[]) => {
    const kind = name.startsWith('go') ? 'go' : 'ts'
    const peer = await PeerProcess.start(
      kind,
      {
        ...variant.flags,
        ...(kind === 'go' && variant.goProtocol ? { protocol: variant.goProtocol } : {}),
        name,
        join,
        meta: `meta of ${name}`,
        state: `state of ${name}`,
        retransmit: 8,
      },
      goPeer ?? '',
    )
    peers.push(peer)
    return peer
  }
  const first = await start('go-0', [])
  const second = await start('ts-0', [first.address])
  await Promise.all(
    names
      .filter(name => !/-0$/.test(name))
      .map((name, index) => {
        // Two join through each kind, so that both kinds answer and ask for a join.
        return start(name, [(index % 2 === 0 ? first : second).address])
      }),
  )
}

async function expectAllSeeAll(): Promise<void> {
  const started = Date.now()
  for (const peer of peers) {
    const seen = await eventually(
      () => peer.members(),
      list => list.length === 6,
      patienceMs,
    )
    expect(seen, `members as ${peer.name} sees them`).toEqual(names)
  }
  durationsMs.push(Date.now() - started)
}

async function expectMetaEverywhere(): Promise<void> {
  for (const peer of peers) {
    const text = `a longer meta of ${peer.name} ${'x'.repeat(400)}`
    await peer.order('meta', { data: base64(text) })
    await Promise.all(
      peers
        .filter(other => other !== peer)
        .map(other =>
          other.until(
            report =>
              report.event === 'update' &&
              report.node?.name === peer.name &&
              report.node.meta === base64(text),
            patienceMs,
          ),
        ),
    )
  }
}

async function expectMessagesEverywhere(reliable: boolean): Promise<void> {
  for (const from of peers)
    for (const to of peers) {
      if (from === to) continue
      const size = reliable ? 20_000 : 900
      const text = `${from.name} to ${to.name} ${reliable} ${'payload '.repeat(size / 8)}`
      const answer = await from.order('send', { to: to.name, data: base64(text), reliable })
      expect(answer.ok, `${from.name} to ${to.name}`).toBe(true)
      await to.until(
        report => report.event === 'message' && report.data === base64(text),
        patienceMs,
      )
    }
}

/** A user broadcast is sent a few times to random members and not passed on: most hear it. */
async function expectBroadcasts(): Promise<void> {
  for (const from of peers) {
    const data = base64(`broadcast of ${from.name}`)
    await from.order('broadcast', { data })
    const others = peers.filter(peer => peer !== from)
    const heard = await eventually(
      async () =>
        others.filter(peer =>
          peer.reports.some(report => report.event === 'message' && report.data === data),
        ),
      list => list.length >= 3,
      patienceMs,
    )
    expect(heard.length, `who heard ${from.name}`).toBeGreaterThanOrEqual(3)
  }
}

/** Everybody exchanges state with one node of either kind, and the state arrives on both sides. */
async function expectStateBothWays(): Promise<void> {
  for (const peer of peers)
    for (const via of peers.filter(other => /-0$/.test(other.name) && other !== peer)) {
      const [mark, other] = [peer.reports.length, via.reports.length]
      const answer = await peer.order('join', { to: via.address })
      expect(answer.contacted, `${peer.name} joins ${via.name}`).toBe(1)
      await peer.until(
        report => report.event === 'state' && report.data === base64(`state of ${via.name}`),
        patienceMs,
        mark,
      )
      await via.until(
        report => report.event === 'state' && report.data === base64(`state of ${peer.name}`),
        patienceMs,
        other,
      )
    }
}

describe.skipIf(!goPeer)('three Go and three TypeScript nodes', () => {
  it.each(variants)('are one cluster with $title', async variant => {
    await startCluster(variant)
    await expectAllSeeAll()
    await expectMetaEverywhere()
    await expectMessagesEverywhere(false)
    await expectMessagesEverywhere(true)
    await expectStateBothWays()
    await expectBroadcasts()
    expect(peers.flatMap(peer => peer.reports.filter(report => report.event === 'leave'))).toEqual(
      [],
    )
  })

  it('see each other within five seconds', () => {
    const sorted = durationsMs.sort((one, other) => one - other)
    // One in four may meet a moment in which the machine stood still.
    expect(sorted).toHaveLength(variants.length)
    expect(sorted[Math.floor(sorted.length * 0.75)], `${sorted}`).toBeLessThan(5_000)
  })
})
