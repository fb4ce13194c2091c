/**
 * `ANY /v1/auth`: a proxy asks, with a request of its own, whether the client's may pass (nginx
 * auth_request, Traefik, Caddy, HAProxy, Envoy's HTTP ext_authz). What the client sent stands in
 * X-Forwarded-* or X-Original-*; these are believed from this machine and from trusted proxies only
 * (conventions.md §2.1). The answer is 200 or 429; the body of the request is never read.
 */
import { METHODS } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Engine } from '../engine.js'
import type { CidrSet } from '../limiter/cidr.js'
import type { Decision } from '../limiter/decision.js'
import type { Random } from '../ports.js'
import { settleAtOnce } from './check-api.js'
import { clientAddress, isLocalPeer, peerText } from './client-address.js'
import type { JwtVerifier } from './jwt-verifier.js'
import { denialAnswer } from './problem.js'
import { appendRateLimitHeaders, type HeaderOptions } from './rate-limit-headers.js'
import { type Claims, HttpRequestFacts, recordHeaderLookup } from './request-facts.js'
import { HttpProblem } from './server.js'

export interface ForwardAuthOptions {
  readonly engine: Engine
  readonly trustedProxies: CidrSet
  readonly jwt: JwtVerifier | null
  readonly headers: HeaderOptions
  readonly random: Random
}

const prefix = '/v1/auth'

export function addForwardAuth(app: FastifyInstance, options: ForwardAuthOptions): void {
  // Envoy keeps the client's method, whatever it is; CONNECT never arrives as a request.
  const methods = METHODS.filter(method => method !== 'CONNECT')
  for (const method of methods) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true })
  }
  app.register(async scope => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => {
      // A copied Content-Type without a body is common; a body, if there is one, is thrown away.
      payload.resume()
      done(null)
    })
    for (const url of [prefix, [prefix, '*'].join('/')]) {
      scope.route({
        method: methods,
        url,
        exposeHeadRoute: false,
        handler: (request, reply) => answer(request, reply, options),
      })
    }
  })
}

function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ForwardAuthOptions,
): FastifyReply | Promise<FastifyReply> {
  const denyStatus = readDenyStatus(request.url)
  const facts = originalRequest(request, options)
  return facts instanceof Promise
    ? facts.then(ready => decide(ready, reply, denyStatus, options))
    : decide(facts, reply, denyStatus, options)
}

function decide(
  facts: HttpRequestFacts,
  reply: FastifyReply,
  denyStatus: number | null,
  options: ForwardAuthOptions,
): FastifyReply | Promise<FastifyReply> {
  const { engine } = options
  if (engine.needs().path && facts.path === null) {
    throw new HttpProblem(400, 'the path of the original request is ambiguous')
  }
  const decision = engine.decide(facts, 'auth')
  const { delayMs } = decision
  const body = writeAnswer(decision, reply, denyStatus, options)
  // A leaky bucket gave this request its slot for later; the proxy is held back until then.
  return delayMs >= 1 ? sleep(delayMs).then(() => reply.send(body)) : reply.send(body)
}

/** Status, headers and the body: all read from the decision before anything else may decide. */
function writeAnswer(
  decision: Decision,
  reply: FastifyReply,
  denyStatus: number | null,
  options: ForwardAuthOptions,
): string {
  const { engine } = options
  const rule = decision.rule === null ? undefined : engine.rule(decision.rule)
  const headers: string[] = ['X-RateLimit-Decision', verdictOf(decision)]
  if (decision.rule !== null) headers.push('X-RateLimit-Rule', decision.rule)
  if (decision.keyHash) headers.push('X-RateLimit-Key-Hash', decision.keyHash)
  let body = ''
  if (decision.allowed) {
    appendRateLimitHeaders(headers, decision, options.headers, engine.wallMs(), 0)
    void reply.code(200)
  } else {
    const denial = denialAnswer(decision, rule?.onExceeded, options.random, denyStatus)
    appendRateLimitHeaders(headers, decision, options.headers, engine.wallMs(), denial.retrySeconds)
    // nginx hides the status of a refusal from the page it shows; this marks ours.
    headers.push('X-RateLimit-Denied', '1', ...denial.headers)
    void reply.code(denial.status)
    body = denial.body
  }
  for (let index = 0; index + 1 < headers.length; index += 2) {
    void reply.header(headers[index] ?? '', headers[index + 1])
  }
  settleAtOnce(decision, rule, engine)
  return body
}

function verdictOf(decision: Decision): 'allow' | 'deny' | 'shadow' {
  if (!decision.allowed) return 'deny'
  return decision.shadowViolated.length > 0 ? 'shadow' : 'allow'
}

/** `?denyStatus=403`: the status of a refusal, 400..599; null when it is not given. */
function readDenyStatus(url: string): number | null {
  const mark = url.indexOf('?')
  if (mark < 0) return null
  const given = new URLSearchParams(url.slice(mark + 1)).get('denyStatus')
  if (given === null) return null
  if (!/^[45]\d\d$/.test(given)) throw new HttpProblem(400, 'denyStatus must be 400 to 599')
  return Number(given)
}

/** What the client sent to the proxy, as far as the proxy may be believed. */
function originalRequest(
  request: FastifyRequest,
  options: ForwardAuthOptions,
): HttpRequestFacts | Promise<HttpRequestFacts> {
  const { trustedProxies } = options
  const peer = peerText(request.socket.remoteAddress)
  const believed = isLocalPeer(peer) || trustedProxies.contains(peer)
  const header = recordHeaderLookup(request.headers)
  const claimed = (name: string): string | undefined =>
    believed ? header(name) || undefined : undefined
  const trusts = (address: string): boolean =>
    isLocalPeer(address) || trustedProxies.contains(address)
  const forwardedFor = claimed('x-forwarded-for') ?? claimed('x-real-ip')
  const ip = clientAddress(peer, forwardedFor, trusts)
  const originalUrl = claimed('x-original-url')
  const facts = (jwt: Claims | null): HttpRequestFacts =>
    new HttpRequestFacts({
      method: claimed('x-forwarded-method') ?? claimed('x-original-method') ?? request.method,
      target:
        claimed('x-forwarded-uri') ??
        claimed('x-original-uri') ??
        originalUrl ??
        claimed('x-envoy-original-path') ??
        ownTarget(request.url),
      header,
      host: claimed('x-forwarded-host') ?? hostOf(originalUrl),
      ip,
      peerTrusted: trustedProxies.contains(peer),
      jwt,
    })
  const verifier = options.engine.needs().jwt ? options.jwt : null
  const claims = verifier?.claims(header('authorization'), ip) ?? null
  return claims instanceof Promise ? claims.then(facts) : facts(claims)
}

/** Envoy puts the client's path behind ours: `/v1/auth/api/x?q` is `/api/x?q`. */
function ownTarget(url: string): string {
  const rest = url.slice(prefix.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

function hostOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : /^[a-z]+:\/\/([^/?#]+)/i.exec(url)?.[1]
}
