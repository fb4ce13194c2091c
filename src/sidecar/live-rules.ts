/**
 * The rules in force: loaded at start, read again when their source changes or somebody asks, last
 * known good kept. Where they come from is the source's business.
 */
import type { Logger } from 'pino'
import type { RulesContext, RulesResult } from '../config/assemble-rules.js'
import { type Finding, formatFinding } from '../config/finding.js'
import { type LoadSidecarOptions, rulesOf, sidecarOf } from '../config/load.js'
import { hashRules } from '../config/rules-hash.js'
import type { Snapshot } from '../config/snapshot.js'
import type { ReflectorStats } from '../discovery/reflector.js'
import type { ReloadOutcome } from '../http/admin.js'
import type { RuleSet } from '../limiter/rule.js'
import type { ConfigStatus } from '../metrics/snapshot.js'
import type { Clock } from '../ports.js'
import type { RulesSource } from './rules-source.js'

export interface LiveRulesOptions {
  readonly source: RulesSource
  /** The source is the sidecar file, and the rules stand in it beside other things. */
  readonly inline: boolean
  /** What the sidecar file was read with. */
  readonly load: LoadSidecarOptions
  readonly context: RulesContext
}

export interface LiveRulesPorts {
  readonly log: Logger
  readonly clock: Pick<Clock, 'wallMs'>
  /** Told when rules are refused, with the digest of what was. */
  readonly refused?: (digest: string, errors: readonly string[]) => void
}

/** What stands while no rules could be loaded: everything passes. */
const noRules: RuleSet = {
  allow: [],
  deny: [],
  rules: [],
  hash: hashRules({ allow: [], deny: [], rules: [] }),
}

export class LiveRules {
  readonly #options: LiveRulesOptions
  readonly #log: Logger
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #refused: LiveRulesPorts['refused']
  #rules = noRules
  #digest: string | null = null
  #apply: ((rules: RuleSet) => void) | null = null
  #watch: { close(): void } | null = null
  #successful = false
  #lastSuccessMs = 0
  #succeeded = 0
  #failed = 0

  constructor(options: LiveRulesOptions, ports: LiveRulesPorts) {
    this.#options = options
    this.#log = ports.log
    this.#clock = ports.clock
    this.#refused = ports.refused
  }

  /** The rules in force; none before the first successful load. */
  get rules(): RuleSet {
    return this.#rules
  }

  status(): ConfigStatus {
    return {
      lastReloadSuccessful: this.#successful,
      lastSuccessSeconds: this.#lastSuccessMs / 1000,
      reloadsSucceeded: this.#succeeded,
      reloadsFailed: this.#failed,
    }
  }

  /** How the API is doing that the rules come from; null: they come from elsewhere. */
  kubernetes(): ReflectorStats | null {
    return this.#options.source.stats?.() ?? null
  }

  /** Reads the rules now, changed or not. Errors leave the rules in force as they are. */
  async reload(): Promise<ReloadOutcome> {
    return this.#take(await this.#options.source.read())
  }

  /** From now on changes are noticed, and new rules handed to `apply`. */
  start(apply: (rules: RuleSet) => void): void {
    this.#apply = apply
    this.#watch = this.#options.source.watch(snapshot => {
      if (snapshot.digest !== this.#digest) this.#take(snapshot)
    }, this.#digest)
  }

  stop(): void {
    this.#watch?.close()
    this.#apply = null
  }

  #take(snapshot: Snapshot): ReloadOutcome {
    this.#digest = snapshot.digest
    const result = this.#resultOf(snapshot)
    if (!result.ok) return this.#refuse(result.findings)
    for (const finding of result.warnings) this.#logFinding(finding)
    const changed = result.rules.hash !== this.#rules.hash
    this.#rules = result.rules
    this.#successful = true
    this.#lastSuccessMs = this.#clock.wallMs()
    this.#succeeded += 1
    if (changed) this.#apply?.(result.rules)
    const fields = { rules: result.rules.rules.length, hash: result.rules.hash, changed }
    this.#log.info(fields, 'rules loaded')
    return { ok: true, hash: result.rules.hash }
  }

  #resultOf(snapshot: Snapshot): RulesResult {
    const { source, inline, load, context } = this.#options
    if (!inline) return rulesOf(snapshot, source.name, context)
    const sidecar = sidecarOf(snapshot, source.name, load)
    if (!sidecar.ok) return sidecar
    return sidecar.inlineRules ?? { ok: true, rules: noRules, warnings: [] }
  }

  #refuse(findings: readonly Finding[]): ReloadOutcome {
    this.#successful = false
    this.#failed += 1
    for (const finding of findings) this.#logFinding(finding)
    const instead = this.#succeeded > 0 ? 'the rules in force stay' : 'none are in force'
    this.#log.error({ hash: this.#rules.hash }, `rules are invalid; ${instead}`)
    const errors = findings.map(formatFinding)
    if (this.#digest !== null) this.#refused?.(this.#digest, errors)
    return { ok: false, errors }
  }

  #logFinding(finding: Finding): void {
    const { file, line, column, code } = finding
    const level = finding.level === 'error' ? 'error' : 'warn'
    this.#log[level]({ file, line, column, code }, formatFinding(finding))
  }
}
