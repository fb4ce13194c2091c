/** A connection that sends the same bytes again: parsed once, and treated like any other request. */
import { afterEach, describe, expect, it } from 'vitest'
import { allowed, limited } from '../helpers/fake-engine.js'
import { closeWorld, httpUpstream, RawClient, startProxy } from '../helpers/proxy-world.js'

afterEach(closeWorld)

const same = 'GET /same?a=1 HTTP/1.1\r\nHost: shop\r\nX-Api-Key: k1\r\n\r\n'
const answersIn = (text: string): number => text.match(/HTTP\/1\.1 \d+/g)?.length ?? 0

async function world() {
  const reached: string[] = []
  const held: (() => void)[] = []
  const state = { hold: false }
  const upstream = await httpUpstream((req, res) => {
    let body = ''
    req.on('data', chunk => {
      body += chunk
    })
    req.on('end', () => {
      reached.push(`${req.method} ${req.url} ${req.headers['x-api-key']} ${body}`.trim())
      if (state.hold) held.push(() => res.end('late'))
      else res.end('ok')
    })
  })
  return { ...(await startProxy(upstream.target)), reached, held, state }
}

describe('the same bytes again', () => {
  it('are decided anew each time, and forwarded only when they are admitted', async () => {
    const { port, engine, reached } = await world()
    engine.verdict = () => (engine.decided.length % 3 === 0 ? limited : allowed)
    const client = new RawClient(port)
    for (let count = 1; count <= 12; count++) {
      client.send(same)
      await client.until(received => answersIn(received) === count)
    }
    expect(client.received.match(/HTTP\/1\.1 429/g)).toHaveLength(4)
    expect(reached).toEqual(Array.from({ length: 8 }, () => 'GET /same?a=1 k1'))
    for (const facts of engine.decided) {
      expect([facts.method, facts.path, facts.query, facts.header('x-api-key')]).toEqual([
        'GET',
        '/same',
        'a=1',
        'k1',
      ])
    }
  })

  it('are told from bytes that differ in one place', async () => {
    const { port, reached } = await world()
    const client = new RawClient(port)
    const keys = ['k1', 'k1', 'k2', 'k2', 'k1']
    for (const [index, key] of keys.entries()) {
      client.send(same.replace('k1', key))
      await client.until(received => answersIn(received) === index + 1)
    }
    expect(reached).toEqual(keys.map(key => `GET /same?a=1 ${key}`))
  })

  it('wait for the answer to the ones before, in order', async () => {
    const { port, reached, held, state } = await world()
    const client = new RawClient(port)
    client.send(same)
    await client.until(received => answersIn(received) === 1)
    state.hold = true
    client.send(same)
    await expect.poll(() => held.length).toBe(1)
    client.send(same)
    await expect.poll(() => reached.length).toBe(2)
    expect(answersIn(client.received)).toBe(1)
    state.hold = false
    held[0]?.()
    await client.until(received => answersIn(received) === 3)
    expect(client.received.indexOf('late')).toBeLessThan(client.received.lastIndexOf('ok'))
    expect(reached).toHaveLength(3)
  })

  it('may come in two pieces, or twice in one', async () => {
    const { port, reached } = await world()
    const client = new RawClient(port)
    client.send(same)
    await client.until(received => answersIn(received) === 1)
    client.send(same.slice(0, 20))
    await new Promise(resolve => setTimeout(resolve, 20))
    client.send(same.slice(20))
    await client.until(received => answersIn(received) === 2)
    client.send(same + same)
    await client.until(received => answersIn(received) === 4)
    expect(reached).toEqual(Array.from({ length: 4 }, () => 'GET /same?a=1 k1'))
  })

  it('carry their body each time', async () => {
    const { port, reached } = await world()
    const client = new RawClient(port)
    const post = 'POST /p HTTP/1.1\r\nHost: shop\r\nX-Api-Key: k1\r\nContent-Length: 4\r\n\r\nbody'
    for (let count = 1; count <= 3; count++) {
      client.send(post)
      await client.until(received => answersIn(received) === count)
    }
    expect(reached).toEqual(Array.from({ length: 3 }, () => 'POST /p k1 body'))
  })

  it('close the connection when they say so, each on its own connection', async () => {
    const { port, reached } = await world()
    for (let count = 1; count <= 2; count++) {
      const client = new RawClient(port)
      client.send(same.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
      expect(await client.whenClosed()).toMatch(/^HTTP\/1\.1 200 /)
      expect(reached).toHaveLength(count)
    }
  })
})
