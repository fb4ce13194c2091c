/**
 * The pure sidecar: limiter, counters and swim joined into one steppable unit. Events and both
 * clocks go in, decisions and effects come out; production and the simulator assemble the same
 * `Core`. This is where the compiler checks that the three rooms fit each other.
 */
import { encodeNodeMeta, originOf } from './core-meta.js'
import { memberViews, Peers } from './core-peers.js'
import type {
  CoreOptions,
  CoreStats,
  Explanation,
  KeyView,
  Matching,
  MemberView,
  NodeMeta,
  RuleStats,
} from './core-types.js'
import { CounterTable } from './counters/counter-table.js'
import { Replicator } from './counters/replicator.js'
import { assert } from './lib/assert.js'
import type { Decision, Outcome, Settlement } from './limiter/decision.js'
import type { CounterView } from './limiter/key-views.js'
import { Limiter } from './limiter/limiter.js'
import { createMatchResult } from './limiter/match-result.js'
import type { RequestFacts } from './limiter/request-facts.js'
import type { RuleSet, RuleSpec } from './limiter/rule.js'
import type { Entropy, Random } from './ports.js'
import type { Delegate } from './swim/delegate.js'
import type { Effect, StreamId } from './swim/effects.js'
import type { MemberState } from './swim/member.js'
import { Swim } from './swim/protocol.js'
import type { Address, DecisionInterface, MemberName, RuleName } from './vocabulary.js'

export interface CorePorts {
  readonly random: Random
  readonly entropy: Entropy
}

/** A core that runs is called more often than this, milliseconds; a longer gap is a stall. */
const stallMs = 250
/** How often a silent address is tried again, on average; half to one and a half times that. */
const silentRetryMs = 1000
/** Silent addresses tried in one go. */
const silentRetriesMax = 3
/**
 * Greatest snapshot in one push/pull, bytes: what is written, sealed, opened and read in a
 * millisecond each. A larger table is told in a row of them (counters.md §4).
 */
const stateBytesMax = 512 * 1024

export class Core {
  readonly #swim: Swim
  readonly #peers: Peers
  readonly #limiter: Limiter
  readonly #table: CounterTable
  readonly #replicator: Replicator
  readonly #random: Random
  readonly #self: MemberName
  #meta: NodeMeta
  #rules: RuleSet
  readonly #effects: Effect[] = []
  /** Delegate calls carry monotonic time only; this is the wall time of the event being handled. */
  #wallMs = 0
  #nowMs = 0
  #silentRetryAtMs = Number.POSITIVE_INFINITY
  #suspicionsSeen = 0
  #seenAtMs = Number.POSITIVE_INFINITY

  constructor(options: CoreOptions, ports: CorePorts) {
    this.#random = ports.random
    this.#self = options.swim.name
    this.#rules = options.rules
    const origin = originOf(ports.entropy(8))
    this.#meta = {
      node: options.node,
      origin,
      start: options.startWallMs,
      version: options.version,
      configHash: options.rules.hash,
      draining: false,
    }
    this.#peers = new Peers(this.#self, this.#meta)
    this.#swim = new Swim(options.swim, { ...ports, delegate: this.#delegate() })
    this.#table = new CounterTable({
      keysMax: options.counters.keysMax,
      secret: options.counters.secret,
      label: options.swim.label,
      seed: ports.entropy(8),
    })
    this.#replicator = new Replicator(
      { table: this.#table, origin, payloadBytesMax: this.#swim.packetPayloadBytesMax() },
      { random: ports.random },
    )
    this.#limiter = new Limiter({ store: this.#table })
  }

  #delegate(): Delegate {
    return {
      nodeMeta: () => encodeNodeMeta(this.#meta),
      notifyPingComplete: (_peer, rttMs) => this.#replicator.observeTransitMs(rttMs / 2),
      notifyAnswer: (member, nowMs) => this.#heardFrom(member.address, nowMs),
      notifyMessage: (message, nowMs) =>
        this.#replicator.handleMessage(message, nowMs, this.#wallMs),
      getBroadcasts: () => [],
      localState: (join, nowMs) =>
        this.#replicator.localState(join, nowMs, this.#wallMs, stateBytesMax),
      mergeRemoteState: (state, join, nowMs) =>
        this.#replicator.mergeRemoteState(state, join, nowMs, this.#wallMs),
    }
  }

  /** Announces the node to itself and arms the protocol's timers. Once, before everything else. */
  start(monotonicMs: number, wallMs: number): void {
    this.#wallMs = wallMs
    this.#seenAtMs = monotonicMs
    this.#limiter.setRules(this.#rules, monotonicMs, wallMs)
    this.#swim.start(monotonicMs)
    this.#absorb(monotonicMs)
  }

  // ---------------------------------------------------------------------------------- requests

  /**
   * May this request pass? Charges every matching rule or none. Read the answer before the next
   * call.
   */
  decide(
    facts: RequestFacts,
    via: DecisionInterface,
    monotonicMs: number,
    wallMs: number,
  ): Decision {
    this.#watch(monotonicMs)
    return this.#limiter.decide(facts, via, monotonicMs, wallMs)
  }

  /**
   * Charges `cost` to one key of one rule, as `POST /v1/check` does: 0 looks, a negative cost gives
   * back. `key` holds the parts of a compound key. Null when there is no such rule.
   */
  check(
    rule: string,
    key: readonly string[],
    cost: number,
    monotonicMs: number,
    wallMs: number,
  ): Decision | null {
    this.#watch(monotonicMs)
    return this.#limiter.check(rule, key, cost, 'check', monotonicMs, wallMs)
  }

  /** Tells how a request ended, for rules that count outcomes, settle costs or hold slots. */
  settle(settlement: Settlement, outcome: Outcome, monotonicMs: number, wallMs: number): void {
    this.#limiter.settle(settlement, outcome, monotonicMs, wallMs)
  }

  /** Why a request would be answered the way it would. Consumes nothing. */
  explain(facts: RequestFacts, monotonicMs: number, wallMs: number): Explanation {
    const explanation = this.#limiter.explain(facts, monotonicMs, wallMs)
    const rules = explanation.rules.map(rule => ({
      ...rule,
      key: rule.key && this.#named(rule.key),
    }))
    return { ...explanation, rules }
  }

  /** Which rules a request falls under, without asking any of them. */
  matching(facts: RequestFacts): Matching {
    const match = createMatchResult(Math.max(1, this.#rules.rules.length))
    this.#limiter.matcher.match(facts, match)
    const indexes = [...match.rule.subarray(0, match.count)]
    const rules = indexes.flatMap(index => this.#rules.rules[index] ?? [])
    return { outcome: match.outcome, rules }
  }

  // ----------------------------------------------------------------------------- configuration

  /**
   * Puts new rules in force. Usage stays with a rule's name; what changed in numbers is carried
   * over.
   */
  applyRules(rules: RuleSet, monotonicMs: number, wallMs: number): void {
    this.#wallMs = wallMs
    this.#rules = rules
    this.#limiter.setRules(rules, monotonicMs, wallMs)
    this.#changeMeta({ ...this.#meta, configHash: rules.hash }, monotonicMs)
  }

  rules(): RuleSet {
    return this.#rules
  }

  rule(name: RuleName): RuleSpec | undefined {
    return this.#rules.rules.find(rule => rule.name === name)
  }

  /** Replaces the gossip keys: the first encrypts, all decrypt; none means plaintext. */
  setKeyring(keys: readonly Uint8Array[]): void {
    this.#swim.setKeyring(keys)
  }

  // ------------------------------------------------------------------------------------ gossip

  /** Exchanges state with each address; `exchangeSettled` effects tell how it went. */
  join(addresses: readonly Address[], monotonicMs: number): void {
    this.#swim.join(addresses, monotonicMs)
    this.#absorb(monotonicMs)
  }

  /**
   * Discovery's Ready set; null where discovery cannot tell a split from a departure (static, DNS).
   */
  setExpectedPeers(addresses: readonly Address[] | null, monotonicMs: number): void {
    this.#peers.setExpected(addresses, monotonicMs)
    this.#refreshPeers(monotonicMs)
  }

  handlePacket(bytes: Uint8Array, from: Address, monotonicMs: number, wallMs: number): void {
    this.#watch(monotonicMs)
    this.#wallMs = wallMs
    const isOurs = this.#swim.handlePacket(bytes, from, monotonicMs)
    this.#absorb(monotonicMs)
    if (isOurs) this.#heardFrom(from, monotonicMs)
  }

  /** A connection came in. Null refuses it: too many, or not from an allowed network. */
  acceptStream(from: Address, monotonicMs: number): StreamId | null {
    return this.#swim.acceptStream(from, monotonicMs)
  }

  handleStreamData(stream: StreamId, bytes: Uint8Array, monotonicMs: number, wallMs: number): void {
    this.#watch(monotonicMs)
    this.#wallMs = wallMs
    this.#swim.handleStreamData(stream, bytes, monotonicMs)
    this.#absorb(monotonicMs)
  }

  /** The other side closed (error null), or the connection failed. */
  handleStreamEnd(
    stream: StreamId,
    error: string | null,
    monotonicMs: number,
    wallMs: number,
  ): void {
    this.#wallMs = wallMs
    this.#swim.handleStreamEnd(stream, error, monotonicMs)
    this.#absorb(monotonicMs)
  }

  /** Does everything that is due: probes, gossip, counter batches, tries at silent pods. */
  advance(monotonicMs: number, wallMs: number): void {
    this.#watch(monotonicMs)
    this.#wallMs = wallMs
    this.#swim.advance(monotonicMs)
    this.#absorb(monotonicMs)
    this.#nowMs = monotonicMs
    const fellSilent = this.#peers.advance(monotonicMs, member =>
      this.#swim.ask(member, monotonicMs),
    )
    if (fellSilent) this.#refreshPeers(monotonicMs)
    this.#replicator.advance(monotonicMs, wallMs, this.#send)
    if (monotonicMs >= this.#silentRetryAtMs) this.#retrySilent(monotonicMs)
    if (this.#replicator.takePull(monotonicMs)) this.#pullMore(monotonicMs)
    this.#absorb(monotonicMs)
  }

  /** Of the same peer as before, if it can be: its next state goes on where this one ended. */
  #pullMore(monotonicMs: number): void {
    const address = this.#peers.firstAlive()
    if (address !== null) this.#swim.pushPull(address, monotonicMs)
  }

  /**
   * When `advance` is due next, monotonic milliseconds; may lie in the past, Infinity for never.
   */
  nextDeadlineMs(): number {
    return Math.min(
      this.#swim.nextDeadlineMs(),
      this.#replicator.nextDeadlineMs(),
      this.#replicator.pullAtMs,
      this.#peers.nextDeadlineMs(),
      this.#silentRetryAtMs,
    )
  }

  /** What is to be done, in order. Take it after every call above. */
  takeEffects(): Effect[] {
    return this.#effects.splice(0)
  }

  // -------------------------------------------------------------------------------------- life

  /**
   * The first exchange of state succeeded (or, as the shell may decide, was waited for long
   * enough).
   */
  synced(): boolean {
    return this.#replicator.synced
  }

  /** Stops waiting for a first exchange: nobody answered in time. */
  assumeSynced(): void {
    this.#replicator.markSynced()
  }

  /** Tells the peers that this pod takes its leave soon: they stop counting on its demand. */
  setDraining(monotonicMs: number): void {
    if (!this.#meta.draining) this.#changeMeta({ ...this.#meta, draining: true }, monotonicMs)
  }

  /** Sends the last totals to every peer, whatever the budget says. */
  flush(monotonicMs: number, wallMs: number): void {
    this.#wallMs = wallMs
    this.#nowMs = monotonicMs
    this.#replicator.flush(monotonicMs, wallMs, this.#send)
    this.#absorb(monotonicMs)
  }

  /** Leaves the ring; `leaveSettled` follows. Keep driving the core until then. */
  leave(monotonicMs: number): void {
    this.#swim.leave(monotonicMs)
    this.#absorb(monotonicMs)
  }

  // ------------------------------------------------------------------------------------- views

  members(): MemberView[] {
    return memberViews(this.#swim.members(), this.#self, this.#meta)
  }

  meta(): NodeMeta {
    return this.#meta
  }

  /** The keys with most denials or hits at this pod, of one rule or (null) of all. */
  top(
    rule: string | null,
    by: 'denied' | 'hits',
    count: number,
    monotonicMs: number,
    wallMs: number,
  ): KeyView[] {
    return this.#limiter.top(rule, by, count, monotonicMs, wallMs).map(this.#named)
  }

  /** One key by its parts or its 16 hex digits; null when this pod does not know it. */
  key(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): KeyView | null {
    const view = this.#limiter.key(rule, key, monotonicMs, wallMs)
    return view && this.#named(view)
  }

  /** Gives back whatever a key has used, over the whole fleet. False when it is not known. */
  resetKey(
    rule: string,
    key: readonly string[] | string,
    monotonicMs: number,
    wallMs: number,
  ): boolean {
    return this.#limiter.resetKey(rule, key, monotonicMs, wallMs)
  }

  /** Everything counted since the start. Walks the key table once. */
  stats(monotonicMs: number): CoreStats {
    const ages = this.#replicator.ageHistogram
    const peers: Record<MemberState, number> = { alive: 0, suspect: 0, dead: 0, left: 0 }
    for (const view of this.members()) if (!view.self) peers[view.state] += 1
    return {
      rules: this.#ruleStats(monotonicMs),
      keyEvictions: this.#table.eviction.counters,
      debtForgiven: this.#table.levels.debtForgiven,
      tableFull: this.#table.tableFull,
      entriesHeld: this.#table.entries.used,
      entriesEvicted: this.#table.eviction.entries,
      entriesRefused: this.#replicator.entriesRefused,
      degradedDecisions: this.#limiter.degradedDecisions,
      entriesOut: this.#replicator.entriesOut,
      entriesIn: this.#replicator.entriesIn,
      messagesIgnored: this.#replicator.messagesIgnored,
      deltaAge: { bounds: ages.bounds, counts: ages.counts(), sum: ages.sum },
      peers,
      swim: this.#swim.stats,
    }
  }

  /** Everything the node knows of its counters, for `counters.checkpoint`. */
  exportTotals(monotonicMs: number, wallMs: number): Uint8Array {
    return this.#replicator.exportTotals(monotonicMs, wallMs)
  }

  /** Takes up a checkpoint; false when the bytes are not one. */
  importTotals(bytes: Uint8Array, monotonicMs: number, wallMs: number): boolean {
    return this.#replicator.importTotals(bytes, monotonicMs, wallMs)
  }

  // ---------------------------------------------------------------------------------- inwardly

  /** The limiter knows origins; which node drew one is known to the members. */
  readonly #named = (view: CounterView): KeyView => ({
    ...view,
    parts: view.parts.map(part => ({
      ...part,
      node: part.origin === this.#meta.origin ? this.#meta.node : this.#peers.nodeOf(part.origin),
    })),
  })

  /** A long gap between two calls: what the others did meanwhile still waits in the sockets. */
  #watch(monotonicMs: number): void {
    if (monotonicMs - this.#seenAtMs > stallMs) {
      this.#limiter.stalled(this.#seenAtMs, monotonicMs)
      this.#table.levels.stalled(this.#seenAtMs, monotonicMs)
      this.#peers.stalled(monotonicMs)
    }
    this.#seenAtMs = monotonicMs
  }

  #ruleStats(monotonicMs: number): RuleStats[] {
    const keys = this.#limiter.keyCounts()
    const overshoot = this.#limiter.overshootRatios(monotonicMs)
    return this.#limiter.plans.map((plan, index) => {
      const decisions = this.#limiter.decisions(plan.spec.name)
      assert(decisions !== null, 'every rule in force is counted')
      return {
        rule: plan.spec.name,
        decisions,
        keys: keys[index] ?? 0,
        estimatedOvershootRatio: overshoot[index] ?? 1,
      }
    })
  }

  readonly #send = (to: MemberName, payload: Uint8Array): void => {
    this.#swim.sendUserMessage(to, payload, 'bestEffort', this.#nowMs)
  }

  #changeMeta(meta: NodeMeta, monotonicMs: number): void {
    this.#meta = meta
    this.#swim.updateMeta(monotonicMs)
    this.#absorb(monotonicMs)
  }

  /** Moves the protocol's effects over and takes note of who came and went. */
  #absorb(monotonicMs: number): void {
    let membersChanged = false
    for (const effect of this.#swim.takeEffects()) {
      if (effect.kind === 'memberChanged') membersChanged = true
      this.#effects.push(effect)
    }
    const suspicions = this.#swim.suspicionChanges()
    if (!membersChanged && suspicions === this.#suspicionsSeen) return
    this.#suspicionsSeen = suspicions
    this.#refreshPeers(monotonicMs)
  }

  #heardFrom(address: Address, monotonicMs: number): void {
    if (this.#peers.heard(address, monotonicMs)) this.#refreshPeers(monotonicMs)
  }

  #refreshPeers(monotonicMs: number): void {
    const departed = this.#peers.update(this.#swim.members(), monotonicMs)
    const self = this.#swim.self().address
    for (const origin of departed) this.#replicator.originDeparted(origin, monotonicMs)
    this.#replicator.setPeers(this.#peers.list(), this.#peers.knownCount(self), monotonicMs)
    const silent = this.#peers.silentAddresses(self).length > 0
    if (!silent) this.#silentRetryAtMs = Number.POSITIVE_INFINITY
    else if (this.#silentRetryAtMs === Number.POSITIVE_INFINITY) this.#armSilentRetry(monotonicMs)
  }

  #armSilentRetry(monotonicMs: number): void {
    this.#silentRetryAtMs = monotonicMs + silentRetryMs * (0.5 + this.#random())
  }

  /**
   * A known pod that is silent is called about once a second, so that a healed split is noticed.
   */
  #retrySilent(monotonicMs: number): void {
    const silent = this.#peers.silentAddresses(this.#swim.self().address)
    const start = Math.floor(this.#random() * silent.length)
    for (let n = 0; n < Math.min(silent.length, silentRetriesMax); n += 1) {
      const address = silent[(start + n) % silent.length]
      assert(address !== undefined, 'an index below the length')
      this.#swim.pushPull(address, monotonicMs)
    }
    this.#armSilentRetry(monotonicMs)
  }
}
