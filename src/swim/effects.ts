/**
 * What the protocol wants done. `Swim` queues effects while it handles an event; the shell takes
 * them with `takeEffects()` and carries them out in order. Nothing here touches a socket.
 */
import type { Address } from '../vocabulary.js'
import type { Member } from './member.js'

/** One TCP exchange; numbers come from `Swim` for both directions and are never reused. */
export type StreamId = number

export type Effect =
  /** One UDP datagram. */
  | { readonly kind: 'sendPacket'; readonly to: Address; readonly bytes: Uint8Array }
  /**
   * Dial and, once connected, write `bytes`; the answer comes back through `handleStreamData`, the
   * end (or a failure to connect) through `handleStreamEnd`. Give up after `timeoutMs` in all.
   */
  | {
      readonly kind: 'openStream'
      readonly stream: StreamId
      readonly to: Address
      readonly bytes: Uint8Array
      readonly timeoutMs: number
    }
  | { readonly kind: 'writeStream'; readonly stream: StreamId; readonly bytes: Uint8Array }
  /** Close once everything written is flushed. No more events follow for this stream. */
  | { readonly kind: 'closeStream'; readonly stream: StreamId }
  | {
      readonly kind: 'memberChanged'
      readonly change: 'join' | 'update' | 'leave'
      readonly member: Member
    }
  /** Two nodes claim one name (memberlist's NotifyConflict). */
  | { readonly kind: 'memberConflict'; readonly existing: Member; readonly other: Member }
  /** The outcome of one address given to `join()` or `pushPull()`; `error` is null on success. */
  | { readonly kind: 'exchangeSettled'; readonly to: Address; readonly error: string | null }
  /** The own leave message was sent its full number of times, or nobody is left to tell. */
  | { readonly kind: 'leaveSettled' }
  | {
      readonly kind: 'notice'
      readonly level: 'debug' | 'info' | 'warn'
      readonly text: string
      readonly fields: Readonly<Record<string, string | number>>
    }
