/**
 * The small languages inside configuration values: durations, limits, key sources, addresses. Pure;
 * every reader returns a value or a sentence saying what is wrong, never both, and throws nothing.
 */
import { parseIp } from '../limiter/cidr.js'
import type { CalendarUnit, KeyPart, KeySource, LimitSpec } from '../limiter/rule.js'
import type { Address } from '../vocabulary.js'
import { didYouMean } from './did-you-mean.js'
import type { ListenAddress, SecretRef, Upstream } from './sidecar-config.js'

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: string }

export function good<T>(value: T): Read<T> {
  return { ok: true, value }
}

export function bad<T>(error: string): Read<T> {
  return { ok: false, error }
}

const secondMs = 1000
const unitMs = new Map([
  ['ms', 1],
  ['s', secondMs],
  ['m', 60 * secondMs],
  ['min', 60 * secondMs],
  ['h', 3600 * secondMs],
  ['d', 24 * 3600 * secondMs],
])

const calendarMs: Readonly<Record<CalendarUnit, number>> = {
  day: 24 * 3600 * secondMs,
  week: 7 * 24 * 3600 * secondMs,
  month: 30 * 24 * 3600 * secondMs,
}

/** Longest duration: a leap year. */
export const durationMsMax = 366 * 24 * 3600 * secondMs
/** Greatest count of a limit; beyond it fractions of a unit would be lost. */
export const limitCountMax = 1e12

export interface GrammarOptions {
  /** Milliseconds may be written: in simulations only. */
  readonly milliseconds: boolean
}

const usual: GrammarOptions = { milliseconds: false }

/** `300s`, `5m`, `h`: milliseconds, > 0. Calendar units are no durations. */
export function readDuration(text: string, options = usual): Read<number> {
  const parts = /^(\d{1,12}(?:\.\d{1,6})?)?([A-Za-z]+)$/.exec(text)
  if (parts === null) return bad('expected NUMBER and a unit, as 30s or 5m')
  const unit = parts[2]!
  const each = unitMs.get(unit)
  if (Object.hasOwn(calendarMs, unit)) {
    return bad(`"${unit}" is a calendar window, not a duration; 24 hours are written 1d`)
  }
  if (each === undefined) return bad(unknownUnit(unit, options))
  if (unit === 'ms' && !options.milliseconds) return bad('ms is for simulations only; use s')
  const ms = Number(parts[1] ?? 1) * each
  if (!(ms > 0)) return bad('expected a duration above 0')
  return ms <= durationMsMax ? good(ms) : bad('expected a duration of at most 366d')
}

function unknownUnit(unit: string, options: GrammarOptions): string {
  const units = [...unitMs.keys()].filter(name => name !== 'ms' || options.milliseconds)
  const spelled = new Map([
    ['sec', 's'],
    ['second', 's'],
    ['minute', 'm'],
    ['hr', 'h'],
    ['hour', 'h'],
    ['days', 'd'],
  ])
  const lower = unit.toLowerCase()
  const hint = spelled.get(lower) ?? spelled.get(lower.replace(/s$/, ''))
  const suggestion = hint === undefined ? '' : `; did you mean ${hint}?`
  return `unknown unit "${unit}", expected ${units.join(', ')}${suggestion}`
}

/** `100/1s`, `100/h`, `2.5/10m`, `10000/day`. */
export function readLimit(text: string, options = usual): Read<LimitSpec> {
  const slash = text.indexOf('/')
  if (slash < 0) return bad('expected COUNT/DURATION, as 100/1s')
  const countText = text.slice(0, slash)
  const windowText = text.slice(slash + 1)
  if (!/^\d+(\.\d+)?$/.test(countText)) return bad(`COUNT "${countText}" is not a plain number`)
  const count = Number(countText)
  if (!(count > 0)) return bad('COUNT must be above 0; to refuse everything use deny')
  if (count > limitCountMax) return bad(`COUNT must be at most ${limitCountMax}`)
  const calendar = /^1?(day|week|month)$/.exec(windowText)?.[1] as CalendarUnit | undefined
  if (calendar !== undefined) return good({ count, windowMs: calendarMs[calendar], calendar })
  if (/^\d+(day|week|month)s?$/.test(windowText)) {
    return bad('calendar windows are day, week or month; for several days write 2d')
  }
  const window = readDuration(windowText, options)
  if (!window.ok) return bad(window.error)
  if (window.value < secondMs && !options.milliseconds) {
    return bad('expected a window of at least 1s')
  }
  return good({ count, windowMs: window.value, calendar: null })
}

const plainSources = ['ip', 'method', 'path', 'host', 'global'] as const
const namedSources = ['header', 'cookie', 'query', 'jwt'] as const
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Longest name in `header:NAME` and its like. */
const sourceNameMax = 256

/** `header:x-api-key | ip`: the first one present is used. */
export function readKeyPart(text: string): Read<KeyPart> {
  const sources: KeySource[] = []
  for (const piece of text.split('|')) {
    const source = readKeySource(piece.trim())
    if (!source.ok) return bad(source.error)
    sources.push(source.value)
  }
  return good(sources)
}

/** `ip`, `header:NAME`, …; header names become lower case. */
export function readKeySource(text: string): Read<KeySource> {
  const plain = plainSources.find(kind => kind === text)
  if (plain !== undefined) return good({ kind: plain })
  const colon = text.indexOf(':')
  const kindText = colon < 0 ? text : text.slice(0, colon)
  const name = colon < 0 ? '' : text.slice(colon + 1)
  const kind = namedSources.find(known => known === kindText)
  if (kind === undefined) return bad(unknownSource(text, kindText, colon >= 0))
  if (name === '') return bad(`"${kind}" needs a name, as ${kind}:NAME`)
  if (name.length > sourceNameMax) return bad(`name longer than ${sourceNameMax} characters`)
  const asToken = kind === 'header' || kind === 'cookie'
  if (asToken && !token.test(name)) return bad(`"${name}" cannot be the name of a ${kind}`)
  return good({ kind, name: kind === 'header' ? name.toLowerCase() : name })
}

function unknownSource(text: string, kind: string, named: boolean): string {
  if (named && (plainSources as readonly string[]).includes(kind)) {
    return `"${kind}" takes no name: write ${kind}`
  }
  const forms = [...plainSources, ...namedSources.map(source => `${source}:NAME`)]
  const near = didYouMean(kind, [...plainSources, ...namedSources])
  return `unknown key source "${text}", expected ${forms.join(', ')}${near}`
}

/** A header name in lower case. */
export function readHeaderName(text: string): Read<string> {
  if (!token.test(text)) return bad(`"${text}" cannot be the name of a header`)
  return good(text.toLowerCase())
}

/** `HOST:PORT`, `[IPV6]:PORT`, `:PORT` (every address); `defaultPort` makes the port optional. */
export function readAddress(text: string, defaultPort: number | null = null): Read<Address> {
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([^[\]:/\s]*))(?::(\d{1,5}))?$/.exec(text) ?? undefined
  if (parts === undefined) return bad('expected HOST:PORT, as 127.0.0.1:7946 or [::1]:7946')
  const host = parts[1] ?? parts[2] ?? ''
  if (parts[1] !== undefined && parseIp(host)?.family !== 6) {
    return bad(`"${host}" in brackets is no IPv6 address`)
  }
  if (parts[3] === undefined && (defaultPort === null || host === '')) {
    return bad('expected HOST:PORT; the port is missing')
  }
  const port = Number(parts[3] ?? defaultPort)
  if (port > 65535) return bad(`port ${port} is above 65535`)
  return good({ host: host === '' ? '0.0.0.0' : host, port })
}

/** `HOST:PORT` or `unix:/path`. */
export function readListen(text: string): Read<ListenAddress> {
  if (text.startsWith('unix:')) return readUnix(text.slice('unix:'.length))
  const address = readAddress(text)
  if (!address.ok) return bad(`${address.error} (a socket is written unix:/path)`)
  return good({ kind: 'tcp', ...address.value })
}

function readUnix(text: string): Read<ListenAddress> {
  const path = text.replace(/^\/\/(?=\/)/, '')
  if (!path.startsWith('/')) return bad('expected unix:/path, an absolute path')
  // sockaddr_un holds 108 bytes with the closing zero; macOS holds 104.
  return path.length <= 103 ? good({ kind: 'unix', path }) : bad('socket path is above 103 bytes')
}

/** `http://HOST:PORT`, `h2c://HOST:PORT` or `unix:/path`. */
export function readUpstream(text: string): Read<Upstream> {
  const expected = 'expected http://HOST:PORT, h2c://HOST:PORT or unix:/path'
  if (text.startsWith('unix:')) {
    const address = readUnix(text.slice('unix:'.length))
    return address.ok
      ? good({ protocol: 'http', address: address.value, text })
      : bad(address.error)
  }
  const parts = /^(http|h2c):\/\/([^/?#@]+)(\/.*)?$/.exec(text)
  if (parts === null) {
    if (text.startsWith('https:')) return bad(`${expected}; TLS to the upstream is not offered`)
    return bad(expected)
  }
  if (parts[3] !== undefined && parts[3] !== '/') return bad('an upstream has no path')
  const address = readAddress(parts[2]!, 80)
  if (!address.ok) return bad(`${expected}: ${address.error}`)
  if (address.value.port === 0) return bad('an upstream needs a port above 0')
  const protocol = parts[1] as 'http' | 'h2c'
  return good({ protocol, address: { kind: 'tcp', ...address.value }, text })
}

/** `file:PATH`, or the secret text itself. */
export function readSecretRef(text: string): Read<SecretRef> {
  if (!text.startsWith('file:')) return good({ kind: 'text', text })
  const path = text.slice('file:'.length).replace(/^\/\/(?=\/)/, '')
  return path === '' ? bad('expected file:PATH') : good({ kind: 'file', path })
}

/** An IANA zone name that this runtime knows. */
export function readTimezone(text: string): Read<string> {
  try {
    new Intl.DateTimeFormat('en', { timeZone: text })
    return good(text)
  } catch {
    const near = didYouMean(text, ['UTC', ...Intl.supportedValuesOf('timeZone')])
    return bad(`unknown time zone "${text}", expected an IANA name, as Europe/Paris${near}`)
  }
}
