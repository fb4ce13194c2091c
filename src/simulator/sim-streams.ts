/**
 * TCP as far as an exchange sees it: connect, ordered bytes both ways, an orderly end, time-outs.
 * A cut link (either direction: acknowledgements need the way back) swallows everything and leaves
 * the time-out; loss costs retransmission time instead of data. Streams are rare beside packets, so
 * plain objects and closures do.
 */
import type { Random } from '../ports.js'
import type { SimNetwork } from './sim-network.js'

/** The end that a stream event reaches: a process and its own number for the stream. */
export interface StreamHost {
  /** Process number. */
  readonly id: number
  readonly pod: number
  readonly running: boolean
  /** Runs `act` now, or when the process runs again if it is paused. */
  receive(act: () => void): void
  /** Null refuses the connection. */
  acceptStream(from: StreamHost): number | null
  streamData(stream: number, bytes: Uint8Array): void
  streamEnd(stream: number, error: string | null): void
}

interface End {
  readonly host: StreamHost
  /** The process's number; -1 until the stream was accepted. */
  stream: number
  open: boolean
  /** Arrival of the latest thing sent to this end: nothing overtakes it. */
  arrivesMs: number
}

interface Connection {
  readonly opener: End
  readonly acceptor: End
}

/** The first retransmission time-out of Linux TCP; it doubles. */
const retransmitMs = 200
const retransmitsMax = 6

/** How long the accepting side keeps a silent stream, as the production transport does. */
const acceptedTimeoutMs = 10_000

export class SimStreams {
  /** Bytes written since the start of the scenario. */
  bytes = 0
  private readonly byEnd = new Map<string, Connection>()

  constructor(
    private readonly network: SimNetwork,
    private readonly loss: number,
    private readonly random: Random,
    private readonly nowMs: () => number,
    /** Runs `act` after `delayMs`. */
    private readonly later: (delayMs: number, act: () => void) => void,
  ) {}

  /** A process dials; `target` is null when nobody has the address. */
  dial(
    host: StreamHost,
    stream: number,
    target: StreamHost | null,
    bytes: Uint8Array,
    timeoutMs: number,
  ): void {
    if (target === null || !target.running) {
      const refused = target !== null && this.bothWays(host, target)
      const delayMs = refused ? 2 * this.network.delayMs() : timeoutMs
      this.later(delayMs, () => {
        host.receive(() => host.streamEnd(stream, refused ? 'connection refused' : 'timeout'))
      })
      return
    }
    const connection: Connection = {
      opener: { host, stream, open: true, arrivesMs: Number.NEGATIVE_INFINITY },
      acceptor: { host: target, stream: -1, open: true, arrivesMs: Number.NEGATIVE_INFINITY },
    }
    this.byEnd.set(endKey(host, stream), connection)
    this.later(timeoutMs, () => this.giveUp(connection.opener, connection.acceptor))
    // The handshake: one round trip before the first byte leaves, one more way until it is there.
    this.deliver(connection.opener, connection.acceptor, 2 * this.network.delayMs(), () => {
      this.accept(connection, bytes)
    })
    this.count(bytes)
  }

  private accept({ opener, acceptor }: Connection, bytes: Uint8Array): void {
    const stream = acceptor.host.acceptStream(opener.host)
    if (stream === null) {
      this.forget(acceptor)
      this.deliver(acceptor, opener, 0, () => this.end(opener, 'connection reset'))
      return
    }
    acceptor.stream = stream
    this.byEnd.set(endKey(acceptor.host, stream), { opener, acceptor })
    this.later(acceptedTimeoutMs, () => this.giveUp(acceptor, opener))
    acceptor.host.streamData(stream, bytes)
  }

  write(host: StreamHost, stream: number, bytes: Uint8Array): void {
    const ends = this.endsOf(host, stream)
    if (ends === null) return
    this.count(bytes)
    this.deliver(ends.own, ends.other, 0, () =>
      ends.other.host.streamData(ends.other.stream, bytes),
    )
  }

  close(host: StreamHost, stream: number): void {
    const ends = this.endsOf(host, stream)
    if (ends === null) return
    this.forget(ends.own)
    this.deliver(ends.own, ends.other, 0, () => this.end(ends.other, null))
  }

  /** The process is gone: its peers learn it as a reset, as far as links allow. */
  drop(host: StreamHost): void {
    for (const connection of [...this.byEnd.values()]) {
      for (const [own, other] of bothEnds(connection)) {
        if (own.host !== host || !own.open) continue
        this.forget(own)
        this.deliver(own, other, 0, () => this.end(other, 'connection reset'))
      }
    }
  }

  private deliver(from: End, to: End, extraMs: number, act: () => void): void {
    if (!this.bothWays(from.host, to.host)) return
    let delayMs = extraMs + this.network.delayMs()
    if (!this.network.calm && this.loss > 0) {
      for (let i = 0; i < retransmitsMax && this.random() < this.loss; i++) {
        delayMs += retransmitMs * 2 ** i
      }
    }
    const now = this.nowMs()
    to.arrivesMs = Math.max(to.arrivesMs, now + delayMs)
    this.later(to.arrivesMs - now, () => {
      to.host.receive(() => {
        if (to.open && to.host.running) act()
      })
    })
  }

  private end(end: End, error: string | null): void {
    this.forget(end)
    if (end.stream >= 0) end.host.streamEnd(end.stream, error)
  }

  /**
   * The time-out of one end: a timer of the process, so it waits while the process stands still.
   */
  private giveUp(own: End, other: End): void {
    own.host.receive(() => {
      if (!own.open || !own.host.running) return
      this.end(own, 'timeout')
      this.deliver(own, other, 0, () => this.end(other, 'connection reset'))
    })
  }

  private forget(end: End): void {
    end.open = false
    if (end.stream >= 0) this.byEnd.delete(endKey(end.host, end.stream))
  }

  private endsOf(host: StreamHost, stream: number): { own: End; other: End } | null {
    const connection = this.byEnd.get(endKey(host, stream))
    if (connection === undefined) return null
    const { opener, acceptor } = connection
    return opener.host === host && opener.stream === stream
      ? { own: opener, other: acceptor }
      : { own: acceptor, other: opener }
  }

  private bothWays(a: StreamHost, b: StreamHost): boolean {
    return this.network.passes(a.pod, b.pod) && this.network.passes(b.pod, a.pod)
  }

  private count(bytes: Uint8Array): void {
    if (!this.network.calm) this.bytes += bytes.length
  }
}

function endKey(host: StreamHost, stream: number): string {
  return `${host.id}/${stream}`
}

function bothEnds(connection: Connection): readonly (readonly [End, End])[] {
  const { opener, acceptor } = connection
  return [
    [opener, acceptor],
    [acceptor, opener],
  ]
}
