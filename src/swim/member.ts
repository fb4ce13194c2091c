/** What the outside sees of an entry in the member table. */
import type { Address, MemberName } from '../vocabulary.js'

export type MemberState = 'alive' | 'suspect' | 'dead' | 'left'

export interface Member {
  readonly name: MemberName
  /** The address for sockets. */
  readonly address: Address
  /** The address exactly as received, 4 or 16 bytes: part of the identity, compared as bytes. */
  readonly addressBytes: Uint8Array
  /** 0..512 bytes of the application's. */
  readonly meta: Uint8Array
  readonly state: MemberState
  readonly incarnation: number
  /** `[pmin, pmax, pcur, dmin, dmax, dcur]`. */
  readonly versions: Uint8Array
  /** Monotonic milliseconds of the last change of state. */
  readonly stateChangedAtMs: number
}
