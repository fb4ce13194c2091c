/**
 * What the limiter may know of a request. Shells make it from HTTP; nothing here parses HTTP.
 */

export interface RequestFacts {
  /** Upper-case method. */
  readonly method: string
  /**
   * Path without query, percent-decoded once, dot segments removed, slashes merged; null when it
   * stays ambiguous (`%2F`, `%00`, a backslash) and so may not be matched against a path.
   */
  readonly path: string | null
  /** Raw query string without the question mark; '' when there is none. */
  readonly query: string
  /** Host header without port, lower-case; '' when there is none. */
  readonly host: string
  /** The client's address after the trusted-proxy walk, canonical, IPv4-mapped unwrapped. */
  readonly ip: string
  /** The direct peer is loopback-listed or in `trustedProxies`: its claims may be believed. */
  readonly peerTrusted: boolean
  /** Claims of a *verified* bearer token; null when there is none or it did not verify. */
  readonly jwt: Readonly<Record<string, unknown>> | null
  /** A header by lower-case name, several values joined by ", "; undefined when absent. */
  header(name: string): string | undefined
}
