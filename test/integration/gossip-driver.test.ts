import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from 'vitest'
import { GossipDriver, type Notice, stallMs } from '../../src/gossip/gossip-driver.js'
import { bindGossipSockets, type GossipSockets } from '../../src/gossip/gossip-sockets.js'
import { systemClock } from '../../src/gossip/system-clock.js'
import type { Address } from '../../src/vocabulary.js'
import { type CoreEvent, ScriptedCore } from '../helpers/scripted-core.js'
import { until } from '../helpers/until.js'

const loopback: Address = { host: '127.0.0.1', port: 0 }
const bytes = (text: string) => new Uint8Array(Buffer.from(text))

interface Node {
  readonly core: ScriptedCore
  readonly driver: GossipDriver
  readonly sockets: GossipSockets
  readonly notices: Notice[]
}

const nodes: Node[] = []

async function startNode(allow: readonly string[] = []): Promise<Node> {
  const core = new ScriptedCore()
  const sockets = await bindGossipSockets(loopback)
  const notices: Notice[] = []
  const ports = {
    core,
    sockets,
    clock: systemClock,
    onNotice: (notice: Notice) => notices.push(notice),
  }
  const driver = new GossipDriver({ allow }, ports)
  const node = { core, driver, sockets, notices }
  nodes.push(node)
  driver.start()
  return node
}

afterEach(async () => {
  await Promise.all(nodes.splice(0).map(node => node.driver.close()))
})

describe('the gossip driver', () => {
  test('binds UDP and TCP to the same free port', async () => {
    const { sockets } = await startNode()
    expect(sockets.address.port).toBeGreaterThan(0)
    expect(sockets.udp.port).toBe(sockets.address.port)
    expect(sockets.tcp.port).toBe(sockets.address.port)
    expect(sockets.receiveBufferBytes).toBeGreaterThan(0)
  })

  test('a taken port is an error at once, whichever protocol holds it', async () => {
    const { sockets } = await startNode()
    await expect(bindGossipSockets(sockets.address)).rejects.toMatchObject({ code: 'EADDRINUSE' })
    const udp = createSocket('udp4')
    const port = await new Promise<number>(resolve =>
      udp.bind(0, '127.0.0.1', () => resolve(udp.address().port)),
    )
    await expect(bindGossipSockets({ host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
    udp.close()
  })

  test('packets travel between two drivers with the sender’s address', async () => {
    const one = await startNode()
    const two = await startNode()
    one.driver.perform(() =>
      one.core.queue({ kind: 'sendPacket', to: two.sockets.address, bytes: bytes('hello') }),
    )
    const [packet] = await until(
      'a packet',
      () => two.core.of('packet').length > 0 && two.core.of('packet'),
    )
    expect(packet).toEqual({ kind: 'packet', text: 'hello', from: one.sockets.address })
    expect(one.driver.stats().udp).toMatchObject({ packetsOut: 1, bytesOut: 5 })
    expect(two.driver.stats().udp).toMatchObject({ packetsIn: 1, bytesIn: 5 })
  })

  test('a stream carries a request and its answer, and both sides forget it', async () => {
    const one = await startNode()
    const two = await startNode()
    two.core.react = event => {
      if (event.kind !== 'data') return []
      const answer = bytes(`answer to ${event.text}`)
      return [
        { kind: 'writeStream', stream: event.stream, bytes: answer },
        { kind: 'closeStream', stream: event.stream },
      ]
    }
    const stream = one.core.newStream()
    one.driver.perform(() => one.core.queue(openStream(stream, two.sockets.address, 'question')))
    await until('the end', () => one.core.of('end').length > 0)
    const received = one.core.of('data').map(event => event.text)
    expect(received.join('')).toBe('answer to question')
    expect(one.core.of('end')).toEqual([{ kind: 'end', stream, error: null }])
    one.driver.perform(() => one.core.queue({ kind: 'closeStream', stream }))
    expect(two.core.of('end')).toEqual([])
  })

  test('a large stream arrives whole, a chunk per turn of the loop', async () => {
    const one = await startNode()
    const two = await startNode()
    const turns = new Set<number>()
    let turn = 0
    let counting = true
    const count = () => {
      turn += 1
      if (counting) setImmediate(count)
    }
    count()
    two.core.react = event => {
      if (event.kind === 'data') turns.add(turn)
      return []
    }
    const stream = one.core.newStream()
    const text = 'x'.repeat(2_000_000)
    one.driver.perform(() => one.core.queue(openStream(stream, two.sockets.address, text)))
    await until('all bytes', () => streamText(two).length === text.length)
    counting = false
    expect(turns.size).toBe(two.core.of('data').length)
  })

  test('a dial that is refused ends the stream with the reason', async () => {
    const one = await startNode()
    const gone = await bindGossipSockets(loopback)
    await Promise.all([gone.tcp.shutdown(), gone.udp.close()])
    const stream = one.core.newStream()
    one.driver.perform(() => one.core.queue(openStream(stream, gone.address, 'anyone?')))
    await until('the end', () => one.core.of('end').length > 0)
    expect(one.core.of('end')).toEqual([{ kind: 'end', stream, error: 'ECONNREFUSED' }])
  })

  test('a dial that nobody answers ends when its time is over', async () => {
    const one = await startNode()
    const silent = await startNode()
    const stream = one.core.newStream()
    one.driver.perform(() =>
      one.core.queue({ ...openStream(stream, silent.sockets.address, 'anyone?'), timeoutMs: 50 }),
    )
    await until('the end', () => one.core.of('end').length > 0)
    expect(one.core.of('end')).toEqual([{ kind: 'end', stream, error: 'timed out' }])
    expect(one.driver.stats().tcp.timedOut).toBe(1)
    await until('the other side’s end', () => silent.core.of('end').length > 0)
  })

  test('more streams than the maximum are refused and counted, and room comes back', async () => {
    const { core, driver, sockets } = await startNode()
    const clients = Array.from({ length: 140 }, () => connect(sockets.address.port, '127.0.0.1'))
    for (const client of clients) client.on('error', () => {})
    await until(
      'all settled',
      () => core.of('accepted').length + driver.stats().tcp.refused === 140,
    )
    expect(core.of('accepted')).toHaveLength(128)
    for (const client of clients) client.destroy()
    await until('ends', () => core.of('end').length === 128)
    core.queue(...core.of('end').map(({ stream }) => ({ kind: 'closeStream' as const, stream })))
    driver.perform(() => {})
    const late: Socket[] = []
    await until('room', () => {
      late.push(connect(sockets.address.port, '127.0.0.1').on('error', () => {}))
      return core.of('accepted').length > 128
    })
    for (const client of late) client.destroy()
  })

  test('packets and streams from outside the allowed networks are not read', async () => {
    const one = await startNode()
    const two = await startNode(['192.0.2.0/24'])
    const stream = one.core.newStream()
    one.driver.perform(() =>
      one.core.queue(
        { kind: 'sendPacket', to: two.sockets.address, bytes: bytes('hello') },
        openStream(stream, two.sockets.address, 'hello'),
      ),
    )
    await until('both', () => two.driver.stats().notAllowed === 2)
    expect(two.core.events).toEqual([])
  })

  test('what is not for sockets goes to the listener, in order', async () => {
    const { core, driver, notices } = await startNode()
    const settled: Notice = { kind: 'exchangeSettled', to: loopback, error: null }
    const left: Notice = { kind: 'leaveSettled' }
    driver.perform(() => core.queue(settled, left))
    expect(notices).toEqual([settled, left])
  })

  test('an address that cannot be sent to is counted, not thrown', async () => {
    const { core, driver } = await startNode()
    driver.perform(() =>
      core.queue(
        { kind: 'sendPacket', to: { host: '127.0.0.1', port: 0 }, bytes: bytes('x') },
        { kind: 'sendPacket', to: { host: '2001:db8::1', port: 7946 }, bytes: bytes('x') },
        { kind: 'sendPacket', to: { host: 'no address', port: 7946 }, bytes: bytes('x') },
        openStream(core.newStream(), { host: '127.0.0.1', port: 0 }, 'x'),
      ),
    )
    await until('the end', () => core.of('end').length === 1)
    expect(driver.stats().udp.sendErrors).toBe(3)
  })
})

describe('the one timer', () => {
  test('advances the core when its deadline comes, not before', async () => {
    const { core, driver } = await startNode()
    const dueMs = performance.now() + 60
    core.deadlineMs = dueMs
    driver.poke()
    await until('an advance at the deadline', () =>
      core.of('advance').some(at => at.monotonicMs >= dueMs),
    )
    const early = core.of('advance').filter(at => at.monotonicMs < dueMs - 2)
    expect(early).toEqual([])
  })

  test('a deadline that moved closer is met after a poke', async () => {
    const { core, driver } = await startNode()
    // Without the poke it would be met after 150 ms; the machine stands still now and then.
    const latenessMs: number[] = []
    for (let round = 0; round < 10; round += 1) {
      const seen = core.of('advance').length
      core.deadlineMs = performance.now() + 150
      driver.poke()
      core.deadlineMs = performance.now()
      driver.poke()
      const pokedMs = performance.now()
      await until('an advance', () => core.of('advance').length > seen, 20_000, 1)
      latenessMs.push(core.of('advance')[seen]!.monotonicMs - pokedMs)
    }
    expect(Math.min(...latenessMs)).toBeLessThan(100)
  })

  test('work that stays due leaves the loop to others in between', async () => {
    const { core, driver } = await startNode()
    const alwaysDue = () => {
      core.deadlineMs = 0
      return []
    }
    core.react = alwaysDue
    alwaysDue()
    driver.poke()
    const startMs = performance.now()
    const fired = await new Promise<boolean>(resolve => setTimeout(() => resolve(true), 30))
    expect(fired).toBe(true)
    expect(core.of('advance').length).toBeLessThan(performance.now() - startMs + 10)
  })

  test('after a stall the sockets are read before time goes on', async () => {
    const { core, driver, sockets } = await startNode()
    const sent = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(senderSource, {
      eval: true,
      workerData: { port: sockets.address.port, count: 100, sent },
    })
    await new Promise(resolve => worker.once('message', resolve))
    core.deadlineMs = performance.now() + 20
    driver.poke()
    worker.postMessage('send')
    // The loop stands still while the other thread fills the socket.
    const resumeMs = performance.now() + stallMs + 150
    while (performance.now() < resumeMs || Atomics.load(sent, 0) < 100);
    await until('an advance', () => core.of('advance').length > 0)
    const order = core.events.map((event: CoreEvent) => event.kind)
    expect(order.indexOf('advance')).toBe(100)
    expect(driver.stats().stalls).toBeGreaterThanOrEqual(1)
    await worker.terminate()
  })
})

/** Sends `count` packets from a thread of its own when told to. */
const senderSource = `
  const { parentPort, workerData } = require('node:worker_threads')
  const socket = require('node:dgram').createSocket('udp4')
  parentPort.on('message', () => {
    for (let index = 0; index < workerData.count; index += 1) {
      const count = () => Atomics.add(workerData.sent, 0, 1)
      socket.send(String(index), workerData.port, '127.0.0.1', count)
    }
  })
  socket.bind(0, '127.0.0.1', () => parentPort.postMessage('ready'))
`

function openStream(stream: number, to: Address, text: string) {
  return { kind: 'openStream' as const, stream, to, bytes: bytes(text), timeoutMs: 5_000 }
}

function streamText(node: Node): string {
  return node.core
    .of('data')
    .map(event => event.text)
    .join('')
}
