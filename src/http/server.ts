/**
 * What every fastify listener of the sidecar shares: limits, timeouts, problem+json errors, and the
 * one clear line when a port is taken. The routes are added by the plugins next to this file.
 */

import { stat, unlink } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Logger } from 'pino'
import type { ListenAddress as ConfiguredAddress } from '../config/sidecar-config.js'
import { canonicalIp } from '../limiter/cidr.js'
import { isLocalPeer } from './client-address.js'
import { problemBody, problemType } from './problem.js'
import { hostName } from './request-facts.js'

/** Where a listener listens: a TCP address or a unix socket. */
export type ListenAddress = ConfiguredAddress

/** Request bodies: a described request with full headers, or a batch, fits well below this. */
const bodyBytesMax = 1 << 20
const headerBytesMax = 16 * 1024
/** A whole request, body included, must have arrived within this; ends slow senders. */
const requestTimeoutMs = 30_000
const headersTimeoutMs = 10_000
/** Longer than the 60 s of common load balancers, so that the client closes first. */
const keepAliveTimeoutMs = 75_000
const connectionsMax = 10_000
/** A key in a path may be as long as a header value. */
const paramCharsMax = 8 * 1024

export function createServer(log: Logger): FastifyInstance {
  const app = Fastify({
    // Requests are not logged one by one: a line costs more than a decision.
    logger: false,
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    http: { maxHeaderSize: headerBytesMax, headersTimeout: headersTimeoutMs },
    // An invalid body is refused, never repaired.
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allErrors: false } },
    routerOptions: { maxParamLength: paramCharsMax, ignoreTrailingSlash: true },
    clientErrorHandler: answerClientError,
    // The types of this hook know of no reply that is a plain problem.
    frameworkErrors: (error, _request, reply) =>
      void sendProblem(reply as unknown as FastifyReply, error.statusCode ?? 400, error.message),
  })
  app.server.maxConnections = connectionsMax
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error, url: request.url }, 'a request handler failed')
    const detail =
      status >= 500
        ? 'The request could not be handled.'
        : (bodyErrors[error.code] ?? error.message)
    return reply
      .code(status)
      .type(problemType)
      .send(problemBody(status, titleOf(status), detail))
  })
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0]
    const detail = `There is no ${request.method} ${path} here.`
    return reply
      .code(404)
      .type(problemType)
      .send(problemBody(404, titleOf(404), detail))
  })
  return app
}

/** In place of the framework's words, which speak of a content type that nobody may have sent. */
const bodyErrors: Readonly<Record<string, string>> = {
  FST_ERR_CTP_EMPTY_JSON_BODY: 'The body is empty; it must be JSON.',
  FST_ERR_CTP_INVALID_JSON_BODY: 'The body is not valid JSON.',
}

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
}

export function titleOf(status: number): string {
  return titles[status] ?? (status >= 500 ? 'Internal Server Error' : 'Bad Request')
}

function sendProblem(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return reply
    .code(status)
    .type(problemType)
    .send(problemBody(status, titleOf(status), detail))
}

/** An error that a handler throws to answer with a problem of this status. */
export class HttpProblem extends Error {
  readonly statusCode: number

  constructor(statusCode: number, detail: string) {
    super(detail)
    this.statusCode = statusCode
  }
}

/** What cannot be read as HTTP is answered in one piece and the connection closed. */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 431
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 408
        : 400
  const title = titleOf(status)
  const body = problemBody(status, title, 'The request is not well-formed HTTP/1.1.')
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\nContent-Type: ${problemType}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** A listener that could not be opened, with a message for the person who started the process. */
export class ListenError extends Error {}

/**
 * Listens, and returns where (the port may have been 0). `name` is the listener's name in messages.
 * A socket file that a dead process left behind is taken over; one in use is not.
 */
export async function listen(
  app: FastifyInstance,
  address: ListenAddress,
  name: string,
): Promise<ListenAddress> {
  if (address.kind === 'unix') await removeStaleSocket(address.path)
  try {
    await app.listen(
      address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port },
    )
  } catch (error) {
    throw new ListenError(listenMessage(error as NodeJS.ErrnoException, address, name))
  }
  const bound = app.server.address()
  return bound === null || typeof bound === 'string'
    ? address
    : { kind: 'tcp', host: bound.address, port: bound.port }
}

export function listenMessage(
  error: NodeJS.ErrnoException,
  address: ListenAddress,
  name: string,
): string {
  const where = address.kind === 'unix' ? `unix:${address.path}` : `${address.host}:${address.port}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `${name}: ${where} is already in use`
    case 'EADDRNOTAVAIL':
      return `${name}: ${where} is not an address of this machine`
    case 'EACCES':
      return `${name}: no permission to listen on ${where}`
    default:
      return `${name}: cannot listen on ${where}: ${error.message}`
  }
}

async function removeStaleSocket(path: string): Promise<void> {
  // Connecting to an ordinary file is refused as well, and that must not be removed.
  const isSocket = await stat(path).then(
    file => file.isSocket(),
    () => false,
  )
  if (!isSocket) return
  const refused = await new Promise<boolean>(resolve => {
    const probe = connect(path)
    probe.setTimeout(1_000, () => probe.destroy(new Error('no answer')))
    probe.once('error', error => resolve((error as NodeJS.ErrnoException).code === 'ECONNREFUSED'))
    probe.once('connect', () => {
      resolve(false)
      probe.destroy()
    })
  })
  if (refused) await unlink(path).catch(() => {})
}

/**
 * Refuses what a web page of another site may have sent through somebody's browser: a foreign
 * Origin, or a Host that is neither this machine nor the address that was connected to (DNS
 * rebinding). Programs send no Origin and pass.
 */
export function refuseForeign(request: FastifyRequest): void {
  const host = request.headers.host
  if (host !== undefined && !isOwnHost(host, request.socket.localAddress)) {
    throw new HttpProblem(403, `The Host ${JSON.stringify(host)} is not this listener's.`)
  }
  const origin = request.headers.origin
  if (origin === undefined) return
  const originHost = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase()
  if (originHost === undefined || originHost !== host?.toLowerCase()) {
    throw new HttpProblem(403, `The Origin ${JSON.stringify(origin)} is not this listener's.`)
  }
}

function isOwnHost(host: string, localAddress: string | undefined): boolean {
  const name = hostName(host).replace(/^\[(.*)\]$/, '$1')
  if (name === 'localhost' || isLocalPeer(name)) return true
  const address = canonicalIp(name)
  return address !== null && localAddress !== undefined && address === canonicalIp(localAddress)
}
