/**
 * The settings of a node under memberlist's own names (config.go) in camelCase, with the unit
 * appended where there is one. Three presets carry the original's values. Settings marked "ours"
 * have no counterpart in Go.
 */
import type { Address, MemberName } from '../vocabulary.js'

/** What only the caller can know. */
export interface SwimIdentity {
  /**
   * Unique in the cluster, 1..128 bytes of ASCII, no `/`. A second node of the same name is a
   * conflict.
   */
  readonly name: MemberName
  /** Where peers reach this node by UDP and TCP. IPv4 is announced in its 4 byte form, always. */
  readonly advertise: Address
}

/** The part of the options that presets fill in. */
export interface SwimSettings {
  // --- who belongs together
  /**
   * 0..255 bytes, default empty. Packets and streams of another label are dropped, so that clusters
   * which share a network never merge. Costs 2 bytes plus its length in every packet.
   */
  readonly label: string
  /**
   * Default false. True is for a network in front that takes the label headers off: input must then
   * come without one, while the label still counts as authenticated data of encrypted input.
   */
  readonly skipInboundLabelCheck: boolean
  /**
   * AES keys of 16, 24 or 32 bytes, primary first; default none, which means plaintext. The primary
   * encrypts, all decrypt. Changed at run time with `Swim.setKeyring`.
   */
  readonly keys: readonly Uint8Array[]
  /**
   * Default true: with keys, plaintext input is dropped. False only while encryption is rolled out.
   */
  readonly gossipVerifyIncoming: boolean
  /** Default true: with keys, output is encrypted. False only while encryption is rolled out. */
  readonly gossipVerifyOutgoing: boolean
  /**
   * Ours (Go: CIDRsAllowed). Whose packets and streams are read and who may be a member; default
   * anyone.
   */
  readonly allowed?: (host: string) => boolean

  // --- protocol
  /** 1..5, default 2: the version spoken. 1 means no ports in messages and encryption version 0. */
  readonly protocolVersion: number
  /** The application's own protocol range and version, 0..255 each; default 0, not used. */
  readonly delegateProtocolMin: number
  readonly delegateProtocolMax: number
  readonly delegateProtocolVersion: number
  /**
   * Default true: LZW for membership packets that shrink and for every stream. All nodes can read
   * it.
   */
  readonly enableCompression: boolean
  /**
   * Ours, default false: try LZW on best-effort user messages too. Go does whenever compression is
   * on.
   */
  readonly compressUserPackets: boolean

  // --- failure detection
  /**
   * One member is probed per interval. Raise it and failures are noticed later while each node
   * sends fewer pings. Must exceed `probeTimeoutMs`.
   */
  readonly probeIntervalMs: number
  /**
   * How long the direct ack may take, > a round trip at the 99th percentile. Then others are asked.
   */
  readonly probeTimeoutMs: number
  /** Members asked to ping on our behalf. Raise it and packet loss causes fewer suspicions. */
  readonly indirectChecks: number
  /** Default false. True leaves out the TCP ping that runs beside the indirect ones. */
  readonly disableTcpPings: boolean
  /**
   * The scores of the local health reach 0..this - 1, 8 by default; the probe interval is
   * multiplied by score + 1. 1 turns the awareness off (Lifeguard, LHA-Probe).
   */
  readonly awarenessMaxMultiplier: number
  /**
   * A suspicion that others confirm runs for this many probe intervals, times log10 of the
   * cluster's size. Raise it and members get more time to refute while real failures are declared
   * later.
   */
  readonly suspicionMult: number
  /**
   * An unconfirmed suspicion runs this many times longer (Lifeguard, LHA-Suspicion). 1 turns that
   * off.
   */
  readonly suspicionMaxTimeoutMult: number
  /**
   * Go's default 0 is off. How long after a death its name may come back under another address;
   * without it, not before the dead entry is forgotten. Below the time a partition lasts, two nodes
   * may fight.
   */
  readonly deadNodeReclaimTimeMs: number

  // --- dissemination
  /** How often queued broadcasts go out. Lower spreads news faster at more packets per second. */
  readonly gossipIntervalMs: number
  /** To how many random members at each tick; 0 turns gossip off. */
  readonly gossipNodes: number
  /** Dead members are told for this long (so that they can refute), and remembered as long. */
  readonly gossipToTheDeadTimeMs: number
  /** Each broadcast is sent this many times log10 of the cluster's size. */
  readonly retransmitMult: number
  /** Full state exchange with one random member, stretched in clusters above 32 nodes; 0 is off. */
  readonly pushPullIntervalMs: number
  /** For a whole stream exchange. Go: TCPTimeout. */
  readonly tcpTimeoutMs: number
  /**
   * 1400, to fit an Ethernet frame with the headers of any tunnel. The 5 bytes of a CRC come on
   * top.
   */
  readonly udpBufferSizeBytes: number

  // --- bounds, ours
  /** Entries of the member table, dead ones included; 10,000. More are ignored and counted. */
  readonly membersMax: number
  /**
   * Streams open at once in both directions; 128, as Go's limit of push/pulls. More are refused.
   */
  readonly streamsMax: number
  /** Broadcasts waiting in each of the two queues; 4,096. The most often sent ones make way. */
  readonly broadcastQueueMax: number
  /**
   * Bytes of one exchange, as read and after decompression; 20 MiB, Go's limit of encrypted
   * streams.
   */
  readonly exchangeBytesMax: number
  /** Pings held open for other members; 256. More requests are not relayed. */
  readonly relaysMax: number
}

export type SwimOptions = SwimIdentity & SwimSettings

/** memberlist's DefaultLANConfig: one data centre, round trips of a few milliseconds. */
export const lanDefaults: SwimSettings = {
  label: '',
  skipInboundLabelCheck: false,
  keys: [],
  gossipVerifyIncoming: true,
  gossipVerifyOutgoing: true,
  protocolVersion: 2,
  delegateProtocolMin: 0,
  delegateProtocolMax: 0,
  delegateProtocolVersion: 0,
  enableCompression: true,
  compressUserPackets: false,
  probeIntervalMs: 1000,
  probeTimeoutMs: 500,
  indirectChecks: 3,
  disableTcpPings: false,
  awarenessMaxMultiplier: 8,
  suspicionMult: 4,
  suspicionMaxTimeoutMult: 6,
  deadNodeReclaimTimeMs: 0,
  gossipIntervalMs: 200,
  gossipNodes: 3,
  gossipToTheDeadTimeMs: 30_000,
  retransmitMult: 4,
  pushPullIntervalMs: 30_000,
  tcpTimeoutMs: 10_000,
  udpBufferSizeBytes: 1400,
  membersMax: 10_000,
  streamsMax: 128,
  broadcastQueueMax: 4096,
  exchangeBytesMax: 20 * 1024 * 1024,
  relaysMax: 256,
}

/** memberlist's DefaultWANConfig: several regions. */
export const wanDefaults: SwimSettings = {
  ...lanDefaults,
  tcpTimeoutMs: 30_000,
  suspicionMult: 6,
  pushPullIntervalMs: 60_000,
  probeTimeoutMs: 3000,
  probeIntervalMs: 5000,
  gossipNodes: 4,
  gossipIntervalMs: 500,
  gossipToTheDeadTimeMs: 60_000,
}

/** memberlist's DefaultLocalConfig: loopback, tests. */
export const localDefaults: SwimSettings = {
  ...lanDefaults,
  tcpTimeoutMs: 1000,
  indirectChecks: 1,
  retransmitMult: 2,
  suspicionMult: 3,
  pushPullIntervalMs: 15_000,
  probeTimeoutMs: 200,
  gossipIntervalMs: 100,
  gossipToTheDeadTimeMs: 15_000,
}

/** The protocol versions this implementation understands. */
export const protocolVersionMin = 1
export const protocolVersionMax = 5

/** What is wrong with the options, in words; empty when they can be used. */
export function optionErrors(options: SwimOptions): string[] {
  const errors: string[] = []
  const must = (holds: boolean, text: string) => {
    if (!holds) errors.push(text)
  }
  const within = (value: number, min: number, max: number) =>
    Number.isInteger(value) && value >= min && value <= max
  must(/^[\x21-\x2e\x30-\x7e]{1,128}$/.test(options.name), 'name: 1..128 printable ASCII, no "/"')
  must(within(options.advertise.port, 1, 65_535), 'advertise: port 1..65535')
  must(new TextEncoder().encode(options.label).length <= 255, 'label: at most 255 bytes')
  must(
    options.keys.every(key => key.length === 16 || key.length === 24 || key.length === 32),
    'keys: 16, 24 or 32 bytes each',
  )
  must(
    within(options.protocolVersion, protocolVersionMin, protocolVersionMax),
    'protocolVersion: 1..5',
  )
  for (const name of [
    'delegateProtocolMin',
    'delegateProtocolMax',
    'delegateProtocolVersion',
  ] as const) {
    must(within(options[name], 0, 255), `${name}: 0..255`)
  }
  must(options.probeTimeoutMs > 0, 'probeTimeoutMs: above 0')
  must(options.probeIntervalMs > options.probeTimeoutMs, 'probeIntervalMs: above probeTimeoutMs')
  must(within(options.awarenessMaxMultiplier, 1, 1000), 'awarenessMaxMultiplier: 1..1000')
  must(options.suspicionMult >= 1, 'suspicionMult: at least 1')
  must(options.suspicionMaxTimeoutMult >= 1, 'suspicionMaxTimeoutMult: at least 1')
  must(options.gossipIntervalMs > 0, 'gossipIntervalMs: above 0')
  must(options.pushPullIntervalMs >= 0, 'pushPullIntervalMs: 0 or more')
  must(within(options.udpBufferSizeBytes, 512, 65_000), 'udpBufferSizeBytes: 512..65000')
  must(within(options.membersMax, 1, 1_000_000), 'membersMax: 1..1000000')
  return errors
}
