/**
 * What both transports share: the cluster's label, its keys, and the switches of memberlist's
 * Config that shape bytes. Also how many bytes the layers cost, which the packet budgets subtract.
 */
import { assert } from '../../lib/assert.js'
import type { Entropy } from '../../ports.js'
import { encryptOverhead } from './encryption.js'
import type { Keyring } from './keyring.js'
import { bytesOfText } from './raw-text.js'

export interface WireOptions {
  /**
   * memberlist Label: keeps clusters apart; up to 255 bytes of UTF-8, default '' (none).
   * Authenticated, not secret.
   */
  readonly label?: string
  /**
   * memberlist Keyring; null or an empty ring means no encryption. Default null. May change while
   * in use.
   */
  readonly keyring?: Keyring | null
  /**
   * memberlist EnableCompression: whether to send compressed; receiving always works. Default true.
   */
  readonly enableCompression?: boolean
  /** memberlist GossipVerifyIncoming: refuse plain bytes while there are keys. Default true. */
  readonly gossipVerifyIncoming?: boolean
  /** memberlist GossipVerifyOutgoing: encrypt while there are keys. Default true. */
  readonly gossipVerifyOutgoing?: boolean
  /**
   * memberlist SkipInboundLabelCheck: something in front takes label headers off; seeing one is an
   * error. Default false.
   */
  readonly skipInboundLabelCheck?: boolean
  /**
   * memberlist ProtocolVersion, 1..5, default 2; 1 sends encryption version 0, all others version
   * 1.
   */
  readonly protocolVersion?: number
  /** Most records accepted in one push/pull, 1..1048576 (memberlist's own limit), default 65536. */
  readonly exchangeNodesMax?: number
  /** Source of nonces. */
  readonly entropy: Entropy
}

/** Normalised options; made once, shared by all packets and streams of a node. */
export interface Wire {
  readonly label: string
  /** The label as additional authenticated data; empty without a label. */
  readonly labelBytes: Uint8Array
  /** The header that stands before packets and dialled streams; empty without a label. */
  readonly labelHeader: Uint8Array
  readonly keyring: Keyring | null
  readonly enableCompression: boolean
  readonly gossipVerifyIncoming: boolean
  readonly gossipVerifyOutgoing: boolean
  readonly skipInboundLabelCheck: boolean
  readonly encryptionVersion: 0 | 1
  readonly exchangeNodesMax: number
  readonly entropy: Entropy
}

export const labelBytesMax = 255
export const exchangeNodesCeiling = 1_048_576
const exchangeNodesDefault = 65_536

/** Why a label cannot be used, or null. */
export function labelProblem(label: string): string | null {
  const length = bytesOfText(label).length
  return length > labelBytesMax ? `label has ${length} bytes, at most ${labelBytesMax} fit` : null
}

/** The label must have passed `labelProblem`. */
export function createWire(options: WireOptions): Wire {
  const label = options.label ?? ''
  assert(labelProblem(label) === null, 'the label was checked before a wire is made of it')
  const labelBytes = bytesOfText(label)
  return {
    label,
    labelBytes,
    labelHeader:
      labelBytes.length === 0 ? labelBytes : Uint8Array.of(0xf4, labelBytes.length, ...labelBytes),
    keyring: options.keyring ?? null,
    enableCompression: options.enableCompression ?? true,
    gossipVerifyIncoming: options.gossipVerifyIncoming ?? true,
    gossipVerifyOutgoing: options.gossipVerifyOutgoing ?? true,
    skipInboundLabelCheck: options.skipInboundLabelCheck ?? false,
    encryptionVersion: options.protocolVersion === 1 ? 0 : 1,
    exchangeNodesMax: Math.min(
      options.exchangeNodesMax ?? exchangeNodesDefault,
      exchangeNodesCeiling,
    ),
    entropy: options.entropy,
  }
}

/** memberlist EncryptionEnabled: there is at least one key. */
export function encryptionEnabled(wire: Wire): boolean {
  return wire.keyring !== null && wire.keyring.size > 0
}

/** Whether what this node sends is encrypted. */
export function encryptsOutgoing(wire: Wire): boolean {
  return wire.gossipVerifyOutgoing && encryptionEnabled(wire)
}

/**
 * Bytes that label and encryption take from a packet of gossip. memberlist subtracts the encryption
 * whenever there are keys, even if it then sends plainly. The checksum frame's 5 bytes are in no
 * budget.
 */
export function gossipOverhead(wire: Wire): number {
  const encryption = encryptionEnabled(wire) ? encryptOverhead(wire.encryptionVersion) : 0
  return wire.labelHeader.length + encryption
}

/** Bytes that label and encryption take from a packet that broadcasts ride on. */
export function piggybackOverhead(wire: Wire): number {
  const encryption = encryptsOutgoing(wire) ? encryptOverhead(wire.encryptionVersion) : 0
  return wire.labelHeader.length + encryption
}
