/** The webhook's TLS listener: one route, `POST /mutate`, whose answers always allow the pod. */
import type { Server } from 'node:https'
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { problemBody, problemType } from '../http/problem.js'
import { titleOf } from '../http/server.js'
import { answer, readReview, reviewOf } from './admission.js'
import type { ServingPair } from './certificate-keeper.js'
import type { InjectorCounts } from './injector-metrics.js'
import type { ServicePorts } from './pod-template.js'
import type { SidecarSettings } from './sidecar-settings.js'

/** A pod is at most 1.5 MiB in etcd; a review holds it once, twice on updates. */
const bodyBytesMax = 4 << 20
/** Longer than the API server waits for a webhook (30 s at most). */
const requestTimeoutMs = 35_000
const connectionsMax = 1000

export interface WebhookOptions {
  readonly settings: SidecarSettings
}

export interface WebhookPorts {
  readonly log: Logger
  readonly counts: InjectorCounts
  /** Services of a namespace; never rejects. */
  readonly services: (namespace: string) => Promise<readonly ServicePorts[]>
}

export interface Webhook {
  readonly app: FastifyInstance
  /** Takes another certificate into use; open connections keep theirs. */
  use(pair: Pick<ServingPair, 'cert' | 'key'>): void
}

export function createWebhook(
  pair: Pick<ServingPair, 'cert' | 'key'>,
  options: WebhookOptions,
  ports: WebhookPorts,
): Webhook {
  const app = Fastify({
    logger: false,
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    https: { cert: pair.cert, key: pair.key, minVersion: 'TLSv1.2' },
  }) as unknown as FastifyInstance
  app.server.maxConnections = connectionsMax
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) ports.log.error({ err: error }, 'an admission request failed')
    ports.counts.answered('invalid')
    return reply
      .code(status)
      .type(problemType)
      .send(problemBody(status, titleOf(status), status >= 500 ? 'See the log.' : error.message))
  })
  app.post('/mutate', async (request, reply) => {
    const review = readReview(request.body)
    if (typeof review === 'string') {
      ports.counts.answered('invalid')
      return reply
        .code(400)
        .type(problemType)
        .send(problemBody(400, titleOf(400), review))
    }
    const services = await ports.services(review.namespace)
    const answered = answer(review, options.settings, services)
    ports.counts.answered(answered.result)
    const { result, warnings } = answered
    const level = result === 'failed' ? 'warn' : result === 'injected' ? 'info' : 'debug'
    ports.log[level]({ namespace: review.namespace, uid: review.uid, result, warnings }, 'answered')
    return reviewOf(review.uid, answered)
  })
  return {
    app,
    use({ cert, key }) {
      const server = app.server as unknown as Server
      server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' })
    },
  }
}
