/**
 * `onExceeded.staleFor`: a client over its limit gets the last 200 of the same GET instead of a
 * 429, marked as stale. Kept per rule key, method, host, target and what the response varies by,
 * in bounded memory; what is private stays out. RFC 9111 says what a shared cache may keep.
 */
import { CompiledKey } from '../limiter/compiled-key.js'
import { CompiledMatch } from '../limiter/compiled-match.js'
import type { Decision } from '../limiter/decision.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { RuleSet, RuleSpec } from '../limiter/rule.js'
import type { CheckedResponse } from './heads.js'
import type { CheckedRequest } from './request-check.js'

export interface StaleLimits {
  /** Bodies and heads kept in all; the oldest go first. */
  readonly bytesMax: number
  /** A longer response is not kept. */
  readonly entryBytesMax: number
  /** Responses kept in all. */
  readonly entriesMax: number
}

export const defaultStaleLimits: StaleLimits = {
  bytesMax: 33_554_432,
  entryBytesMax: 1_048_576,
  entriesMax: 10_000,
}

/** A kept response. */
export interface StaleResponse {
  readonly response: CheckedResponse
  readonly body: Buffer
  /** Since the upstream answered, in whole seconds, its own Age included. */
  readonly ageSeconds: number
}

interface Entry {
  readonly response: CheckedResponse
  readonly body: Buffer
  readonly storedMs: number
  readonly bytes: number
  /** Request fields that the response varies by, with the values they had. */
  readonly vary: readonly { readonly name: string; readonly value: string | undefined }[]
}

interface StaleRule {
  readonly spec: RuleSpec
  readonly match: CompiledMatch
  readonly key: CompiledKey
  /** The key tells apart who is authorised, so that nobody reads another one's response. */
  readonly keyedByAuthorization: boolean
}

export class StaleCache {
  readonly #limits: StaleLimits
  readonly #monotonicMs: () => number
  readonly #entries = new Map<string, Entry>()
  #bytes = 0
  #ruleSet: RuleSet | null = null
  #rules: readonly StaleRule[] = []

  constructor(limits: StaleLimits, monotonicMs: () => number) {
    this.#limits = limits
    this.#monotonicMs = monotonicMs
  }

  get size(): number {
    return this.#entries.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Begins to record the response to an admitted request; null when no rule wants it. */
  record(rules: RuleSet, facts: RequestFacts, request: CheckedRequest): StaleRecorder | null {
    const wanted = this.#rulesOf(rules)
    if (wanted.length === 0 || request.method !== 'GET') return null
    const authorized = facts.header('authorization') !== undefined
    const keys: string[] = []
    for (const rule of wanted) {
      if ((authorized && !rule.keyedByAuthorization) || !rule.match.test(facts)) continue
      const key = keyOf(rule, facts, request)
      if (key !== null) keys.push(key)
    }
    if (keys.length === 0) return null
    return new StaleRecorder(facts, this.#limits.entryBytesMax, (response, body, vary) => {
      for (const key of keys) this.#store(key, response, body, vary)
    })
  }

  /** The response that may stand in for the denial; null when there is none. */
  find(
    rules: RuleSet,
    decision: Decision,
    facts: RequestFacts,
    request: CheckedRequest,
  ): StaleResponse | null {
    if (decision.reason !== 'limited' || request.method !== 'GET') return null
    const rule = this.#rulesOf(rules).find(({ spec }) => spec.name === decision.rule)
    if (rule === undefined) return null
    if (facts.header('authorization') !== undefined && !rule.keyedByAuthorization) return null
    const key = keyOf(rule, facts, request)
    const entry = key === null ? undefined : this.#entries.get(key)
    if (entry === undefined) return null
    const ageMs = this.#monotonicMs() - entry.storedMs
    if (ageMs > rule.spec.onExceeded.staleForMs) return null
    if (entry.vary.some(({ name, value }) => facts.header(name) !== value)) return null
    const before = Number(fieldOf(entry.response, 'age') ?? 0)
    const ageSeconds = Math.floor(ageMs / 1000) + (Number.isFinite(before) ? before : 0)
    return { response: entry.response, body: entry.body, ageSeconds }
  }

  #rulesOf(rules: RuleSet): readonly StaleRule[] {
    if (rules === this.#ruleSet) return this.#rules
    this.#ruleSet = rules
    this.#rules = rules.rules
      .filter(spec => spec.onExceeded.staleForMs > 0)
      .map(spec => ({
        spec,
        match: new CompiledMatch(spec.match),
        key: new CompiledKey(spec.key, spec.missing),
        keyedByAuthorization: spec.key.some(
          ([first]) => first?.kind === 'header' && first.name === 'authorization',
        ),
      }))
    return this.#rules
  }

  #store(key: string, response: CheckedResponse, body: Buffer, vary: Entry['vary']): void {
    this.#remove(key)
    const headBytes = response.head.headers.reduce((sum, text) => sum + text.length, 0)
    const bytes = body.length + headBytes + key.length
    this.#entries.set(key, { response, body, storedMs: this.#monotonicMs(), bytes, vary })
    this.#bytes += bytes
    const { bytesMax, entriesMax } = this.#limits
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= bytesMax && this.#entries.size <= entriesMax) break
      this.#remove(oldest)
    }
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }
}

/** Collects one response as it passes; what turns out not to be kept is let go at once. */
export class StaleRecorder {
  readonly #facts: RequestFacts
  readonly #bytesMax: number
  readonly #store: (response: CheckedResponse, body: Buffer, vary: Entry['vary']) => void
  #response: CheckedResponse | null = null
  #vary: Entry['vary'] = []
  #parts: Buffer[] = []
  #bytes = 0

  constructor(
    facts: RequestFacts,
    bytesMax: number,
    store: (response: CheckedResponse, body: Buffer, vary: Entry['vary']) => void,
  ) {
    this.#facts = facts
    this.#bytesMax = bytesMax
    this.#store = store
  }

  /** False: this response is not kept. */
  begin(response: CheckedResponse): boolean {
    if (response.head.status !== 200 || fieldOf(response, 'set-cookie') !== undefined) return false
    const control = fieldOf(response, 'cache-control') ?? ''
    if (/(?:^|[\s,])(?:private|no-store|no-cache|must-revalidate)(?:$|[\s,=])/i.test(control)) {
      return false
    }
    const vary = (fieldOf(response, 'vary') ?? '')
      .split(',')
      .map(name => name.trim().toLowerCase())
      .filter(name => name !== '')
    if (vary.includes('*')) return false
    this.#vary = vary.map(name => ({ name, value: this.#facts.header(name) }))
    this.#response = response
    return true
  }

  /**
   * False: it is too long to be kept. The bytes are copied, since a piece keeps a whole read
   * alive.
   */
  add(body: Buffer): boolean {
    this.#bytes += body.length
    if (this.#bytes > this.#bytesMax) return false
    this.#parts.push(Buffer.from(body))
    return true
  }

  /** The response is whole. */
  end(): void {
    if (this.#response) this.#store(this.#response, Buffer.concat(this.#parts), this.#vary)
  }
}

function keyOf(rule: StaleRule, facts: RequestFacts, request: CheckedRequest): string | null {
  const key = rule.key.read(facts)
  if (key === null) return null
  return [rule.spec.name, key, request.method, (request.host ?? '').toLowerCase(), request.target]
    .map(part => `${part.length}:${part}`)
    .join('')
}

function fieldOf({ head, names }: CheckedResponse, lower: string): string | undefined {
  let found: string | undefined
  for (let index = 0; index < names.length; index++) {
    if (names[index]?.lower !== lower) continue
    const value = head.headers[2 * index + 1] as string
    found = found === undefined ? value : `${found}, ${value}`
  }
  return found
}
