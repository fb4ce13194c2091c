/**
 * The effects of the event at hand, in order, and the one place that counts what is sent and
 * dropped.
 */
import type { Address } from '../vocabulary.js'
import type { Effect } from './effects.js'
import { type DropReason, droppedNames, type SwimStats } from './stats.js'

/**
 * A reason is told of at most this often, so that a flood of bad packets is not a flood of log
 * lines.
 */
const dropNoticeIntervalMs = 10_000

/** What to look at first, where the cause is nearly always two nodes set up differently. */
const hints: Readonly<Partial<Record<DropReason, string>>> = {
  undecryptable: 'none of our gossip keys opens it',
  noKey: 'it is encrypted, and no gossip key is set here',
  encryptionMalformed: 'it is plain or damaged, and a gossip key is set here',
  notEncrypted: 'it is plain, and a gossip key is set here',
  labelMismatch: 'its label is another',
}

type Fields = Readonly<Record<string, string | number>>

export class EffectList {
  readonly stats: SwimStats
  #effects: Effect[] = []
  readonly #noticeAtMs = new Map<DropReason, number>()

  constructor(stats: SwimStats) {
    this.stats = stats
  }

  add(effect: Effect): void {
    this.#effects.push(effect)
  }

  notice(level: 'debug' | 'info' | 'warn', text: string, fields: Fields = {}): void {
    this.#effects.push({ kind: 'notice', level, text, fields })
  }

  /** Counts something ignored; says so at most every ten seconds per reason. */
  drop(reason: DropReason, from: Address | string, nowMs: number): void {
    this.stats[droppedNames[reason]] += 1
    const quietUntilMs = this.#noticeAtMs.get(reason) ?? -Infinity
    if (nowMs < quietUntilMs) return
    this.#noticeAtMs.set(reason, nowMs + dropNoticeIntervalMs)
    const peer = typeof from === 'string' ? from : `${from.host}:${from.port}`
    const hint = hints[reason]
    const text = `ignored what a peer sent${hint === undefined ? '' : `: ${hint}`}`
    this.notice('warn', text, { reason, peer })
  }

  take(): Effect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }
}
