/** What the limiter is told of a request that came over HTTP/1.1. */
import { clientAddress } from '../http/client-address.js'
import { HttpRequestFacts, rawHeaderLookup } from '../http/request-facts.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { ClientConnection } from './client-connection.js'
import type { Claims } from './options.js'
import type { CheckedRequest } from './request-check.js'

/** The client's address: the peer's, unless that is a trusted proxy that names another. */
export function clientIp(client: ClientConnection, request: CheckedRequest): string {
  const { peer, trusted, context } = client
  return trusted ? clientAddress(peer, request.forwardedFor, context.options.trusts) : peer
}

export function factsOf(
  client: ClientConnection,
  request: CheckedRequest,
  jwt: Claims | null,
): RequestFacts {
  return new HttpRequestFacts({
    method: request.method,
    target: request.target,
    header: rawHeaderLookup(request.head.headers),
    ip: clientIp(client, request),
    peerTrusted: client.trusted,
    jwt,
  })
}
