import { request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { allowed } from '../helpers/fake-engine.js'
import {
  closeWorld,
  httpUpstream,
  RawClient,
  startProxy,
  tcpUpstream,
} from '../helpers/proxy-world.js'

afterEach(closeWorld)

describe('proxy forwarding', () => {
  it('passes a request and its response through', async () => {
    const seen: string[] = []
    const upstream = await httpUpstream((req, res) => {
      seen.push(`${req.method} ${req.url} ${req.headers.host} ${req.headers['x-mine']}`)
      res.setHeader('X-Theirs', 'b')
      res.end('hello')
    })
    const { url, port } = await startProxy(upstream.target)
    const response = await fetch(`${url}/a/b?c=d%20e`, { headers: { 'x-mine': 'a' } })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-theirs')).toBe('b')
    expect(await response.text()).toBe('hello')
    expect(seen).toEqual([`GET /a/b?c=d%20e 127.0.0.1:${port} a`])
  })

  it('adds the rate-limit headers of the decision to the response', async () => {
    const upstream = await httpUpstream((_req, res) => res.end('ok'))
    const { url, engine } = await startProxy(upstream.target)
    engine.verdict = () => allowed
    const response = await fetch(url)
    expect(response.headers.get('ratelimit-policy')).toBe('"api";q=100;w=1')
    expect(response.headers.get('ratelimit')).toBe('"api";r=42;t=1')
    expect(response.headers.get('x-ratelimit-limit')).toBe('100')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('42')
  })
})
