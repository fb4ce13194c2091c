/**
 * The rules in force: loaded at start, read again when their file changes or somebody asks, last known
 * good kept. Rules come from `--rules`, or from the sidecar file itself when that is not given.
 */
import type { Logger } from 'pino'
import type { RulesContext, RulesResult } from '../config/assemble-rules.js'
import { type Finding, formatFinding } from '../config/finding.js'
import { type LoadSidecarOptions, rulesOf, sidecarOf } from '../config/load.js'
import { hashRules } from '../config/rules-hash.js'
import { readSnapshot, type Snapshot } from '../config/snapshot.js'
import { type PathWatch, watchPath } from '../config/watch.js'
import type { ReloadOutcome } from '../http/admin.js'
import type { RuleSet } from '../limiter/rule.js'
import type { ConfigStatus } from '../metrics/snapshot.js'
import type { Clock } from '../ports.js'

export interface LiveRulesOptions {
  /** File or directory of `--rules`; null: the rules stand in the sidecar file. */
  readonly rulesPath: string | null
  readonly configPath: string
  /** What the sidecar file was read with. */
  readonly load: LoadSidecarOptions
  readonly context: RulesContext
}

export interface LiveRulesPorts {
  readonly log: Logger
  readonly clock: Pick<Clock, 'wallMs'>
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
  #rules = noRules
  #digest: string | null = null
  #apply: ((rules: RuleSet) => void) | null = null
  #watch: PathWatch | null = null
  #successful = false
  #lastSuccessMs = 0
  #succeeded = 0
  #failed = 0

  constructor(options: LiveRulesOptions, ports: LiveRulesPorts) {
    this.#options = options
    this.#log = ports.log
    this.#clock = ports.clock
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

  /** Reads the rules now, whether or not they changed. Errors leave the rules in force as they are. */
  async reload(): Promise<ReloadOutcome> {
    return this.#take(await readSnapshot(this.#path))
  }

  /** From now on changes are noticed, and new rules handed to `apply`. */
  start(apply: (rules: RuleSet) => void): void {
    this.#apply = apply
    const options = { digest: this.#digest }
    this.#watch = watchPath(this.#path, snapshot => this.#take(snapshot), options)
  }

  stop(): void {
    this.#watch?.close()
    this.#apply = null
  }

  get #path(): string {
    return this.#options.rulesPath ?? this.#options.configPath
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
    const { rulesPath, configPath, load, context } = this.#options
    if (rulesPath !== null) return rulesOf(snapshot, rulesPath, context)
    const sidecar = sidecarOf(snapshot, configPath, load)
    if (!sidecar.ok) return sidecar
    return sidecar.inlineRules ?? { ok: true, rules: noRules, warnings: [] }
  }

  #refuse(findings: readonly Finding[]): ReloadOutcome {
    this.#successful = false
    this.#failed += 1
    for (const finding of findings) this.#logFinding(finding)
    this.#log.error({ hash: this.#rules.hash }, 'rules are invalid; the rules in force stay')
    return { ok: false, errors: findings.map(formatFinding) }
  }

  #logFinding(finding: Finding): void {
    const { file, line, column, code } = finding
    const level = finding.level === 'error' ? 'error' : 'warn'
    this.#log[level]({ file, line, column, code }, formatFinding(finding))
  }
}
