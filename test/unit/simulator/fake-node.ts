/**
 * Small nodes for tests of the world around them: they record what reaches them, admit as they are
 * told and know their peers from the beginning.
 */
import type { NodeFactory, NodeIdentity, SimNode } from '../../../src/simulator/sim-node.js'
import type { Effect } from '../../../src/swim/effects.js'
import type { Address } from '../../../src/vocabulary.js'

export class FakeNode implements SimNode {
  readonly log: string[] = []
  readonly effects: Effect[] = []
  expected: readonly string[] = []
  deadlineMs = Number.POSITIVE_INFINITY
  isSynced = false
  admits = true
  monotonicMs = 0
  wallMs = 0
  private streams = 0

  constructor(
    readonly identity: NodeIdentity,
    private readonly peersAtStart: number,
  ) {}

  start(): void {
    this.log.push('start')
  }

  decide(_facts: unknown, _via: unknown, monotonicMs: number, wallMs: number) {
    this.monotonicMs = monotonicMs
    this.wallMs = wallMs
    this.log.push('decide')
    return { allowed: this.admits }
  }

  join(addresses: readonly Address[]): void {
    this.log.push(`join ${addresses.map(address => address.host).join(' ')}`)
  }

  setExpectedPeers(addresses: readonly Address[] | null): void {
    this.expected = (addresses ?? []).map(address => address.host)
  }

  handlePacket(bytes: Uint8Array, from: Address): void {
    this.log.push(`packet ${bytes.join(',')} from ${from.host}`)
  }

  acceptStream(from: Address): number {
    this.log.push(`accept ${from.host}`)
    return 100 + this.streams++
  }

  handleStreamData(stream: number, bytes: Uint8Array): void {
    this.log.push(`data ${stream} ${bytes.join(',')}`)
  }

  handleStreamEnd(stream: number, error: string | null): void {
    this.log.push(`end ${stream} ${error ?? 'in order'}`)
  }

  advance(monotonicMs: number): void {
    this.log.push('advance')
    if (monotonicMs >= this.deadlineMs) this.deadlineMs = Number.POSITIVE_INFINITY
  }

  nextDeadlineMs(): number {
    return this.deadlineMs
  }

  takeEffects(): Effect[] {
    return this.effects.splice(0)
  }

  synced(): boolean {
    return this.isSynced
  }

  setDraining(): void {
    this.log.push('draining')
  }

  flush(): void {
    this.log.push('flush')
  }

  leave(): void {
    this.log.push('leave')
    this.effects.push({ kind: 'leaveSettled' })
  }

  alivePeers(): number {
    return this.peersAtStart
  }
}

/** A factory and the nodes that it made, in order. */
export function fakeFleet(pods: number): { nodes: FakeNode[]; makeNode: NodeFactory } {
  const nodes: FakeNode[] = []
  const makeNode: NodeFactory = identity => {
    const node = new FakeNode(identity, pods - 1)
    nodes.push(node)
    return node
  }
  return { nodes, makeNode }
}
