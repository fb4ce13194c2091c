/**
 * What is valid in rules and yet surprises later. Warnings only, save for `jwt:` sources that
 * nothing verifies. Each code has a section in docs/config.md.
 */
import { parseCidr } from '../limiter/cidr.js'
import { sourceText } from '../limiter/key-source.js'
import type { KeyPart, ListEntry, MatchSpec, RuleSpec } from '../limiter/rule.js'
import type { Placed, RulesContext } from './assemble-rules.js'
import type { ConfigPath } from './finding.js'
import type { Reporter } from './locator.js'
import { covers } from './match-cover.js'

interface PlacedRules {
  readonly allow: readonly Placed<ListEntry>[]
  readonly deny: readonly Placed<ListEntry>[]
  readonly rules: readonly Placed<RuleSpec>[]
}

export function reportRuleSurprises(placed: PlacedRules, context: RulesContext): void {
  for (const entry of placed.allow) allowSurprises(entry, context)
  for (const { spec, path, report } of [...placed.allow, ...placed.deny]) {
    pathSurprise(spec, path, report)
  }
  placed.rules.forEach((rule, index) => {
    shadowSurprises(rule, placed, index)
    keySurprises(rule, context)
    amountSurprises(rule, context)
    settleSurprises(rule, context)
    pathSurprise(rule.spec.match, [...rule.path, 'match'], rule.report)
    rule.spec.cost.match.forEach(({ match }, entry) => {
      pathSurprise(match, [...rule.path, 'cost', 'match', entry], rule.report)
    })
  })
}

function allowSurprises(entry: Placed<ListEntry>, context: RulesContext): void {
  const { spec, path, report } = entry
  if (spec.cidr !== null && parseCidr(spec.cidr)?.prefixBits === 0 && covers(spec, null)) {
    report.warning([...path, 'cidr'], 'allows-everyone', 'every client is exempt from every rule')
  }
  if (spec.header !== null && context.trustedProxies === false) {
    const message = 'headers exempt only callers in proxy.trustedProxies, and there are none'
    report.warning([...path, 'header'], 'allow-untrusted', message)
  }
}

function pathSurprise(match: MatchSpec | null, path: ConfigPath, report: Reporter): void {
  if (match?.path == null || !/%[0-9A-Fa-f]{2}/.test(match.path)) return
  const message = 'paths are decoded before they are matched: write the character itself'
  report.warning([...path, 'path'], 'path-escaped', message)
}

/** Requests that never come to a rule because something before it takes them all. */
function shadowSurprises(rule: Placed<RuleSpec>, placed: PlacedRules, index: number): void {
  const { spec, path, report } = rule
  const shadow = (by: string) =>
    report.warning(path, 'shadowed-rule', `rule "${spec.name}" is never reached: ${by}`)
  for (const list of ['allow', 'deny'] as const) {
    const entry = placed[list].find(
      ({ spec: wide }) => wide.cidr === null && covers(wide, spec.match) && wide.header === null,
    )
    if (entry !== undefined) {
      const at = entry.report.locator.valueAt(entry.path)
      shadow(`the ${list} entry in line ${at.line} takes all its requests`)
      return
    }
  }
  const earlier = placed.rules.slice(0, index).find(({ spec: wide }) => {
    return wide.stop && wide.missing !== 'skip' && covers(wide.match, spec.match)
  })
  if (earlier !== undefined) {
    shadow(`rule "${earlier.spec.name}" before it takes all its requests and says stop`)
  }
  if (spec.stop && spec.mode === 'shadow') {
    const message = 'this rule denies nothing and yet hides later rules from its requests'
    report.warning([...path, 'stop'], 'shadow-stop', message)
  }
}

/** Sources that every request has. */
const everPresent: ReadonlySet<string> = new Set(['ip', 'global', 'method', 'path'])

/** Headers that end at the next hop, so that a sidecar behind a proxy never sees them. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers that name an address and that any client may send. */
const addressHeaders: ReadonlySet<string> = new Set([
  'cf-connecting-ip',
  'client-ip',
  'forwarded',
  'true-client-ip',
  'x-client-ip',
  'x-forwarded-for',
  'x-real-ip',
])

function keySurprises(rule: Placed<RuleSpec>, context: RulesContext): void {
  const { spec, path, report } = rule
  spec.key.forEach((part, index) => {
    partSurprises(part, [...path, 'key', index], report, context)
  })
  if (spec.tier === null) return
  const by = [...path, 'tier', 'by']
  partSurprises(spec.tier.by, by, report, context)
  const forged = spec.tier.by.find(({ kind }) => ['header', 'cookie', 'query'].includes(kind))
  if (forged !== undefined) {
    const message = `any client can name its own tier by ${sourceText(forged)}`
    report.warning(by, 'tier-forgeable', message)
  }
}

function partSurprises(
  part: KeyPart,
  path: ConfigPath,
  report: Reporter,
  context: RulesContext,
): void {
  part.forEach((source, index) => {
    const text = sourceText(source)
    if (source.kind === 'jwt' && context.jwt === false) {
      const message = `${text} is never present: identity.jwt is not set in the sidecar file`
      report.error(path, 'jwt-identity', message)
    }
    if (source.kind === 'header' && hopByHop.has(source.name)) {
      const message = `${text} can never be present: the header ends at the hop before`
      report.warning(path, 'key-never-present', message)
    }
    if (source.kind === 'header' && addressHeaders.has(source.name)) {
      const message = `any client can send ${source.name}; use ip with proxy.trustedProxies`
      report.warning(path, 'key-forgeable', message)
    }
    if (index > 0 && everPresent.has(part[index - 1]!.kind)) {
      const before = sourceText(part[index - 1]!)
      report.warning(path, 'alternative-unused', `${text} is never used: ${before} is always there`)
    }
  })
}

/** Smallest fleet that a limit is held over when nothing says how many pods there are. */
const podsAtLeast = 2

function amountSurprises(rule: Placed<RuleSpec>, context: RulesContext): void {
  const { spec, path, report } = rule
  const limits = spec.limit === null ? Object.values(spec.tier?.limits ?? {}) : [spec.limit]
  const where = [
    ...path,
    spec.limit !== null ? 'limit' : spec.tier !== null ? 'tier' : 'concurrency',
  ]
  const counts = spec.concurrency === null ? limits.map(limit => limit.count) : [spec.concurrency]
  const least = spec.burst ?? Math.min(...counts)
  const pods = Math.max(podsAtLeast, context.pods ?? podsAtLeast)
  if (least < pods && spec.onPartition !== 'open') {
    const message = `less than one for each of ${pods} pods: cut off from the others, a pod denies`
    report.warning(where, 'limit-below-pods', message)
  }
  const dearest = Math.max(spec.cost.fallback, ...spec.cost.match.map(({ cost }) => cost))
  if (spec.concurrency === null && dearest > least) {
    const message = `a request may cost ${dearest}, more than the ${least} that are ever left`
    report.warning(where, 'cost-above-limit', message)
  }
  if (spec.algorithm === 'fixed-window' && limits.some(limit => limit.calendar === null)) {
    const message = 'twice the limit can pass around the edge of a window; sliding-window does not'
    report.warning(where, 'fixed-window-double', message)
  }
}

/** Counting that waits for the response needs somebody who sees the response. */
function settleSurprises(rule: Placed<RuleSpec>, context: RulesContext): void {
  const { spec, path, report } = rule
  if (context.proxy !== false) return
  if (spec.count !== 'all') {
    const message = `count: ${spec.count} is settled by the proxy, which is not configured`
    report.warning([...path, 'count'], 'needs-proxy', message)
  }
  if (spec.cost.responseHeader !== null) {
    const message = 'costs from responses are settled by the proxy, which is not configured'
    report.warning([...path, 'cost', 'responseHeader'], 'needs-proxy', message)
  }
}
