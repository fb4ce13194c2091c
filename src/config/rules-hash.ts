/** A number that equal rules share and others do not; pods compare it through their meta. */
import { createHash } from 'node:crypto'
import type { RuleSet } from '../limiter/rule.js'

/** First 48 bits of SHA-256 over the canonical JSON (keys sorted), so exact as a number. */
export function hashRules(rules: Omit<RuleSet, 'hash'>): number {
  const { allow, deny, rules: list } = rules
  const text = canonicalJson({ allow, deny, rules: list })
  return createHash('sha256').update(text).digest().readUIntBE(0, 6)
}

/** JSON with the keys of every object in order of their code units. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, child]) => `${JSON.stringify(key)}:${canonicalJson(child)}`)}}`
}
