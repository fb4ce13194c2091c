/**
 * Everything counted since start, as one flat record of numbers: monotone counters, except the
 * gauges at the end, which `Swim.stats()` refreshes. The metrics room gives them their outside
 * names.
 */
import { wireErrors } from './codec/wire-error.js'

/** Message kinds as they are counted, in packets and in streams. */
export const countedKinds = [
  'ping',
  'indirectPing',
  'ack',
  'nack',
  'suspect',
  'alive',
  'dead',
  'user',
] as const

export type CountedKind = (typeof countedKinds)[number]

/** Why a packet or a message was ignored; wire errors come from the codec. */
export const dropReasons = [
  ...wireErrors,
  /** The sender's address is not allowed. */
  'notAllowed',
  /** The member table is full. */
  'membersMax',
  /** An alive whose address is not 4 or 16 bytes. */
  'addressMalformed',
  /** An alive whose versions are not six bytes with 0 < pmin <= pmax. */
  'versionsMalformed',
  /** An alive without a name, or with one of more than 1024 characters. */
  'nameMalformed',
  /** An alive with more than 4096 bytes of meta; 512 is what a node may announce. */
  'metaTooLarge',
  /** An incarnation far above anything its owner can have announced. */
  'incarnationImplausible',
  /** The delegate refused the member. */
  'vetoed',
  /** A ping for another name than ours. */
  'wrongName',
  /** Too many pings are held open for others. */
  'relaysMax',
] as const

export type DropReason = (typeof dropReasons)[number]

const counterNames = [
  'packetsIn',
  'packetsOut',
  'packetBytesIn',
  'packetBytesOut',
  'streamsOpened',
  'streamsAccepted',
  /** At the limit of streams, or from an address that is not allowed. */
  'streamsRefused',
  /** Streams that failed: could not connect, timed out, malformed. */
  'streamErrors',
  'streamBytesIn',
  'streamBytesOut',
  'streamUserMessagesIn',
  /** Of the payloads, in packets and streams. */
  'userMessageBytesIn',
  'streamUserMessagesOut',
  'streamPingsIn',
  'streamPingsOut',
  'streamErrorMessagesIn',
  'streamErrorMessagesOut',
  'pushPullsOpened',
  'pushPullsAccepted',
  /** Of those opened: no usable answer, or the merge was refused. */
  'pushPullsFailed',
  'pushPullBytesIn',
  'pushPullBytesOut',
  'pushPullNodesIn',
  /** Push/pulls, either way, whose versions did not fit or that the delegate refused. */
  'mergesRefused',
  /** The delegate's state did not fit the exchange and was left out. */
  'localStateTooLarge',
  'probes',
  /** Probes sent while the health score was above 0. */
  'probesDegraded',
  /** Probes that asked others because the direct ack did not come in time. */
  'probesIndirect',
  /** An ack came after that, late or through a relay. */
  'probesRescuedLate',
  /** Only TCP answered: UDP is blocked somewhere. */
  'probesRescuedByStream',
  'probesFailed',
  'nacksExpected',
  'nacksMissing',
  /** Pings sent for others. */
  'relays',
  'suspicions',
  'suspicionsConfirmed',
  /** Ran out: the member was declared dead. */
  'suspicionsExpired',
  /** The member refuted. */
  'suspicionsCleared',
  /** Own refutations. */
  'refutations',
  'conflicts',
  /** Dead or left names that came back under another address. */
  'addressesReclaimed',
  'membersJoined',
  'membersUpdated',
  'membersDead',
  'membersLeft',
  'membersReaped',
  /** Times this process stood still for so long that judgement on others was put off. */
  'stalls',
  'userMessagesTooLarge',
] as const

/** As of the call of `Swim.stats()`. */
const gaugeNames = [
  'broadcastQueueLength',
  'broadcastQueueBytes',
  'broadcastsDropped',
  'userBroadcastQueueLength',
  'userBroadcastQueueBytes',
  'healthScore',
  'members',
  'streamsOpen',
] as const

type PerKind =
  | `messagesIn${Capitalize<CountedKind>}`
  | `messagesOut${Capitalize<CountedKind>}`
  | `dropped${Capitalize<DropReason>}`

export type SwimStats = Record<
  (typeof counterNames)[number] | (typeof gaugeNames)[number] | PerKind,
  number
>

function capitalized<T extends string>(text: T): Capitalize<T> {
  return (text.slice(0, 1).toUpperCase() + text.slice(1)) as Capitalize<T>
}

function namesOf<K extends string, P extends string>(prefix: P, kinds: readonly K[]) {
  const names = kinds.map(kind => [kind, `${prefix}${capitalized(kind)}`])
  return Object.fromEntries(names) as { [Kind in K]: `${P}${Capitalize<Kind>}` }
}

/** The name of a kind's counter; looked up, not built, because it happens once per message. */
export const messagesInNames = namesOf('messagesIn', countedKinds)
export const messagesOutNames = namesOf('messagesOut', countedKinds)
export const droppedNames = namesOf('dropped', dropReasons)

/** All zero. */
export function emptyStats(): SwimStats {
  const names = [
    ...counterNames,
    ...gaugeNames,
    ...Object.values(messagesInNames),
    ...Object.values(messagesOutNames),
    ...Object.values(droppedNames),
  ]
  return Object.fromEntries(names.map(name => [name, 0])) as SwimStats
}
