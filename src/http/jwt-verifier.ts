/**
 * Verified claims of bearer tokens. A token that does not verify is as good as none. Algorithms are
 * pinned by the kind of key: a key set verifies asymmetric ones, a shared secret HS256, nothing
 * verifies `none`. Results are remembered, good and bad ones apart, so that a known token is
 * answered at once and a flood of forged ones cannot push the good ones out.
 */
import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { JwtConfig } from '../config/sidecar-config.js'
import type { Clock } from '../ports.js'
import { KeySet, type KeySetPorts } from './key-set.js'
import type { Claims } from './request-facts.js'

export interface JwtOptions extends Pick<JwtConfig, 'jwks' | 'issuer' | 'audience'> {
  /** The shared secret's text, for HS256; null when `jwks` is set. */
  readonly secret: string | null
}

export interface JwtPorts extends Omit<KeySetPorts, 'clock'> {
  readonly clock: Clock
}

export interface JwtStats {
  readonly verified: number
  readonly rejected: number
  /** Not verified because the address, or the process, has too many on its hands; absent. */
  readonly throttled: number
  readonly cacheHits: number
  readonly keySetFailures: number
}

const asymmetric = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Longer tokens are absent: headers are bounded anyway, and the cache holds the text. */
const tokenCharsMax = 8192
const cacheEntriesMax = 10_000
/** Text held per cache, in characters. */
const cacheCharsMax = 4 << 20
/** How long a good result is believed, in ms; a token's own `exp` may end it sooner. */
const goodForMs = 5 * 60_000
/** How long a bad one is; short, for a key may have been published since. */
const badForMs = 10_000
/** Clocks of issuer and pod may differ by this much, in seconds. */
const clockToleranceSeconds = 5
/** Verifications per address: burst, and refill per second. One costs about 150 microseconds. */
const verifyBurst = 50
const verifyPerSecond = 20
const addressesMax = 10_000
/** Verifications under way; more are throttled. */
const pendingMax = 1_000

interface Entry {
  readonly claims: Claims | null
  readonly untilMs: number
}

export class JwtVerifier {
  readonly #key: Uint8Array | JWTVerifyGetKey
  readonly #keySet: KeySet | null
  readonly #options: JwtOptions
  readonly #clock: Clock
  readonly #good = new TokenCache()
  readonly #bad = new TokenCache()
  readonly #pending = new Map<string, Promise<Claims | null>>()
  readonly #budgets = new Map<string, { left: number; atMs: number }>()
  readonly #counts = { verified: 0, rejected: 0, throttled: 0, cacheHits: 0 }

  constructor(options: JwtOptions, ports: JwtPorts) {
    this.#options = options
    this.#clock = ports.clock
    this.#keySet = options.jwks === null ? null : new KeySet(options.jwks, ports)
    this.#key = this.#keySet?.get ?? new TextEncoder().encode(options.secret ?? '')
  }

  stats(): JwtStats {
    return { ...this.#counts, keySetFailures: this.#keySet?.failures ?? 0 }
  }

  /**
   * The claims of an Authorization header's bearer token, or null when there is none or it does
   * not verify. A promise only for a token not seen lately; it never rejects.
   */
  claims(authorization: string | undefined, ip: string): Claims | null | Promise<Claims | null> {
    const token = bearerToken(authorization)
    if (token === null) return null
    const nowMs = this.#clock.monotonicMs()
    const known = this.#good.get(token, nowMs) ?? this.#bad.get(token, nowMs)
    if (known) {
      this.#counts.cacheHits++
      return known.claims
    }
    const pending = this.#pending.get(token)
    if (pending) return pending
    if (this.#pending.size >= pendingMax || !this.#spend(ip, nowMs)) {
      this.#counts.throttled++
      return null
    }
    const verification = this.#verify(token).finally(() => this.#pending.delete(token))
    this.#pending.set(token, verification)
    return verification
  }

  async #verify(token: string): Promise<Claims | null> {
    const { issuer, audience } = this.#options
    const options = {
      algorithms: this.#keySet ? asymmetric : ['HS256'],
      clockTolerance: clockToleranceSeconds,
      currentDate: new Date(this.#clock.wallMs()),
      ...(issuer === null ? {} : { issuer }),
      ...(audience === null ? {} : { audience }),
    }
    try {
      const { payload } =
        typeof this.#key === 'function'
          ? await jwtVerify(token, this.#key, options)
          : await jwtVerify(token, this.#key, options)
      this.#counts.verified++
      const nowMs = this.#clock.monotonicMs()
      const expiresInMs =
        payload.exp === undefined
          ? Number.POSITIVE_INFINITY
          : (payload.exp + clockToleranceSeconds) * 1000 - this.#clock.wallMs()
      this.#good.set(token, { claims: payload, untilMs: nowMs + Math.min(goodForMs, expiresInMs) })
      return payload
    } catch (error) {
      this.#counts.rejected++
      // No keys at all is not the token's fault: it may verify as soon as there are some.
      if (error instanceof errors.JOSEError) {
        const untilMs = this.#clock.monotonicMs() + badForMs
        this.#bad.set(token, { claims: null, untilMs })
      }
      return null
    }
  }

  /** Takes one verification from the address's budget. */
  #spend(ip: string, nowMs: number): boolean {
    const known = this.#budgets.get(ip)
    const left = known
      ? Math.min(verifyBurst, known.left + ((nowMs - known.atMs) / 1000) * verifyPerSecond)
      : verifyBurst
    this.#budgets.delete(ip)
    if (this.#budgets.size >= addressesMax) {
      const oldest = this.#budgets.keys().next()
      if (!oldest.done) this.#budgets.delete(oldest.value)
    }
    this.#budgets.set(ip, { left: left >= 1 ? left - 1 : left, atMs: nowMs })
    return left >= 1
  }
}

/** The token of a `Bearer` header if it has a JWS's shape; anything else is no token. */
export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null
  const match = /^bearer +([\w-]+\.[\w-]+\.[\w-]+) *$/i.exec(authorization)
  const token = match?.[1]
  return token === undefined || token.length > tokenCharsMax ? null : token
}

/** Bounded by entries and by text; the oldest go first. */
class TokenCache {
  readonly #entries = new Map<string, Entry>()
  #chars = 0

  get(token: string, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(token)
    if (entry === undefined || nowMs < entry.untilMs) return entry
    this.#drop(token)
    return undefined
  }

  set(token: string, entry: Entry): void {
    this.#drop(token)
    this.#entries.set(token, entry)
    this.#chars += token.length
    while (this.#entries.size > cacheEntriesMax || this.#chars > cacheCharsMax) {
      const oldest = this.#entries.keys().next()
      if (oldest.done) return
      this.#drop(oldest.value)
    }
  }

  #drop(token: string): void {
    if (this.#entries.delete(token)) this.#chars -= token.length
  }
}
