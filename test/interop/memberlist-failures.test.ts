/**
 * Death, pause, leave, loss and splits: what a mixed cluster reports, and when, beside an all-Go cluster
 * that goes through the same in the same run.
 */
import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, inject, it } from 'vitest'
import { eventually, type PeerFlags, PeerProcess } from './peer-process.js'
import { canMakeNetworks, TestNetwork } from './test-network.js'

const { goPeer } = inject('peers')

const running: PeerProcess[] = []
let network: TestNetwork | null = null

afterEach(async () => {
  await Promise.all(running.splice(0).map(peer => peer.stop()))
  network?.close()
  network = null
})

type Kind = 'go' | 'ts'
const allGo: readonly Kind[] = ['go', 'go', 'go', 'go', 'go', 'go']
const mixed: readonly Kind[] = ['go', 'ts', 'go', 'ts', 'go', 'ts']

/**
 * News is sent eight times as often as the local preset does: at twice, now and then one of six members
 * misses a piece of it until the next push/pull, in all-Go clusters too.
 */
async function start(kind: Kind, flags: PeerFlags): Promise<PeerProcess> {
  const peer = await PeerProcess.start(kind, { retransmit: 8, ...flags }, goPeer ?? '')
  running.push(peer)
  return peer
}

async function startCluster(
  kinds: readonly Kind[],
  flags: (index: number) => Partial<PeerFlags> = () => ({}),
): Promise<PeerProcess[]> {
  const first = await start(kinds[0] ?? 'go', { name: 'node-0', ...flags(0) })
  const others = await Promise.all(
    kinds
      .slice(1)
      .map((kind, index) =>
        start(kind, { name: `node-${index + 1}`, join: [first.address], ...flags(index + 1) }),
      ),
  )
  const peers = [first, ...others]
  for (const peer of peers) await seesExactly(peer, kinds.length, 20_000)
  return peers
}

async function seesExactly(peer: PeerProcess, count: number, patienceMs: number): Promise<void> {
  const seen = await eventually(
    () => peer.members(),
    list => list.length === count,
    patienceMs,
  )
  expect(seen.length, `members as ${peer.name} sees them: ${seen.join(' ')}`).toBe(count)
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length

/** Several measurements made side by side. */
const several = async (count: number, measure: () => Promise<number[]>) =>
  (await Promise.all(Array.from({ length: count }, measure))).flat()

/** Variance of the mean of `values`, as far as they can tell. */
const varianceOfMean = (values: readonly number[]) => {
  const center = mean(values)
  const squares = values.map(value => (value - center) ** 2)
  return squares.reduce((sum, square) => sum + square, 0) / (values.length - 1) / values.length
}

/** Events about `name` in the order `peer` reported them. */
const eventsAbout = (peer: PeerProcess, name: string, from: number) =>
  peer.reports
    .slice(from)
    .filter(report => report.node?.name === name)
    .map(report => report.event)

/**
 * Does something to one node and measures, at every other, how long until it reports the node gone.
 * Returns the delays in milliseconds.
 */
async function delaysUntilGone(
  peers: readonly PeerProcess[],
  victim: PeerProcess,
  act: () => unknown,
): Promise<number[]> {
  const observers = peers.filter(peer => peer !== victim)
  const marks = observers.map(peer => peer.reports.length)
  const startMs = Date.now()
  await act()
  const gone = await Promise.all(
    observers.map((peer, index) =>
      peer.until(
        report => report.event === 'leave' && report.node?.name === victim.name,
        40_000,
        marks[index] ?? 0,
      ),
    ),
  )
  for (const [index, peer] of observers.entries())
    expect(eventsAbout(peer, victim.name, marks[index] ?? 0)).toEqual(['leave'])
  return gone.map(report => report.ms - startMs)
}

/** Kills nodes one after the other, each replaced before the next; the mean delay of each. */
async function detectionMs(kinds: readonly Kind[], victims: readonly number[]): Promise<number[]> {
  let peers = await startCluster(kinds)
  const delays: number[] = []
  for (const [round, index] of victims.entries()) {
    const victim = peers[index]
    if (!victim) throw new Error('no such victim')
    delays.push(mean(await delaysUntilGone(peers, victim, () => victim.signal('SIGKILL'))))
    const rest = peers.filter(peer => peer !== victim)
    const via = rest[0]?.address ?? ''
    const next = await start(victim.kind, { name: `next-${round}`, join: [via] })
    peers = [...peers.slice(0, index), next, ...peers.slice(index + 1)]
    for (const peer of peers) await seesExactly(peer, kinds.length, 20_000)
  }
  return delays
}

/** Stops a node for 10 s: gone, then back, at everybody; and how long each took. */
async function pauseMs(
  kinds: readonly Kind[],
  index: number,
): Promise<{ gone: number; back: number }> {
  const peers = await startCluster(kinds)
  const victim = peers[index]
  if (!victim) throw new Error('no such victim')
  const observers = peers.filter(peer => peer !== victim)
  const marks = observers.map(peer => peer.reports.length)
  const gone = delaysUntilGone(peers, victim, () => victim.signal('SIGSTOP'))
  await new Promise(resolve => setTimeout(resolve, 20_000))
  const delays = await gone
  const resumedMs = Date.now()
  victim.signal('SIGCONT')
  const back = await Promise.all(
    observers.map((peer, at) =>
      peer.until(
        report => report.event === 'join' && report.node?.name === victim.name,
        30_000,
        marks[at] ?? 0,
      ),
    ),
  )
  for (const [at, peer] of observers.entries())
    expect(eventsAbout(peer, victim.name, marks[at] ?? 0)).toEqual(['leave', 'join'])
  return { gone: mean(delays), back: mean(back.map(report => report.ms - resumedMs)) }
}

async function leaveMs(kinds: readonly Kind[], index: number): Promise<number> {
  const peers = await startCluster(kinds)
  const victim = peers[index]
  if (!victim) throw new Error('no such victim')
  return mean(await delaysUntilGone(peers, victim, () => victim.order('leave')))
}

/**
 * Means within a fifth of each other. When a probe first meets the dead node is a matter of chance, a
 * second each way, so twice the error of the difference of the means comes on top of it.
 */
function expectLike(measured: readonly number[], reference: readonly number[]): void {
  const errorMs = Math.sqrt(varianceOfMean(measured) + varianceOfMean(reference))
  const room = 0.2 * mean(reference) + 2 * errorMs
  const difference = Math.abs(mean(measured) - mean(reference))
  expect(difference, `${measured} beside ${reference} ms in all-Go clusters`).toBeLessThan(room)
}

/** Short times are those of the machine, but no node may have to be found dead: that takes seconds. */
function expectAtOnce(measuredMs: number, referenceMs: number): void {
  expect(measuredMs, `beside ${referenceMs} ms in an all-Go cluster`).toBeLessThan(
    referenceMs + 1_500,
  )
}

describe.skipIf(!goPeer)('a mixed cluster beside an all-Go one', () => {
  it('finds a killed node dead in the same time, with the same events', async () => {
    const [reference, measured] = await Promise.all([
      several(2, () => detectionMs(allGo, [1, 2, 3, 4])),
      several(2, () => detectionMs(mixed, [1, 2, 3, 4])),
    ])
    console.log(`killed: all-Go ${mean(reference)} ms, mixed ${mean(measured)} ms`)
    expectLike(measured, reference)
  })

  it('loses and regains a node that stood still for 10 s', async () => {
    const [reference, ofGo, ofTs] = await Promise.all([
      Promise.all([pauseMs(allGo, 1), pauseMs(allGo, 2), pauseMs(allGo, 3)]),
      Promise.all([pauseMs(mixed, 2), pauseMs(mixed, 4)]),
      Promise.all([pauseMs(mixed, 3), pauseMs(mixed, 5)]),
    ])
    console.log('paused: all-Go', reference, 'Go in mixed', ofGo, 'TypeScript in mixed', ofTs)
    const measured = [...ofGo, ...ofTs]
    expectLike(
      measured.map(one => one.gone),
      reference.map(one => one.gone),
    )
    expectAtOnce(mean(measured.map(one => one.back)), mean(reference.map(one => one.back)))
  })

  it('hears of a graceful leave at once', async () => {
    const [reference, ofGo, ofTs] = await Promise.all([
      leaveMs(allGo, 2),
      leaveMs(mixed, 2),
      leaveMs(mixed, 3),
    ])
    console.log('left: all-Go', reference, 'Go in mixed', ofGo, 'TypeScript in mixed', ofTs)
    expectAtOnce(ofGo, reference)
    expectAtOnce(ofTs, reference)
  })

  it('declares nobody dead under 30 % packet loss that an all-Go cluster would not', async () => {
    const clusters = await Promise.all([startCluster(allGo), startCluster(mixed)])
    for (const peer of clusters.flat()) await peer.order('loss', { loss: 0.3 })
    await new Promise(resolve => setTimeout(resolve, 30_000))
    const deaths = clusters.map(peers =>
      peers.flatMap(peer => peer.reports).filter(report => report.event === 'leave'),
    )
    console.log('deaths under loss: all-Go', deaths[0]?.length, 'mixed', deaths[1]?.length)
    // One of chance, told by the five others: where nobody refutes in time, deaths come in dozens.
    expect(deaths[1]?.length).toBeLessThanOrEqual((deaths[0]?.length ?? 0) + 5)
    for (const peer of clusters.flat()) await peer.order('loss', { loss: 0 })
    for (const peer of clusters.flat()) await seesExactly(peer, 6, 15_000)
  })

  it.skipIf(!canMakeNetworks())('splits 3/3 with its network and heals with it', async () => {
    network = new TestNetwork(3)
    const hosts = [...network.left, ...network.right]
    const kinds: Kind[] = ['go', 'ts', 'go', 'ts', 'go', 'ts']
    const peers = await startCluster(kinds, index => ({
      bind: hosts[index]?.address ?? '',
      namespace: hosts[index]?.namespace ?? '',
      port: 7946,
      label: 'split',
      keys: [splitKey],
    }))
    network.split()
    for (const peer of peers) await seesExactly(peer, 3, 40_000)
    network.join()
    // Nobody calls the dead again by himself: one join over the healed cable, as operators do.
    await peers[0]?.order('join', { to: peers[5]?.address })
    for (const peer of peers) await seesExactly(peer, 6, 15_000)
  })

  // The same where this process may make no network: the peers themselves send nothing across.
  it('splits 3/3 on the way out of each node, and heals', async () => {
    const peers = await startCluster(mixed, () => ({ label: 'cut' }))
    const sides = [peers.slice(0, 3), peers.slice(3)]
    const cut = async (from: readonly PeerProcess[], to: readonly PeerProcess[]) => {
      const addresses = to.map(peer => peer.address).join(',')
      for (const peer of from) await peer.order('cut', { to: addresses })
    }
    for (const side of sides)
      await cut(
        side,
        peers.filter(peer => !side.includes(peer)),
      )
    for (const side of sides)
      for (const peer of side) {
        await seesExactly(peer, 3, 40_000)
        expect(await peer.members()).toEqual(side.map(({ name }) => name))
      }
    for (const side of sides) await cut(side, [])
    await peers[1]?.order('join', { to: peers[4]?.address })
    for (const peer of peers) await seesExactly(peer, 6, 15_000)
  })
})

const splitKey = randomBytes(32).toString('base64')

describe.skipIf(!goPeer)('names and addresses that move', () => {
  it('a rolling restart with the same names and new ports is followed by everybody', async () => {
    const peers = await startCluster(mixed, () => ({ reclaimMs: 500, label: 'rolling' }))
    for (const [index, old] of peers.entries()) {
      const others = peers.filter(peer => peer !== old)
      await old.order('leave')
      await old.stop()
      const next = await start(old.kind, {
        name: old.name,
        join: others.map(peer => peer.address),
        reclaimMs: 500,
        label: 'rolling',
      })
      expect(next.address).not.toBe(old.address)
      peers[index] = next
      for (const peer of peers) await seesExactly(peer, 6, 15_000)
    }
  })

  it("a stranger with another label at a dead node's address is never taken in", async () => {
    const peers = await startCluster(mixed, () => ({ label: 'ours' }))
    for (const index of [2, 3]) {
      const victim = peers[index]
      if (!victim) throw new Error('no such victim')
      const port = Number(victim.address.split(':').pop())
      await victim.stop()
      const stranger = await start(victim.kind === 'go' ? 'ts' : 'go', {
        name: `stranger-${index}`,
        label: 'theirs',
        port,
      })
      peers.splice(index, 1, stranger)
    }
    const own = peers.filter(peer => !peer.name.startsWith('stranger'))
    for (const peer of own) await seesExactly(peer, 4, 40_000)
    for (const peer of own)
      expect(await peer.members()).toEqual(['node-0', 'node-1', 'node-4', 'node-5'])
    for (const stranger of peers.filter(peer => !own.includes(peer)))
      expect(await stranger.members()).toEqual([stranger.name])
    const newcomer = await start('ts', {
      name: 'newcomer',
      label: 'ours',
      join: own.map(peer => peer.address),
    })
    for (const peer of [...own, newcomer]) await seesExactly(peer, 5, 20_000)
  })
})

describe.skipIf(!goPeer)('keys', () => {
  it('a cluster moves from one key to the next by restarting nodes one at a time, unsplit', async () => {
    const [a, b] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
    let peers = await startCluster(mixed, () => ({ keys: [a, b] }))
    for (let index = 0; index < peers.length; index += 1) {
      const old = peers[index]
      if (!old) continue
      await old.order('leave')
      await old.stop()
      const others = peers.filter(peer => peer !== old)
      const next = await start(old.kind, {
        name: `second-${index}`,
        join: others.map(peer => peer.address),
        keys: [b, a],
      })
      peers = peers.map(peer => (peer === old ? next : peer))
      for (const peer of peers) await seesExactly(peer, 6, 20_000)
    }
    const outsider = await start('ts', {
      name: 'outsider',
      keys: [randomBytes(32).toString('base64')],
    })
    const answer = await outsider.order('join', { to: peers[0]?.address })
    expect(answer.ok).toBe(false)
    for (const peer of peers) expect(await peer.members()).not.toContain('outsider')
  })
})
