/**
 * The public keys that tokens are verified with: a JWKS from a URL or a file, kept when the issuer
 * cannot be reached. Symmetric keys in it are ignored: a public key set must not hold secrets, and
 * whoever can read one could sign with it.
 */
import { readFile } from 'node:fs/promises'
import { createLocalJWKSet, type JSONWebKeySet, type JWK, type JWTVerifyGetKey } from 'jose'
import type { JwtConfig } from '../config/sidecar-config.js'
import type { Clock } from '../ports.js'

export type KeySource = NonNullable<JwtConfig['jwks']>

/** Keys older than this are fetched again, in milliseconds. */
const refreshAfterMs = 10 * 60_000
/** An unknown key id fetches again, but no more often than this, in milliseconds. */
const cooldownMs = 10_000
const fetchTimeoutMs = 5_000
const bytesMax = 1 << 20
const keysMax = 100

export interface KeySetPorts {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Reads the key set's text; defaults to HTTP(S) or the file system. */
  readonly load?: (source: KeySource) => Promise<string>
  readonly warn: (message: string) => void
}

export class KeySet {
  readonly #source: KeySource
  readonly #ports: KeySetPorts
  readonly #load: (source: KeySource) => Promise<string>
  #keys: JWTVerifyGetKey | null = null
  #loadedAtMs = Number.NEGATIVE_INFINITY
  #triedAtMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | null = null
  #failures = 0

  constructor(source: KeySource, ports: KeySetPorts) {
    this.#source = source
    this.#ports = ports
    this.#load = ports.load ?? loadText
  }

  /** Times the source could not be read; the last known keys stayed. */
  get failures(): number {
    return this.#failures
  }

  /** The key for a token's header; rejects when there is none, even after a refresh. */
  readonly get: JWTVerifyGetKey = async (header, token) => {
    await this.#refreshIfDue()
    if (this.#keys) {
      try {
        return await this.#keys(header, token)
      } catch (error) {
        if (!(await this.#refreshForUnknownKey())) throw error
      }
    }
    if (!this.#keys) throw new Error('no keys are known')
    return this.#keys(header, token)
  }

  /** The first load is waited for; later ones happen behind the back of requests. */
  async #refreshIfDue(): Promise<void> {
    const nowMs = this.#ports.clock.monotonicMs()
    if (nowMs - this.#loadedAtMs < refreshAfterMs || nowMs - this.#triedAtMs < cooldownMs) {
      if (!this.#keys && this.#loading) await this.#loading
      return
    }
    const loading = this.#refresh()
    if (!this.#keys) await loading
  }

  async #refreshForUnknownKey(): Promise<boolean> {
    if (this.#ports.clock.monotonicMs() - this.#triedAtMs < cooldownMs && !this.#loading)
      return false
    await this.#refresh()
    return true
  }

  #refresh(): Promise<void> {
    this.#loading ??= this.#read().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #read(): Promise<void> {
    this.#triedAtMs = this.#ports.clock.monotonicMs()
    try {
      this.#keys = createLocalJWKSet(parseKeySet(await this.#load(this.#source)))
      this.#loadedAtMs = this.#ports.clock.monotonicMs()
    } catch (error) {
      this.#failures++
      const reason = error instanceof Error ? error.message : String(error)
      const kept = this.#keys ? 'the last known keys stay' : 'tokens count as absent'
      this.#ports.warn(`the key set ${nameOf(this.#source)} cannot be read (${reason}); ${kept}`)
    }
  }
}

function parseKeySet(text: string): JSONWebKeySet {
  const parsed: unknown = JSON.parse(text)
  const keys = (parsed as { keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new Error('it has no "keys" array')
  const asymmetric = keys.filter(
    (key): key is JWK => typeof key === 'object' && key !== null && isAsymmetric(key),
  )
  if (asymmetric.length === 0) throw new Error('it holds no asymmetric key')
  return { keys: asymmetric.slice(0, keysMax) }
}

function isAsymmetric(key: object): boolean {
  const kind = (key as { kty?: unknown }).kty
  return kind === 'RSA' || kind === 'EC' || kind === 'OKP'
}

function nameOf(source: KeySource): string {
  return source.kind === 'file' ? source.path : source.url
}

async function loadText(source: KeySource): Promise<string> {
  if (source.kind === 'file') {
    const text = await readFile(source.path, 'utf8')
    if (text.length > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`)
    return text
  }
  const response = await fetch(source.url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(fetchTimeoutMs),
  })
  if (!response.ok) throw new Error(`it answered ${response.status}`)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
