/**
 * The admin listener (product.md §7): who is in the ring, what is limited, why, and the few things
 * an operator may do. Loopback by default. Reads are GET, changes are POST; POSTs from other sites
 * are refused. Keys are shown as hashes unless `revealKeys`.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { KeyView, MemberView } from '../core-types.js'
import type { Engine } from '../engine.js'
import type { CidrSet } from '../limiter/cidr.js'
import type { RuleSpec } from '../limiter/rule.js'
import { explanationJson, type KeyJson, keyJson, memberJson, ownOrigin } from './admin-views.js'
import { parseDescribedRequest } from './check-body.js'
import { peerText } from './client-address.js'
import { describedFacts } from './described-request.js'
import type { JwtVerifier } from './jwt-verifier.js'
import { prefersHtml, sendView } from './negotiation.js'
import type { Readiness } from './readiness.js'
import { HttpProblem, refuseForeign } from './server.js'
import { statusPage, statusPageSecurityPolicy } from './status-page.js'

/** What reloading the rules came to; errors are lines with file:line:column. */
export type ReloadOutcome =
  | { readonly ok: true; readonly hash: number }
  | { readonly ok: false; readonly errors: readonly string[] }

export interface AdminOptions {
  readonly engine: Engine
  readonly readiness: Readiness
  readonly node: string
  readonly version: string
  readonly revealKeys: boolean
  readonly trustedProxies: CidrSet
  readonly jwt: JwtVerifier | null
  /** The configuration in force, secrets already left out; plain data. */
  readonly config: () => unknown
  readonly reload: () => Promise<ReloadOutcome>
  /** False: the rules were refused when they were last read. */
  readonly rulesAccepted: () => boolean
  /** Readiness off, peers told; goes on serving. May be called again. */
  readonly drain: () => void
  /** Changes the log level; false: no such level. */
  readonly setLogLevel: (level: string) => boolean
}

const topDefault = 20
const topMax = 1_000

export function addAdmin(app: FastifyInstance, options: AdminOptions): void {
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('Cache-Control', 'no-store').header('X-Content-Type-Options', 'nosniff')
    void reply.header('X-Frame-Options', 'DENY')
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseForeign(request)
  })
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, body, done) => {
    // Operations need no body, and a client may say that one comes and send none.
    if (String(body).trim() === '') done(null, undefined)
    else parseJson(request, String(body), done)
  })
  addReads(app, options)
  addLimits(app, options)
  addOperations(app, options)
}

function addReads(app: FastifyInstance, options: AdminOptions): void {
  app.get('/', (request, reply) => {
    if (!prefersHtml(request.headers.accept, true)) return reply.send(overview(options))
    void reply.header('Content-Security-Policy', statusPageSecurityPolicy)
    return reply.type('text/html; charset=utf-8').send(statusPage)
  })
  app.get('/members', (request, reply) =>
    sendView(request, reply, 'Members', { members: options.engine.members().map(memberJson) }),
  )
  app.get('/config', (request, reply) =>
    sendView(request, reply, 'Configuration', {
      version: options.version,
      hash: options.engine.rules().hash,
      config: options.config(),
      rules: options.engine.rules(),
    }),
  )
}

/** What the status page shows besides members and keys. */
function overview(options: AdminOptions): object {
  const { engine, readiness, node, version, revealKeys } = options
  const rules = engine.rules()
  const stats = engine.stats()
  const byName = new Map(stats.rules.map(rule => [rule.rule, rule]))
  const hashes = engine.members().flatMap(hashOfLiving)
  return {
    node,
    version,
    ready: readiness.ready() ?? 'ready',
    configHash: rules.hash,
    lastReloadSuccessful: options.rulesAccepted(),
    configAgreed: hashes.every(hash => hash === rules.hash),
    revealKeys,
    rules: rules.rules.map(rule => ({
      name: rule.name,
      limit: limitText(rule),
      algorithm: rule.algorithm,
      mode: rule.mode,
      keys: byName.get(rule.name)?.keys ?? 0,
      estimatedOvershootRatio: byName.get(rule.name)?.estimatedOvershootRatio ?? 0,
      decisions: byName.get(rule.name)?.decisions ?? {},
    })),
  }
}

function hashOfLiving({ meta, state }: MemberView): number[] {
  return meta && (state === 'alive' || state === 'suspect') ? [meta.configHash] : []
}

/** `100 per 1 s`, `50 at once`, `by tier`. */
function limitText(rule: RuleSpec): string {
  if (rule.concurrency !== null) return `${rule.concurrency} at once`
  if (rule.limit === null) return 'by tier'
  const { count, windowMs, calendar } = rule.limit
  return `${count} per ${calendar ?? `${windowMs / 1000} s`}`
}

interface TopQuery {
  readonly rule?: unknown
  readonly by?: unknown
  readonly n?: unknown
}

function addLimits(app: FastifyInstance, options: AdminOptions): void {
  const { engine, revealKeys } = options
  const json = (key: KeyView): KeyJson => keyJson(key, revealKeys, ownOrigin(engine.members()))
  app.get('/limits/top', (request, reply) => {
    const { rule = '', by = 'denied', n = String(topDefault) } = request.query as TopQuery
    if (by !== 'denied' && by !== 'hits') throw new HttpProblem(400, 'by is "denied" or "hits"')
    if (typeof n !== 'string' || !/^[1-9]\d{0,3}$/.test(n) || Number(n) > topMax) {
      throw new HttpProblem(400, `n is a whole number from 1 to ${topMax}`)
    }
    if (typeof rule !== 'string') throw new HttpProblem(400, 'rule is given once')
    if (rule !== '') ruleNamed(engine, rule)
    const keys = engine.top(rule === '' ? null : rule, by, Number(n))
    return sendView(request, reply, 'Top keys', { by, keys: keys.map(json) })
  })
  app.get('/limits/:rule/keys/*', (request, reply) => {
    const { rule, segments } = keyTarget(request, engine)
    for (const key of spellings(segments, rule)) {
      const view = engine.key(rule.name, key)
      if (view) return sendView(request, reply, `A key of ${rule.name}`, json(view))
    }
    throw new HttpProblem(404, 'this pod has not seen that key')
  })
  app.post('/limits/:rule/keys/*', (request, reply) => {
    const { rule, segments } = keyTarget(request, engine)
    if (segments.length < 2 || segments.at(-1) !== 'reset') {
      throw new HttpProblem(404, 'the only thing to do with a key is /reset')
    }
    for (const key of spellings(segments.slice(0, -1), rule)) {
      if (engine.resetKey(rule.name, key)) return reply.send({ reset: true, rule: rule.name })
    }
    throw new HttpProblem(404, 'this pod has not seen that key')
  })
}

function ruleNamed(engine: Engine, name: string): RuleSpec {
  const rule = engine.rule(name)
  if (!rule) throw new HttpProblem(404, `there is no rule ${JSON.stringify(name)}`)
  return rule
}

/**
 * Rule and key of `/limits/RULE/keys/KEY`; a compound key has its parts in segments of their own.
 */
function keyTarget(
  request: FastifyRequest,
  engine: Engine,
): { readonly rule: RuleSpec; readonly segments: readonly string[] } {
  const path = request.url.split('?', 1)[0] ?? ''
  // '', 'limits', RULE, 'keys', KEY…: an escaped slash is part of a key, a plain one parts keys.
  const [, , rule = '', , ...rest] = path.split('/').map(decodeSegment)
  if (rest.length > 1 && rest.at(-1) === '') rest.pop()
  if (rest.length > 16) throw new HttpProblem(404, 'a key has at most 16 parts')
  return { rule: ruleNamed(engine, rule), segments: rest }
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new HttpProblem(400, 'the path holds a malformed escape')
  }
}

/** What the segments may mean: a hash, or values. 16 hex digits may be a key's own text too. */
function spellings(segments: readonly string[], rule: RuleSpec): (string | readonly string[])[] {
  const [first] = segments
  const isHash = segments.length === 1 && first !== undefined && /^[0-9a-f]{16}$/i.test(first)
  const isGlobal = rule.key.every(part => part[0]?.kind === 'global')
  const values = isGlobal ? rule.key.map(() => '') : segments
  return isHash ? [first.toLowerCase(), values] : [values]
}

function addOperations(app: FastifyInstance, options: AdminOptions): void {
  const { engine } = options
  app.post('/explain', async (request, reply) => {
    const parsed = parseDescribedRequest(unwrapRequest(request.body))
    if (!parsed.ok) throw new HttpProblem(400, parsed.error)
    const jwt = engine.needs().jwt ? options.jwt : null
    const peer = peerText(request.socket.remoteAddress)
    const context = { peer, trustedProxies: options.trustedProxies, jwt }
    const facts = await describedFacts(parsed.value, context)
    const explanation = engine.explain(facts)
    const json = explanationJson(explanation, options.revealKeys, ownOrigin(engine.members()))
    return sendView(request, reply, 'Explanation', json)
  })
  app.post('/-/reload', async (_request, reply) => {
    const outcome = await options.reload()
    if (outcome.ok) return reply.send({ reloaded: true, hash: outcome.hash })
    return sendProblem(reply, 400, 'the rules in force stay', { errors: outcome.errors })
  })
  app.post('/drain', (_request, reply) => {
    options.drain()
    return reply.send({ draining: true })
  })
  app.post('/logging', (request, reply) => {
    const { level } = request.query as { readonly level?: unknown }
    if (typeof level !== 'string' || !options.setLogLevel(level)) {
      throw new HttpProblem(400, 'level is trace, debug, info, warn, error, fatal or silent')
    }
    return reply.send({ level })
  })
}

/** `POST /explain` takes a request as it is, or wrapped as `/v1/check` has it. */
function unwrapRequest(body: unknown): unknown {
  const wrapped = typeof body === 'object' && body !== null && 'request' in body
  return wrapped && Object.keys(body).length === 1 ? body.request : body
}

function sendProblem(
  reply: FastifyReply,
  status: number,
  detail: string,
  members: object,
): FastifyReply {
  const problem = { type: 'about:blank', title: 'Reload failed', status, detail, ...members }
  return reply.code(status).type('application/problem+json').send(JSON.stringify(problem))
}
