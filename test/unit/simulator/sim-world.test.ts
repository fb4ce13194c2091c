import { describe, expect, it } from 'vitest'
import { parseScenario } from '../../../src/simulator/parse-scenario.js'
import { SimWorld } from '../../../src/simulator/sim-world.js'
import { type FakeNode, fakeFleet } from './fake-node.js'

function world(text: string, pods = 3) {
  const parsed = parseScenario(`
pods: ${pods}
duration: 10s
rule: { limit: 1000/1s }
traffic: [{ pods: all, rate: 100 }]
network: { latency: 2ms, jitter: 0ms }
${text}`)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  const { nodes, makeNode } = fakeFleet(pods)
  return { nodes, world: new SimWorld(parsed.scenario, 1, makeNode) }
}

/** Sends a packet from one node to another, as an effect of its next step. */
function sendAt(of: ReturnType<typeof world>, from: number, to: number, byte: number): void {
  const sender = of.world.cluster.processes[from]!
  sender.step(node => {
    const target = of.world.cluster.processes[to]!.address
    ;(node as FakeNode).effects.push({
      kind: 'sendPacket',
      to: target,
      bytes: Uint8Array.of(byte),
    })
  })
}

function packetsOf(node: FakeNode): string[] {
  return node.log.filter(line => line.startsWith('packet'))
}

describe('SimWorld', () => {
  it('starts the pods before time 0, tells them of each other and brings no traffic until then', () => {
    const of = world('')
    of.world.runUntil(0)
    expect(of.nodes.map(node => node.expected)).toEqual([
      ['10.0.0.1', '10.0.0.2'],
      ['10.0.0.0', '10.0.0.2'],
      ['10.0.0.0', '10.0.0.1'],
    ])
    expect(of.nodes.flatMap(node => node.log).filter(line => line === 'decide')).toEqual([])
    of.world.runUntil(1000)
    const { offered, admitted } = of.world.measures.finish()
    expect(Math.abs(offered - 300)).toBeLessThan(80)
    expect(admitted).toBe(offered)
  })

  it('gives every pod its own clocks, which run on with virtual time', () => {
    const of = world('')
    of.world.runUntil(5000)
    const before = of.nodes.map(node => [node.monotonicMs, node.wallMs] as const)
    expect(new Set(before.map(([monotonicMs]) => Math.floor(monotonicMs))).size).toBe(3)
    expect(new Set(before.map(([, wallMs]) => wallMs)).size).toBe(3)
    of.world.runUntil(10_000)
    of.nodes.forEach((node, i) => {
      const [monotonicMs, wallMs] = before[i]!
      const skewMs = node.monotonicMs - monotonicMs - (node.wallMs - wallMs)
      expect(Math.abs(skewMs)).toBeLessThan(0.5)
    })
  })

  it('delivers packets after the latency and none across a partition until it heals', () => {
    const of = world('events: [{ at: 1s, partition: [[0], [1, 2]], until: 2s }]')
    of.world.runUntil(500)
    sendAt(of, 0, 1, 1)
    of.world.runUntil(501.9)
    expect(packetsOf(of.nodes[1]!)).toEqual([])
    of.world.runUntil(502.1)
    expect(packetsOf(of.nodes[1]!)).toEqual(['packet 1 from 10.0.0.0'])
    of.world.runUntil(1500)
    sendAt(of, 0, 1, 2)
    sendAt(of, 2, 1, 3)
    of.world.runUntil(2500)
    sendAt(of, 0, 1, 4)
    of.world.runUntil(3000)
    expect(packetsOf(of.nodes[1]!).slice(1)).toEqual([
      'packet 3 from 10.0.0.2',
      'packet 4 from 10.0.0.0',
    ])
  })

  it('cuts one direction of a link and leaves the other', () => {
    const of = world('events: [{ at: 1s, block: { from: [0], to: [1] }, until: 9s }]')
    of.world.runUntil(1500)
    sendAt(of, 0, 1, 1)
    sendAt(of, 1, 0, 2)
    of.world.runUntil(2000)
    expect(packetsOf(of.nodes[1]!)).toEqual([])
    expect(packetsOf(of.nodes[0]!)).toEqual(['packet 2 from 10.0.0.1'])
  })

  it('lets a paused pod stand still and then handle sockets, requests and its timer, in this order', () => {
    const of = world('events: [{ at: 1s, pause: [1], until: 3s }]')
    of.world.runUntil(990)
    const paused = of.nodes[1]!
    of.world.cluster.processes[1]!.step((node, monotonicMs) => {
      ;(node as FakeNode).deadlineMs = monotonicMs + 500
    })
    of.world.runUntil(1000.001)
    paused.log.length = 0
    of.world.runUntil(2000)
    sendAt(of, 0, 1, 7)
    of.world.runUntil(2999)
    expect(paused.log).toEqual([])
    of.world.runUntil(3000.001)
    expect(paused.log[0]).toBe('packet 7 from 10.0.0.0')
    const waited = paused.log.filter(line => line === 'decide').length
    // Two seconds at 100 requests a second.
    expect(Math.abs(waited - 200)).toBeLessThan(60)
    expect(paused.log.slice(1, 1 + waited)).toEqual(Array(waited).fill('decide'))
    expect(paused.log[1 + waited]).toBe('advance')
    expect(paused.expected).toEqual(['10.0.0.0', '10.0.0.2'])
  })

  it('drops packets that do not fit into the socket of a paused pod', () => {
    const of = world('events: [{ at: 1s, pause: [1], until: 3s }]')
    of.world.runUntil(2000)
    for (let i = 0; i < 400; i++) sendAt(of, 0, 1, i % 256)
    of.world.runUntil(4000)
    const { packetsDropped } = of.world.cluster.processes[1]!
    expect(packetsDropped).toBeGreaterThan(0)
    expect(packetsOf(of.nodes[1]!)).toHaveLength(400 - packetsDropped)
  })

  it('offers a killed pod nothing and takes it off the list of known pods', () => {
    const of = world('events: [{ at: 1s, kill: [0] }]')
    of.world.runUntil(1000.001)
    const decided = of.nodes[0]!.log.length
    sendAt(of, 1, 0, 1)
    of.world.runUntil(5000)
    expect(of.nodes[0]!.log).toHaveLength(decided)
    expect(of.nodes[1]!.expected).toEqual(['10.0.0.2'])
    expect(of.world.podSeconds()).toBeCloseTo(1 + 5 + 5, 6)
  })

  it('lets a leaving pod flush its totals and say goodbye before it ends', () => {
    const of = world('events: [{ at: 1s, leave: [2] }]')
    of.world.runUntil(5000)
    expect(of.nodes[2]!.log.slice(-3)).toEqual(['draining', 'flush', 'leave'])
    expect(of.world.cluster.processes[2]!.running).toBe(false)
    expect(of.nodes[0]!.expected).toEqual(['10.0.0.1'])
  })

  it('gives a joining pod traffic once it has the state, and not before', () => {
    const of = world('events: [{ at: 1s, join: 1 }]')
    of.world.runUntil(1500)
    const joined = of.nodes[3]!
    expect(joined.log[1]).toMatch(/^join (10\.0\.0\.[012] ?){3}$/)
    expect(joined.log).not.toContain('decide')
    expect(joined.expected).toEqual(['10.0.0.0', '10.0.0.1', '10.0.0.2'])
    joined.isSynced = true
    of.world.runUntil(1600)
    expect(joined.log).toContain('decide')
    expect(of.nodes[0]!.expected).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
  })

  it('makes a joining pod ready after two seconds without the state', () => {
    const of = world('events: [{ at: 1s, join: 1 }]')
    of.world.runUntil(2990)
    expect(of.nodes[3]!.log).not.toContain('decide')
    of.world.runUntil(3200)
    expect(of.nodes[3]!.log).toContain('decide')
  })

  it('restarts a node under its name, in a new process at a new address', () => {
    const of = world('events: [{ at: 1s, restart: [1] }]')
    of.world.runUntil(5000)
    expect(of.nodes).toHaveLength(4)
    expect(of.nodes[3]!.identity).toMatchObject({ node: 'pod-1', address: { host: '10.0.0.3' } })
    expect(of.nodes[3]!.identity.startWallMs).toBeGreaterThan(of.nodes[1]!.identity.startWallMs)
    expect(of.nodes[0]!.expected).toEqual(['10.0.0.2', '10.0.0.3'])
    expect(of.nodes[3]!.log).toContain('decide')
  })

  it('wakes a node at its deadline, never earlier, and at most a timer step later', () => {
    const of = world('', 1)
    of.world.runUntil(100)
    let dueMs = 0
    of.world.cluster.processes[0]!.step((node, monotonicMs) => {
      dueMs = monotonicMs + 25.3
      ;(node as FakeNode).deadlineMs = dueMs
    })
    of.world.runUntil(125.2)
    expect(of.nodes[0]!.log).not.toContain('advance')
    of.world.runUntil(126.1)
    expect(of.nodes[0]!.log).toContain('advance')
  })
})

describe('streams', () => {
  function dial(of: ReturnType<typeof world>, to: number, timeoutMs = 1000): void {
    const target = of.world.cluster.processes[to]!.address
    of.world.cluster.processes[0]!.step(node => {
      const fake = node as FakeNode
      const bytes = Uint8Array.of(1)
      fake.effects.push({ kind: 'openStream', stream: 5, to: target, bytes, timeoutMs })
    })
  }

  function streamLog(node: FakeNode): string[] {
    return node.log.filter(line => /^(accept|data|end)/.test(line))
  }

  it('carry bytes both ways and end in order', () => {
    const of = world('')
    of.world.runUntil(100)
    dial(of, 1)
    of.world.runUntil(110)
    expect(streamLog(of.nodes[1]!)).toEqual(['accept 10.0.0.0', 'data 100 1'])
    of.world.cluster.processes[1]!.step(node => {
      const fake = node as FakeNode
      fake.effects.push({ kind: 'writeStream', stream: 100, bytes: Uint8Array.of(2) })
      fake.effects.push({ kind: 'closeStream', stream: 100 })
    })
    of.world.runUntil(5000)
    expect(streamLog(of.nodes[0]!)).toEqual(['data 5 2', 'end 5 in order'])
  })

  it('time out across a cut link and against a silent pod', () => {
    const of = world('events: [{ at: 1s, block: { from: [1], to: [0] }, until: 9s }]')
    of.world.runUntil(1500)
    dial(of, 1)
    of.world.runUntil(2499)
    expect(streamLog(of.nodes[0]!)).toEqual([])
    of.world.runUntil(2501)
    expect(streamLog(of.nodes[0]!)).toEqual(['end 5 timeout'])
  })

  it('are refused by a pod that is gone', () => {
    const of = world('events: [{ at: 1s, kill: [1] }]')
    of.world.runUntil(1500)
    dial(of, 1)
    of.world.runUntil(1510)
    expect(streamLog(of.nodes[0]!)).toEqual(['end 5 connection refused'])
  })

  it('break when the other side dies', () => {
    const of = world('events: [{ at: 1s, kill: [1] }]')
    of.world.runUntil(990)
    dial(of, 1, 5000)
    of.world.runUntil(1100)
    expect(streamLog(of.nodes[0]!)).toEqual(['end 5 connection reset'])
  })

  it('wait at a paused pod until it runs again', () => {
    const of = world('events: [{ at: 1s, pause: [1], until: 2s }]')
    of.world.runUntil(1500)
    dial(of, 1, 5000)
    of.world.runUntil(1999)
    expect(streamLog(of.nodes[1]!)).toEqual([])
    of.world.runUntil(2001)
    expect(streamLog(of.nodes[1]!)).toEqual(['accept 10.0.0.0', 'data 100 1'])
  })
})
