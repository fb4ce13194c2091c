/**
 * Which header fields mean something to a proxy. A name is looked up once per spelling and kept, so
 * the common case is one hash lookup per field. RFC 9110 §7.6 (fields of one hop).
 */

/** What becomes of a request field. */
export const field = {
  /** Goes through. */
  pass: 0,
  /** Of one hop, or a disguise of a field that we write ourselves: never goes through. */
  drop: 1,
  host: 2,
  contentLength: 3,
  transferEncoding: 4,
  connection: 5,
  te: 6,
  trailer: 7,
  upgrade: 8,
  expect: 9,
  forwardedFor: 10,
  forwardedProto: 11,
  forwardedHost: 12,
  /** Other claims about the client, believed from trusted proxies only. */
  claim: 13,
  keepAlive: 14,
  limitRemaining: 15,
} as const

export type Field = (typeof field)[keyof typeof field]

export interface HeaderName {
  /** As it was sent, in a string of its own. */
  readonly spelling: string
  readonly lower: string
  readonly field: Field
}

const special = new Map<string, Field>([
  ['host', field.host],
  ['content-length', field.contentLength],
  ['transfer-encoding', field.transferEncoding],
  ['connection', field.connection],
  ['keep-alive', field.keepAlive],
  ['proxy-connection', field.drop],
  ['proxy-authenticate', field.drop],
  ['proxy-authorization', field.drop],
  ['http2-settings', field.drop],
  ['te', field.te],
  ['trailer', field.trailer],
  ['upgrade', field.upgrade],
  ['expect', field.expect],
  ['x-forwarded-for', field.forwardedFor],
  ['x-forwarded-proto', field.forwardedProto],
  ['x-forwarded-host', field.forwardedHost],
  ['x-forwarded-port', field.claim],
  ['x-forwarded-prefix', field.claim],
  ['x-forwarded-server', field.claim],
  ['x-forwarded-scheme', field.claim],
  ['x-forwarded-ssl', field.claim],
  ['x-real-ip', field.claim],
  ['x-client-ip', field.claim],
  ['forwarded', field.claim],
  ['x-ratelimit-remaining', field.limitRemaining],
])

/** Spellings kept at most; beyond, a name is looked up anew each time. */
const keptMax = 2_048
const kept = new Map<string, HeaderName>()

/** The meaning of a field name as sent, which llhttp has found to be a token. */
export function headerName(name: string): HeaderName {
  const known = kept.get(name)
  if (known !== undefined) return known
  // A piece of a head keeps the whole head alive: what is kept is a copy of its own.
  const spelling = Buffer.from(name, 'latin1').toString('latin1')
  const lower = spelling.toLowerCase()
  // Application servers of the CGI kind read X_Forwarded_For as X-Forwarded-For.
  const disguised = lower.includes('_') && special.has(lower.replaceAll('_', '-'))
  const made = {
    spelling,
    lower,
    field: disguised ? field.drop : (special.get(lower) ?? field.pass),
  }
  if (kept.size < keptMax && name.length <= 64) kept.set(spelling, made)
  return made
}

/**
 * The names that stood at each position in the last message: messages of one kind resemble each
 * other, and comparing with the last one is cheaper than looking up.
 */
export class NameMemo {
  readonly #raw: string[] = []
  readonly #known: HeaderName[] = []

  /** The meanings of the names in a flat list of names and values. */
  namesOf(headers: readonly string[]): HeaderName[] {
    const names: HeaderName[] = []
    for (let index = 0; index < headers.length; index += 2) {
      const name = headers[index] as string
      const position = index >> 1
      if (this.#raw[position] !== name) {
        const known = headerName(name)
        this.#known[position] = known
        this.#raw[position] = known.spelling
      }
      names.push(this.#known[position] as HeaderName)
    }
    return names
  }
}

const trailerFields = new Set([
  'authorization',
  'cache-control',
  'content-encoding',
  'content-range',
  'content-type',
  'cookie',
  'max-forwards',
  'set-cookie',
  'www-authenticate',
])

/**
 * Whether a field may stand in a trailer section: none for framing, routing, or access (RFC 9110
 * §6.5.1).
 */
export function mayTrail(name: string): boolean {
  const { lower, field: kind } = headerName(name)
  return kind === field.pass && !trailerFields.has(lower)
}

/** The tokens of a Connection field, lower-case; null when there is nothing beyond the usual. */
export function namedByConnection(value: string): string[] | null {
  if (value === 'keep-alive' || value === 'close' || value === 'Keep-Alive') return null
  const names = value
    .toLowerCase()
    .split(',')
    .map(token => token.trim())
    .filter(token => token !== '' && token !== 'keep-alive' && token !== 'close')
  return names.length === 0 ? null : names
}
