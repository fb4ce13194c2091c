/** UDP and TCP on one port, bound before the core exists, since the core advertises that port. */
import type { Address } from '../vocabulary.js'
import { TcpTransport } from './tcp-transport.js'
import { receiveBufferWantedBytes, UdpTransport } from './udp-transport.js'

/** With port 0, TCP's choice may be taken for UDP; as often is it tried anew. */
const bindAttemptsMax = 20

export interface GossipSockets {
  readonly udp: UdpTransport
  readonly tcp: TcpTransport
  /** What was bound, with the real port. */
  readonly address: Address
  /** Kernel receive buffer as granted, in bytes (Linux reports twice what it can hold). */
  readonly receiveBufferBytes: number
}

/** Rejects with the system's error when the port is taken or may not be used. */
export async function bindGossipSockets(bind: Address): Promise<GossipSockets> {
  for (let attempt = 1; ; attempt += 1) {
    const tcp = await TcpTransport.listen(bind.host, bind.port)
    try {
      const udp = await UdpTransport.bind(bind.host, tcp.port)
      const receiveBufferBytes = udp.growReceiveBuffer(receiveBufferWantedBytes)
      return { udp, tcp, address: { host: bind.host, port: tcp.port }, receiveBufferBytes }
    } catch (error) {
      await tcp.shutdown()
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (!taken || bind.port !== 0 || attempt >= bindAttemptsMax) throw error
    }
  }
}
