/**
 * The telemetry listener: `/metrics`, `/startupz`, `/livez`, `/readyz`. Reachable from outside the
 * pod, so nothing here changes anything, and nothing names a client.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Exporter } from '../metrics/exporter.js'
import { problemBody, problemType } from './problem.js'
import type { NotYet, Readiness } from './readiness.js'
import { titleOf } from './server.js'

export interface TelemetryOptions {
  readonly exporter: Pick<Exporter, 'scrape' | 'contentType'>
  readonly readiness: Pick<Readiness, 'startup' | 'ready'>
}

export function addTelemetry(app: FastifyInstance, options: TelemetryOptions): void {
  const { exporter, readiness } = options
  app.get('/metrics', async (_request, reply) => {
    void reply.type(exporter.contentType)
    return await exporter.scrape()
  })
  app.get('/startupz', (_request, reply) => probe(reply, readiness.startup()))
  app.get('/readyz', (_request, reply) => probe(reply, readiness.ready()))
  app.get('/livez', async (_request, reply) => {
    await loopTurn()
    return probe(reply, null)
  })
  for (const url of ['/metrics', '/startupz', '/readyz', '/livez']) {
    app.route({
      method: ['POST', 'PUT', 'PATCH', 'DELETE'],
      url,
      handler: (_request, reply) =>
        reply
          .code(405)
          .header('Allow', 'GET, HEAD')
          .type(problemType)
          .send(problemBody(405, titleOf(405), 'Telemetry is read-only.')),
    })
  }
}

function probe(reply: FastifyReply, notYet: NotYet): FastifyReply {
  return reply
    .code(notYet === null ? 200 : 503)
    .header('Cache-Control', 'no-store')
    .type('text/plain; charset=utf-8')
    .send(notYet === null ? 'ok\n' : `${notYet}\n`)
}

/** Resolves after a timer and an immediate have run: the event loop went all the way round. */
function loopTurn(): Promise<void> {
  return new Promise(resolve => setTimeout(() => setImmediate(resolve), 0))
}
