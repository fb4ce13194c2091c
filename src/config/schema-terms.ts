/**
 * Words shared by both schemas: texts with a grammar of their own, closed sets, objects without
 * unknown keys. `x-grammar` names a reader of `grammar.ts` and is checked by `validate.ts`;
 * `pattern` says the same more roughly, for editors. `x-expected` is the text of error messages.
 */
import { type TObject, type TProperties, type TSchemaOptions, Type } from 'typebox'
import { parseCidr } from '../limiter/cidr.js'
import { parsePathPattern } from '../limiter/path-pattern.js'
import {
  bad,
  good,
  type Read,
  readAddress,
  readDuration,
  readHeaderName,
  readKeyPart,
  readLimit,
  readListen,
  readSecretRef,
  readTimezone,
  readUpstream,
} from './grammar.js'

interface Grammar {
  read(text: string): Read<unknown>
  /** At least as permissive as `read`. */
  readonly pattern: string
  readonly expected: string
}

const addressPattern = '^(\\[[0-9A-Fa-f:.]+\\]|[^\\[\\]:/\\s]*):[0-9]{1,5}$'

/** Every text grammar by name. */
export const grammars = {
  duration: {
    read: text => readDuration(text),
    pattern: '^[0-9]*(\\.[0-9]+)?(s|m|min|h|d)$',
    expected: 'a duration, as 30s or 5m',
  },
  limit: {
    read: text => readLimit(text),
    pattern: '^[0-9]+(\\.[0-9]+)?/([0-9]*(\\.[0-9]+)?(s|m|min|h|d)|1?(day|week|month))$',
    expected: 'COUNT/DURATION, as 100/1s or 10000/day',
  },
  keyPart: {
    read: readKeyPart,
    pattern: '^.*(ip|method|path|host|global|header:|cookie:|query:|jwt:)',
    expected: 'key sources, as "header:x-api-key | ip"',
  },
  headerName: {
    read: readHeaderName,
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    expected: 'the name of a header',
  },
  path: { read: readPath, pattern: '^(/|\\*\\*|\\{)', expected: 'a path pattern, as "/api/**"' },
  cidr: {
    read: readCidr,
    pattern: '^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$',
    expected: 'a network in CIDR form, as 10.0.0.0/8',
  },
  address: {
    read: text => readAddress(text),
    pattern: addressPattern,
    expected: 'HOST:PORT, as 127.0.0.1:7946',
  },
  dnsName: {
    read: text => readAddress(text, 7946),
    pattern: '^[^/\\s]+$',
    expected: 'a host name, as grapevine-gossip.shop.svc',
  },
  listen: {
    read: readListen,
    pattern: `^unix:/|${addressPattern}`,
    expected: 'HOST:PORT or unix:/path',
  },
  upstream: {
    read: readUpstream,
    pattern: '^(http|h2c)://|^unix:/',
    expected: 'http://HOST:PORT, h2c://HOST:PORT or unix:/path',
  },
  secret: { read: readSecretRef, pattern: '^.+$', expected: 'text or file:PATH' },
  gossipKey: {
    read: readGossipKey,
    pattern: '^file:.+|^[A-Za-z0-9+/]+=*$',
    expected: 'base64 of 16, 24 or 32 bytes, or file:PATH',
  },
  jwks: { read: readJwks, pattern: '^(https?://|file:)', expected: 'an http(s) URL or file:PATH' },
  timezone: { read: readTimezone, pattern: '^[A-Za-z0-9+:_/-]+$', expected: 'an IANA time zone' },
} satisfies Record<string, Grammar>

export type GrammarName = keyof typeof grammars

function readPath(text: string): Read<unknown> {
  const parsed = parsePathPattern(text)
  return parsed.ok ? good(text) : bad(parsed.error)
}

function readCidr(text: string): Read<unknown> {
  if (parseCidr(text) !== null) return good(text)
  return bad('expected a network in CIDR form, as 10.0.0.0/8 or 2001:db8::/32')
}

/** Sizes of AES-128, -192 and -256 keys in bytes. */
const gossipKeyBytes: readonly number[] = [16, 24, 32]

function readGossipKey(text: string): Read<unknown> {
  const reference = readSecretRef(text)
  if (!reference.ok || reference.value.kind === 'file') return reference
  return decodeGossipKey(text)
}

/** A gossip key's bytes from base64 (the URL alphabet also). */
export function decodeGossipKey(text: string): Read<Uint8Array> {
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) {
    const bytes = new Uint8Array(Buffer.from(text, 'base64'))
    if (gossipKeyBytes.includes(bytes.length)) return good(bytes)
  }
  return bad('expected base64 of 16, 24 or 32 bytes; `grapevine keygen` makes one')
}

function readJwks(text: string): Read<unknown> {
  if (text.startsWith('file:')) return readSecretRef(text)
  return URL.canParse(text) && /^https?:/.test(text)
    ? good(text)
    : bad('expected an http(s) URL or file:PATH')
}

/** Text in one of the grammars. */
export function GrammarText(name: GrammarName, options: TSchemaOptions = {}) {
  const { pattern, expected } = grammars[name]
  return Type.String({
    minLength: 1,
    maxLength: 4096,
    pattern,
    'x-grammar': name,
    'x-expected': expected,
    ...options,
  })
}

/** An object that refuses unknown keys. */
export function Strict<T extends TProperties>(
  properties: T,
  options: TSchemaOptions = {},
): TObject<T> {
  return Type.Object(properties, { ...options, additionalProperties: false })
}

/** One or several; a lone value stands for a list of one. */
export function OneOrMore(name: GrammarName, options: TSchemaOptions = {}) {
  const { expected } = grammars[name]
  const list = Type.Array(GrammarText(name), { minItems: 1, maxItems: 64 })
  return Type.Union([GrammarText(name), list], {
    'x-expected': `${expected}, or a list of these`,
    ...options,
  })
}
