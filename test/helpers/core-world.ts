/** The real core behind the real engine, alone in its fleet, on clocks that a test moves by hand. */
import { parseRules } from '../../src/config/parse.js'
import { Core } from '../../src/core.js'
import { Engine } from '../../src/engine.js'
import type { Decision } from '../../src/limiter/decision.js'
import type { RuleSet } from '../../src/limiter/rule.js'
import type { Clock } from '../../src/ports.js'
import { lanDefaults } from '../../src/swim/options.js'
import type { MemberName } from '../../src/vocabulary.js'
import { requestFacts } from './rule-specs.js'

/** Rules as a user writes them, without the version line. */
export function rulesFrom(text: string): RuleSet {
  const result = parseRules([{ name: 'rules.yaml', text: `version: 1\n${text}` }])
  if (!result.ok) throw new Error(result.findings.map(({ message }) => message).join('\n'))
  return result.rules
}

/** Both clocks apart from each other; the wall starts in the middle of every window up to a day. */
export class TwoClocks implements Clock {
  nowMs = 1_000_000
  epochMs = 1_700_050_400_000 + 20_000

  monotonicMs(): number {
    return this.nowMs
  }

  wallMs(): number {
    return this.epochMs
  }

  /** Time as it passes: on both. */
  pass(ms: number): void {
    this.nowMs += ms
    this.epochMs += ms
  }
}

export class CoreWorld {
  readonly clock = new TwoClocks()
  readonly core: Core
  readonly engine: Engine
  /** What the engine heard the core throw. */
  readonly failures: unknown[] = []

  constructor(rules: string | RuleSet, keysMax = 1000, seed = 1) {
    let state = seed
    const random = () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
      return state / 0x8000_0000
    }
    this.core = new Core(
      {
        node: 'pod-a',
        version: '0.1.0',
        startWallMs: this.clock.wallMs(),
        swim: {
          ...lanDefaults,
          name: 'pod-a-1' as MemberName,
          advertise: { host: '127.0.0.1', port: 7946 },
        },
        counters: { keysMax, secret: null },
        rules: typeof rules === 'string' ? rulesFrom(rules) : rules,
      },
      {
        random,
        entropy: length => Uint8Array.from({ length }, () => Math.floor(random() * 256)),
      },
    )
    this.core.start(this.clock.monotonicMs(), this.clock.wallMs())
    this.engine = new Engine({
      core: this.core,
      clock: this.clock,
      wake: () => void this.core.takeEffects(),
      onFailure: error => this.failures.push(error),
    })
  }

  reload(rules: string | RuleSet): void {
    this.engine.applyRules(typeof rules === 'string' ? rulesFrom(rules) : rules)
  }

  /** A copy of the decision on a request from `ip`, settled as done well if it is owed. */
  ask(ip = '192.0.2.7', headers: Readonly<Record<string, string>> = {}): Decision {
    const decision = this.engine.decide(requestFacts({ ip, headers, path: '/' }), 'proxy')
    return { ...decision, keyHash: decision.keyHash ?? null, violated: [...decision.violated] }
  }

  /** Asks until refused, at most `askedMax` times; how often it passed. */
  exhaust(ip = '192.0.2.7', askedMax = 10_000): number {
    for (let passed = 0; passed < askedMax; passed++) if (!this.ask(ip).allowed) return passed
    return askedMax
  }
}
