import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createServer } from '../../../src/http/server.js'
import { addTelemetry } from '../../../src/http/telemetry.js'

function setup(startup: string | null, ready: string | null): FastifyInstance {
  const app = createServer(pino({ level: 'silent' }))
  addTelemetry(app, {
    exporter: {
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      scrape: async () => 'grapevine_keys{rule="api"} 1\n',
    },
    readiness: { startup: () => startup, ready: () => ready },
  })
  return app
}

describe('telemetry', () => {
  it('serves the exporter’s text with its content type', async () => {
    const response = await setup(null, null).inject('/metrics')
    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(response.body).toBe('grapevine_keys{rule="api"} 1\n')
  })

  it.each([
    ['/startupz', null, null, 200, 'ok\n'],
    ['/startupz', 'rules are not loaded yet', 'x', 503, 'rules are not loaded yet\n'],
    ['/readyz', null, null, 200, 'ok\n'],
    ['/readyz', null, 'draining', 503, 'draining\n'],
    ['/livez', 'x', 'x', 200, 'ok\n'],
  ])(
    '%s while startup says %s and ready says %s: %d',
    async (url, startup, ready, status, body) => {
      const response = await setup(startup, ready).inject(url)
      expect([response.statusCode, response.body]).toEqual([status, body])
    },
  )

  it('answers HEAD', async () => {
    const response = await setup(null, null).inject({ method: 'HEAD', url: '/readyz' })
    expect([response.statusCode, response.body]).toEqual([200, ''])
  })

  it.each(['/metrics', '/startupz', '/readyz', '/livez'])('%s is read-only', async url => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      const response = await setup(null, null).inject({ method, url })
      expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET, HEAD'])
    }
  })
})
