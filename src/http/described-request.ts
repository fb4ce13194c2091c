/** A request described in JSON, as RequestFacts: the same rules apply to it as to a real one. */
import { type CidrSet, canonicalIp } from '../limiter/cidr.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { DescribedRequest } from './check-body.js'
import type { JwtVerifier } from './jwt-verifier.js'
import { type Claims, HttpRequestFacts, recordHeaderLookup } from './request-facts.js'

export interface DescribedContext {
  /** Whose request describes it; stands for the client where no `ip` is given. */
  readonly peer: string
  readonly trustedProxies: CidrSet
  /** Null: no identity is configured, or no rule looks at tokens. */
  readonly jwt: JwtVerifier | null
}

/**
 * `ip` is the client's address itself, no proxy walk is done; its header claims count as trusted
 * only if that address is in `trustedProxies`. A promise only while a token must be verified.
 */
export function describedFacts(
  request: DescribedRequest,
  context: DescribedContext,
): RequestFacts | Promise<RequestFacts> {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    headers[name.toLowerCase()] = value
  }
  const header = recordHeaderLookup(headers)
  const given = request.ip ?? context.peer
  const ip = canonicalIp(given) ?? given
  const facts = (jwt: Claims | null): RequestFacts =>
    new HttpRequestFacts({
      method: request.method ?? 'GET',
      target: request.path ?? '/',
      header,
      host: request.host,
      ip,
      peerTrusted: context.trustedProxies.contains(ip),
      jwt,
    })
  const claims = context.jwt?.claims(header('authorization'), ip) ?? null
  return claims instanceof Promise ? claims.then(facts) : facts(claims)
}
