/** A core whose answers a test writes: records what the driver feeds it, queues effects on demand. */
import type { GossipCore } from '../../src/gossip/gossip-driver.js'
import type { Effect, StreamId } from '../../src/swim/effects.js'
import type { Address } from '../../src/vocabulary.js'

export type CoreEvent =
  | { readonly kind: 'packet'; readonly text: string; readonly from: Address }
  | { readonly kind: 'accepted'; readonly stream: StreamId }
  | { readonly kind: 'data'; readonly stream: StreamId; readonly text: string }
  | { readonly kind: 'end'; readonly stream: StreamId; readonly error: string | null }
  | { readonly kind: 'advance'; readonly monotonicMs: number }

export class ScriptedCore implements GossipCore {
  readonly events: CoreEvent[] = []
  deadlineMs = Number.POSITIVE_INFINITY
  /** Called with each event; what it returns is queued as effects. */
  react: (event: CoreEvent) => readonly Effect[] = () => []
  #effects: Effect[] = []
  #nextStream = 1

  handlePacket(bytes: Uint8Array, from: Address): void {
    this.#note({ kind: 'packet', text: Buffer.from(bytes).toString(), from })
  }

  acceptStream(): StreamId {
    const stream = this.newStream()
    this.#note({ kind: 'accepted', stream })
    return stream
  }

  handleStreamData(stream: StreamId, bytes: Uint8Array): void {
    this.#note({ kind: 'data', stream, text: Buffer.from(bytes).toString() })
  }

  handleStreamEnd(stream: StreamId, error: string | null): void {
    this.#note({ kind: 'end', stream, error })
  }

  advance(monotonicMs: number): void {
    this.deadlineMs = Number.POSITIVE_INFINITY
    this.#note({ kind: 'advance', monotonicMs })
  }

  nextDeadlineMs(): number {
    return this.deadlineMs
  }

  takeEffects(): Effect[] {
    return this.#effects.splice(0)
  }

  newStream(): StreamId {
    return this.#nextStream++
  }

  queue(...effects: readonly Effect[]): void {
    this.#effects.push(...effects)
  }

  of<K extends CoreEvent['kind']>(kind: K): Extract<CoreEvent, { kind: K }>[] {
    return this.events.filter(
      (event): event is Extract<CoreEvent, { kind: K }> => event.kind === kind,
    )
  }

  #note(event: CoreEvent): void {
    this.events.push(event)
    this.queue(...this.react(event))
  }
}
