/** Rules documents, one after the other, into one rule set. Pure. */
import type { ListEntry, RuleSet, RuleSpec } from '../limiter/rule.js'
import type { ConfigDocument } from './documents.js'
import { type ConfigPath, type Finding, formatPath, hasErrors, sortFindings } from './finding.js'
import { type Located, Reporter } from './locator.js'
import { normalEntry, normalRule } from './normal-rules.js'
import { checkRule } from './rule-checks.js'
import { reportRuleSurprises } from './rule-surprises.js'
import { hashRules } from './rules-hash.js'
import { type RulesText, type RuleText, rulesMax } from './rules-schema.js'
import { reportUnsupported } from './unsupported.js'
import { validate } from './validate.js'

export type RulesResult =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly Finding[] }
  | { readonly ok: false; readonly findings: readonly Finding[] }

/** What is known of the sidecar that the rules are for. */
export interface RulesContext {
  /** `identity.jwt` is set; null: not known. */
  readonly jwt: boolean | null
  /** Anybody's forwarding headers are believed; null: not known. */
  readonly trustedProxies: boolean | null
  /** Expected number of sidecars; null: not known. */
  readonly pods: number | null
  /** The proxy runs, so that responses are seen; null: not known. */
  readonly proxy: boolean | null
}

export const unknownContext: RulesContext = {
  jwt: null,
  trustedProxies: null,
  pods: null,
  proxy: null,
}

/** A rule or list entry and where it stands. */
export interface Placed<T> {
  readonly spec: T
  readonly path: ConfigPath
  readonly report: Reporter
}

export class RulesAssembly {
  readonly #reports: Reporter[] = []
  readonly #names = new Map<string, Located>()
  readonly #allow: Placed<ListEntry>[] = []
  readonly #deny: Placed<ListEntry>[] = []
  readonly #rules: Placed<RuleSpec>[] = []
  readonly #extra: Finding[] = []

  /** Errors found outside of documents that reach `add`: unreadable files, broken YAML. */
  fail(findings: readonly Finding[]): void {
    this.#extra.push(...findings)
  }

  add(document: ConfigDocument): void {
    const report = new Reporter(document.locator)
    this.#reports.push(report)
    const valid = validate('rules', document.value, report)
    reportUnsupported(document.value, report)
    if (valid) this.addValid(document.value as RulesText, report)
    else this.#checkValidRules(document.value, report)
  }

  /** In a file with mistakes, what can be said of the rules that have none so far. */
  #checkValidRules(value: unknown, report: Reporter): void {
    const rules = (value as { readonly rules?: unknown } | null)?.rules
    if (!Array.isArray(rules)) return
    const wrong = report.findings.map(({ path }) => path)
    rules.forEach((rule: RuleText, index) => {
      const place = formatPath(['rules', index])
      if (wrong.some(path => path === place || path.startsWith(`${place}.`))) return
      checkRule(rule, ['rules', index], report)
      this.#checkName(rule.name, ['rules', index, 'name'], report)
    })
  }

  /** For rules that stand inline in a sidecar file, which was validated as a whole. */
  addValid(text: RulesText, report: Reporter): void {
    if (!this.#reports.includes(report)) this.#reports.push(report)
    for (const list of ['allow', 'deny'] as const) {
      const into = list === 'allow' ? this.#allow : this.#deny
      text[list]?.forEach((entry, index) => {
        into.push({ spec: normalEntry(entry), path: [list, index], report })
      })
    }
    text.rules?.forEach((rule, index) => {
      const path = ['rules', index]
      checkRule(rule, path, report)
      this.#checkName(rule.name, [...path, 'name'], report)
      this.#rules.push({ spec: normalRule(rule, text.timezone ?? 'UTC'), path, report })
    })
  }

  #checkName(name: string, path: ConfigPath, report: Reporter): void {
    const first = this.#names.get(name)
    const here = report.locator.valueAt(path)
    if (first === undefined) {
      this.#names.set(name, here)
      return
    }
    const where = first.file === here.file ? '' : ` of ${first.file}`
    const message = `rule "${name}" stands twice, first in line ${first.line}${where}`
    report.error(path, 'duplicate-rule', message)
  }

  finish(context: RulesContext): RulesResult {
    const placed = { allow: this.#allow, deny: this.#deny, rules: this.#rules }
    for (const [list, entries] of Object.entries(placed)) {
      const beyond = entries[rulesMax]
      const message = `more than ${rulesMax} entries of ${list} in all files together`
      beyond?.report.error(beyond.path, 'too-many', message)
    }
    reportRuleSurprises(placed, context)
    const findings = sortFindings([
      ...this.#extra,
      ...this.#reports.flatMap(report => report.findings),
    ])
    if (hasErrors(findings)) return { ok: false, findings }
    const rules = {
      allow: this.#allow.map(({ spec }) => spec),
      deny: this.#deny.map(({ spec }) => spec),
      rules: this.#rules.map(({ spec }) => spec),
    }
    return { ok: true, rules: { ...rules, hash: hashRules(rules) }, warnings: findings }
  }
}
