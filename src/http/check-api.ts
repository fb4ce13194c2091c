/**
 * `POST /v1/check`: may this pass? By a rule's name and a key, or by a described request; one, or
 * an array of them. All of a batch is read and verified before any of it is charged.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Engine } from '../engine.js'
import type { CidrSet } from '../limiter/cidr.js'
import type { Decision, Outcome } from '../limiter/decision.js'
import type { RequestFacts } from '../limiter/request-facts.js'
import type { RuleSpec } from '../limiter/rule.js'
import { batchMax, type Check, parseCheck, type RuleCheck } from './check-body.js'
import { isLocalPeer, peerText } from './client-address.js'
import { describedFacts } from './described-request.js'
import type { JwtVerifier } from './jwt-verifier.js'
import { HttpProblem, refuseForeign } from './server.js'

export interface CheckApiOptions {
  readonly engine: Engine
  readonly trustedProxies: CidrSet
  readonly jwt: JwtVerifier | null
}

/** A check that is ready to be decided. */
type Prepared =
  | { readonly facts: RequestFacts }
  | { readonly rule: RuleSpec; readonly key: readonly string[]; readonly cost: number }

export function addCheckApi(app: FastifyInstance, options: CheckApiOptions): void {
  const { engine } = options
  app.register(async scope => {
    // A client that forgets the content type means JSON all the same.
    scope.removeAllContentTypeParsers()
    const parseJson = scope.getDefaultJsonParser('error', 'error')
    scope.addContentTypeParser('*', { parseAs: 'string' }, parseJson)
    scope.post('/v1/check', (request, reply) => {
      refuseForeign(request)
      const prepared = prepareBody(request, options)
      const answer = (checks: readonly Prepared[]): string =>
        Array.isArray(request.body)
          ? `[${checks.map(check => decideOne(check, engine)).join(',')}]`
          : decideOne(checks[0]!, engine)
      void reply.type('application/json; charset=utf-8')
      if (prepared.every(isReady)) return reply.send(answer(prepared))
      return Promise.all(prepared).then(answer)
    })
    scope.route({
      method: ['GET', 'PUT', 'PATCH', 'DELETE'],
      url: '/v1/check',
      handler: (_request, reply) => {
        void reply.header('Allow', 'POST')
        throw new HttpProblem(405, 'A check is a POST.')
      },
    })
  })
}

function isReady(prepared: Prepared | Promise<Prepared>): prepared is Prepared {
  return !(prepared instanceof Promise)
}

function prepareBody(
  request: FastifyRequest,
  options: CheckApiOptions,
): (Prepared | Promise<Prepared>)[] {
  const { body } = request
  const peer = peerText(request.socket.remoteAddress)
  if (!Array.isArray(body)) return [prepare(body, '', peer, options)]
  if (body.length > batchMax) throw new HttpProblem(400, `a batch holds at most ${batchMax} checks`)
  return body.map((item, index) => prepare(item, `check ${index}: `, peer, options))
}

function prepare(
  item: unknown,
  where: string,
  peer: string,
  options: CheckApiOptions,
): Prepared | Promise<Prepared> {
  const parsed = parseCheck(item)
  if (!parsed.ok) throw new HttpProblem(400, where + parsed.error)
  const check: Check = parsed.value
  return 'request' in check
    ? prepareRequest(check.request, where, peer, options)
    : prepareRule(check, where, peer, options.engine)
}

function prepareRequest(
  request: Parameters<typeof describedFacts>[0],
  where: string,
  peer: string,
  options: CheckApiOptions,
): Prepared | Promise<Prepared> {
  const { engine, trustedProxies } = options
  const needs = engine.needs()
  const jwt = needs.jwt ? options.jwt : null
  const ready = (facts: RequestFacts): Prepared => {
    if (needs.path && facts.path === null) {
      throw new HttpProblem(400, `${where}request/path is ambiguous`)
    }
    return { facts }
  }
  const facts = describedFacts(request, { peer, trustedProxies, jwt })
  return facts instanceof Promise ? facts.then(ready) : ready(facts)
}

function prepareRule(check: RuleCheck, where: string, peer: string, engine: Engine): Prepared {
  const rule = engine.rule(check.rule)
  if (!rule) throw new HttpProblem(404, `${where}there is no rule ${JSON.stringify(check.rule)}`)
  const cost = check.cost ?? 1
  if (cost < 0 && !isLocalPeer(peer)) {
    throw new HttpProblem(403, `${where}a negative cost is taken from this machine only`)
  }
  return { rule, key: keyValues(rule, check.key, where), cost }
}

/** One value per part of the rule's key; parts that are `global` may be left out. */
function keyValues(rule: RuleSpec, key: RuleCheck['key'], where: string): readonly string[] {
  const wanted = rule.key.filter(part => part[0]?.kind !== 'global').length
  if (wanted === 0) return rule.key.map(() => '')
  const values = typeof key === 'string' ? [key] : (key ?? [])
  if (values.length === wanted || values.length === rule.key.length) return values
  const expected = wanted === 1 ? 'a key' : `a key of ${wanted} parts`
  throw new HttpProblem(400, `${where}rule ${JSON.stringify(rule.name)} needs ${expected}`)
}

function decideOne(check: Prepared, engine: Engine): string {
  if ('facts' in check) {
    const decision = engine.decide(check.facts, 'check')
    const rule = decision.rule === null ? undefined : engine.rule(decision.rule)
    return answerText(decision, rule, engine)
  }
  const decision = engine.check(check.rule.name, check.key, check.cost)
  // A reload may have taken it away while another check of the batch had its token verified.
  if (!decision) throw new HttpProblem(404, `there is no rule ${JSON.stringify(check.rule.name)}`)
  return answerText(decision, check.rule, engine)
}

function answerText(decision: Decision, rule: RuleSpec | undefined, engine: Engine): string {
  const known = decision.rule !== null
  const answer = {
    allowed: decision.allowed,
    rule: decision.rule,
    limit: known ? decision.limit : null,
    remaining: known ? decision.remaining : null,
    resetAfterMs: Math.ceil(decision.resetAfterMs),
    retryAfterMs: Math.ceil(decision.retryAfterMs),
    ...(rule?.algorithm === 'leaky-bucket' ? { delayMs: Math.ceil(decision.delayMs) } : {}),
    reason: decision.reason,
    ...(decision.violated.length > 1 ? { violated: decision.violated } : {}),
    ...(decision.shadowViolated.length > 0 ? { shadowViolated: decision.shadowViolated } : {}),
  }
  const text = JSON.stringify(answer)
  settleAtOnce(decision, rule, engine)
  return text
}

/**
 * Nobody tells these interfaces how the request ended, so the charge stands: for a rule that counts
 * failures the request counts as one, for the others as a success. Slots of `concurrency` rules are
 * free again at once.
 */
export function settleAtOnce(decision: Decision, rule: RuleSpec | undefined, engine: Engine): void {
  if (!decision.settlement) return
  engine.settle(decision.settlement, rule?.count === 'failure' ? failed : succeeded)
}

const succeeded: Outcome = { status: 200, aborted: false, header: () => undefined }
const failed: Outcome = { status: 500, aborted: false, header: () => undefined }
