/**
 * `match:`, `allow:` and `deny:` entries, compiled so that a request is tested without allocation.
 * Each test also has a form that says in words which part failed.
 */
import { type Cidr, CidrSet, parseCidr } from './cidr.js'
import { type PathPattern, parsePathPattern } from './path-pattern.js'
import type { RequestFacts } from './request-facts.js'
import type { ListEntry, MatchSpec } from './rule.js'

/** All given parts must match; with no part given, every request does. */
export class CompiledMatch {
  readonly #path: PathPattern | null
  readonly #methods: readonly string[] | null
  readonly #headerNames: readonly string[]
  readonly #headerValues: readonly string[]

  /** Throws on a pattern that validation should have refused. */
  constructor(spec: MatchSpec | null) {
    this.#path = spec?.path == null ? null : compilePath(spec.path)
    this.#methods = spec?.method ?? null
    this.#headerNames = Object.keys(spec?.header ?? {})
    this.#headerValues = Object.values(spec?.header ?? {})
  }

  get usesPath(): boolean {
    return this.#path !== null
  }

  get usesHeaders(): boolean {
    return this.#headerNames.length > 0
  }

  test(facts: RequestFacts): boolean {
    if (this.#methods !== null && !this.#methods.includes(facts.method)) return false
    if (this.#path !== null && (facts.path === null || !this.#path.matches(facts.path)))
      return false
    for (let index = 0; index < this.#headerNames.length; index++) {
      if (facts.header(this.#headerNames[index]!) !== this.#headerValues[index]) return false
    }
    return true
  }

  /** The first part that does not match, in words; null when all do. Header values stay unsaid. */
  mismatch(facts: RequestFacts): string | null {
    if (this.#methods !== null && !this.#methods.includes(facts.method)) {
      return `method ${facts.method} is not ${this.#methods.join(' or ')}`
    }
    if (this.#path !== null && facts.path === null) return 'the path is ambiguous'
    if (this.#path !== null && !this.#path.matches(facts.path!)) {
      return `path ${facts.path} does not match ${this.#path.text}`
    }
    for (let index = 0; index < this.#headerNames.length; index++) {
      const name = this.#headerNames[index]!
      const value = facts.header(name)
      if (value === undefined) return `header ${name} is absent`
      if (value !== this.#headerValues[index]) return `header ${name} has another value`
    }
    return null
  }
}

/** One `allow:` or `deny:` entry: a match and, perhaps, a network. */
export class CompiledEntry {
  readonly #match: CompiledMatch
  readonly #networks: CidrSet | null
  readonly #trustedOnly: boolean
  /** The entry as users would recognise it. */
  readonly text: string

  /** `trustedHeaders`: header parts count only when the direct peer is trusted. */
  constructor(entry: ListEntry, trustedHeaders: boolean) {
    this.#match = new CompiledMatch(entry)
    this.#networks = entry.cidr === null ? null : new CidrSet([compileCidr(entry.cidr)])
    this.#trustedOnly = trustedHeaders && this.#match.usesHeaders
    this.text = entryText(entry)
  }

  get usesPath(): boolean {
    return this.#match.usesPath
  }

  test(facts: RequestFacts): boolean {
    if (this.#trustedOnly && !facts.peerTrusted) return false
    if (this.#networks !== null && !this.#networks.contains(facts.ip)) return false
    return this.#match.test(facts)
  }
}

function entryText(entry: ListEntry): string {
  const parts: string[] = []
  if (entry.cidr !== null) parts.push(`cidr ${entry.cidr}`)
  if (entry.path !== null) parts.push(`path ${entry.path}`)
  if (entry.method !== null) parts.push(`method ${entry.method.join(' or ')}`)
  for (const name of Object.keys(entry.header ?? {})) parts.push(`header ${name}`)
  return parts.join(', ')
}

function compilePath(text: string): PathPattern {
  const parsed = parsePathPattern(text)
  if (!parsed.ok) throw new Error(`path ${text} was not validated: ${parsed.error}`)
  return parsed.pattern
}

function compileCidr(text: string): Cidr {
  const network = parseCidr(text)
  if (network === null) throw new Error(`network ${text} was not validated`)
  return network
}
