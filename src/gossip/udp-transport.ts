/** One UDP socket: datagrams in, datagrams out, each loss on this side counted. */
import { createSocket, type Socket } from 'node:dgram'
import type { Address } from '../vocabulary.js'
import { fromSocket, hostForFamily } from './socket-address.js'

/**
 * Kernel buffer asked for, in bytes. At 50 pods in full mesh a pause of 100 ms queues about 500
 * packets; the system's default (208 KiB) holds some 150 of them. The kernel may grant less.
 */
export const receiveBufferWantedBytes = 2 * 1024 * 1024
/** Datagrams waiting for the kernel before new ones are dropped (gossip repeats itself). */
const sendQueueMax = 4096

export interface UdpStats {
  packetsIn: number
  bytesIn: number
  packetsOut: number
  bytesOut: number
  /** Sends that the system refused, or to an address this socket's family cannot reach. */
  sendErrors: number
  /** Datagrams dropped because `sendQueueMax` were waiting. */
  sendQueueFull: number
}

export type PacketHandler = (bytes: Uint8Array, from: Address) => void

export class UdpTransport {
  readonly stats: UdpStats = {
    packetsIn: 0,
    bytesIn: 0,
    packetsOut: 0,
    bytesOut: 0,
    sendErrors: 0,
    sendQueueFull: 0,
  }
  readonly #socket: Socket
  readonly #family: 4 | 6
  #handler: PacketHandler | null = null
  #closed = false

  private constructor(socket: Socket, family: 4 | 6) {
    this.#socket = socket
    this.#family = family
    socket.on('message', (bytes, from) => {
      this.stats.packetsIn += 1
      this.stats.bytesIn += bytes.length
      this.#handler?.(bytes, fromSocket(from.address, from.port))
    })
    // ICMP refusals and the like surface here on some systems; gossip notices silence by itself.
    socket.on('error', () => {
      this.stats.sendErrors += 1
    })
  }

  /** Binds; rejects with the system's error (EADDRINUSE, EACCES). `host` is an address literal. */
  static bind(host: string, port: number): Promise<UdpTransport> {
    const family = host.includes(':') ? 6 : 4
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      // Hosts are always literals here; the default would defer every send by a name look-up.
      lookup: (literal, _options, done) => done(null, literal, family),
    })
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(port, host, () => {
        socket.off('error', reject)
        resolve(new UdpTransport(socket, family))
      })
    })
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** Asks for a larger kernel buffer and returns what was granted, in bytes. */
  growReceiveBuffer(wantedBytes: number): number {
    try {
      this.#socket.setRecvBufferSize(wantedBytes)
    } catch {
      // Some systems refuse instead of granting less; what there is stays.
    }
    return this.#socket.getRecvBufferSize()
  }

  attach(handler: PacketHandler): void {
    this.#handler = handler
  }

  send(to: Address, bytes: Uint8Array): void {
    if (this.#closed) return
    const host = hostForFamily(to.host, this.#family)
    if (host === null || to.port < 1 || to.port > 65_535) {
      this.stats.sendErrors += 1
      return
    }
    if (this.#socket.getSendQueueCount() >= sendQueueMax) {
      this.stats.sendQueueFull += 1
      return
    }
    this.stats.packetsOut += 1
    this.stats.bytesOut += bytes.length
    this.#socket.send(bytes, to.port, host, error => {
      if (error) this.stats.sendErrors += 1
    })
  }

  /** Resolves once the socket is gone. */
  close(): Promise<void> {
    if (this.#closed) return Promise.resolve()
    this.#closed = true
    this.#handler = null
    return new Promise(resolve => this.#socket.close(() => resolve()))
  }
}
