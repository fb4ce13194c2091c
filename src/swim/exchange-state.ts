/**
 * The contents of a push/pull: what this node tells, and what it takes over (memberlist net.go,
 * state.go).
 */
import { hostOf } from './address-bytes.js'
import type { SwimContext } from './context.js'
import type { Member } from './member.js'
import { memberStateOf, type NodeRecord, type PushPull, wireStateOf } from './messages.js'
import type { Transitions } from './transitions.js'
import { incompatibility } from './versions.js'

const empty = new Uint8Array(0)

/** Everybody this node knows, in the order of its ring, and the application's state. */
export function ownState(context: SwimContext, join: boolean, nowMs: number): PushPull {
  const { table, delegate, options, effects } = context
  const nodes = table.ring().map(entry => recordOf(entry.member))
  let userState = delegate.localState(join, nowMs)
  if (userState.length > options.exchangeBytesMax / 2) {
    effects.stats.localStateTooLarge += 1
    userState = empty
  }
  return { kind: 'pushPull', join, nodes, userState }
}

/** Takes over a peer's state; a reason if it was refused as a whole. */
export function mergeExchange(
  context: SwimContext,
  transitions: Transitions,
  message: PushPull,
  join: boolean,
  nowMs: number,
): string | null {
  const { table, delegate } = context
  const error = incompatibility(
    message.nodes,
    table.ring().map(entry => entry.member),
  )
  if (error !== null) return error
  if (join && delegate.notifyMerge !== undefined) {
    const veto = delegate.notifyMerge(message.nodes.flatMap(record => memberOf(record, nowMs)))
    if (veto !== null) return veto
  }
  transitions.merge(message.nodes, nowMs)
  if (message.userState.length > 0) delegate.mergeRemoteState(message.userState, join, nowMs)
  return null
}

function recordOf(member: Member): NodeRecord {
  return {
    name: member.name,
    addressBytes: member.addressBytes,
    port: member.address.port,
    incarnation: member.incarnation,
    meta: member.meta,
    state: wireStateOf(member.state),
    versions: member.versions,
  }
}

/** A record as the delegate sees it; none if its address or state makes no sense. */
function memberOf(record: NodeRecord, nowMs: number): Member[] {
  const addressBytes = record.addressBytes ?? empty
  const host = hostOf(addressBytes)
  const state = memberStateOf(record.state)
  if (host === null || state === null) return []
  return [
    {
      name: record.name,
      address: { host, port: record.port },
      addressBytes,
      meta: record.meta ?? empty,
      state,
      incarnation: record.incarnation,
      versions: record.versions ?? empty,
      stateChangedAtMs: nowMs,
    },
  ]
}
