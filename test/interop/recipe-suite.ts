/** What every recipe must do, whichever program runs it. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Answer, RecipeOptions } from './recipe-world.js'
import { RecipeWorld } from './recipe-world.js'

export interface RecipePromises {
  /** What a client gets while the sidecar is down: 200 with X-RateLimit-Degraded, or an error. */
  readonly sidecarDown: number
}

/** Defines the suite; the recipe's own tests may use the world. */
export function recipeSuite(options: RecipeOptions, promises: RecipePromises): () => RecipeWorld {
  let started: RecipeWorld | null = null
  const world = (): RecipeWorld => {
    if (started === null) throw new Error('the world did not start')
    return started
  }
  beforeAll(async () => {
    started = await RecipeWorld.start(options)
  })
  afterAll(() => started?.stop())
  limitTests(world)
  spoofTests(world)
  it('does what the recipe says while the sidecar is down', async () => {
    await world().sidecar.stop()
    const down = await world().ask('/api/down', {
      from: '127.0.0.40',
      method: 'POST',
      body: 'x=1',
    })
    expect(down.status, world().output).toBe(promises.sidecarDown)
    if (promises.sidecarDown !== 200) return
    expect(down.body).toBe('app: POST /api/down x=1\n')
    expect(down.headers['x-ratelimit-degraded']).toBe('1')
    expect(down.headers.ratelimit).toBeUndefined()
  })
  return world
}

async function exhaust(world: RecipeWorld, from: string): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let n = 0; n < 4; n++) answers.push(await world.ask(`/api/x?n=${n}`, { from }))
  return answers
}

function limitTests(world: () => RecipeWorld): void {
  it('passes what is below the limit, with what is left in the headers', async () => {
    const answer = await world().ask('/api/hello?page=2', { from: '127.0.0.10' })
    expect(answer.status, world().output).toBe(200)
    expect(answer.body).toBe('app: GET /api/hello?page=2 \n')
    expect(answer.headers).toMatchObject({
      'x-app': 'yes',
      ratelimit: expect.stringMatching(/^"api";r=2;t=\d+$/),
      'ratelimit-policy': '"api";q=3;w=3600',
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '2',
      'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
    })
    expect(answer.headers['x-ratelimit-denied']).toBeUndefined()
  })

  it('refuses what is above it with 429, Retry-After and RateLimit', async () => {
    const answers = await exhaust(world(), '127.0.0.11')
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    const { headers, body } = answers[3] as Answer
    const retryAfter = Number(headers['retry-after'])
    // An hour's limit of 3 gives one back after 20 minutes; jitter adds up to 5 s.
    expect(retryAfter).toBeGreaterThan(1_100)
    expect(retryAfter).toBeLessThanOrEqual(1_205)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': expect.stringContaining('application/problem+json'),
      ratelimit: `"api";r=0;t=${retryAfter}`,
      'ratelimit-policy': '"api";q=3;w=3600',
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '0',
    })
    expect(JSON.parse(body)).toMatchObject({
      status: 429,
      error: 'Rate limit exceeded',
      retryAfter,
      limit: 3,
    })
    expect(world().seen.filter(({ line }) => line === 'GET /api/x?n=3')).toEqual([])
  })

  it('keeps the connection of a client that was refused', async () => {
    const answers = await exhaust(world(), '127.0.0.12')
    answers.push(await world().ask('/free', { from: '127.0.0.12' }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 200])
    expect(new Set(answers.map(({ localPort }) => localPort)).size).toBe(1)
  })

  it('leaves an application’s own 403 alone', async () => {
    const answer = await world().ask('/api/own-403', { from: '127.0.0.13' })
    expect(answer.status).toBe(403)
    expect(answer.body).toBe('app: GET /api/own-403 \n')
    expect(answer.headers['x-app']).toBe('yes')
    expect(answer.headers['retry-after']).toBeUndefined()
  })

  it('passes what no rule looks at without any limit in its headers', async () => {
    const answer = await world().ask('/free', { from: '127.0.0.14' })
    expect(answer.status).toBe(200)
    expect(Object.keys(answer.headers).filter(name => name.includes('ratelimit'))).toEqual([])
  })

  it('refuses what the deny list names with 403', async () => {
    const answer = await world().ask('/blocked', { from: '127.0.0.15' })
    expect(answer.status).toBe(403)
    expect(answer.headers['x-app']).toBeUndefined()
  })

  it('refuses an absent key with 429, and names no time to come back', async () => {
    const answer = await world().ask('/needy', { from: '127.0.0.15' })
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBeUndefined()
    expect(JSON.parse(answer.body)).toMatchObject({ status: 429, error: 'Rate limit exceeded' })
  })

  it('asks with the client’s method, host and headers, and passes its body', async () => {
    const post = { method: 'POST', body: 'x=1', from: '127.0.0.16' }
    expect((await world().ask('/posts', { from: '127.0.0.16' })).status).toBe(200)
    expect((await world().ask('/posts', post)).body).toBe('app: POST /posts x=1\n')
    expect((await world().ask('/posts', post)).status).toBe(429)
    const shop = { headers: { host: 'shop.example' }, from: '127.0.0.16' }
    const other = { headers: { host: 'other.example' }, from: '127.0.0.16' }
    const statuses: number[] = []
    for (const ask of [shop, shop, shop, other])
      statuses.push((await world().ask('/hosted/a', ask)).status)
    expect(statuses).toEqual([200, 200, 429, 200])
    const keyed = (key: string) =>
      world().ask('/keyed/a', { headers: { 'x-api-key': key }, from: '127.0.0.16' })
    expect([(await keyed('a')).status, (await keyed('b')).status]).toEqual([200, 200])
    expect((await keyed('a')).status).toBe(429)
  })

  it('answers HEAD with the head of the refusal', async () => {
    await exhaust(world(), '127.0.0.17')
    const head = await world().ask('/api/x', { method: 'HEAD', from: '127.0.0.17' })
    expect(head).toMatchObject({ status: 429, body: '' })
    expect((await world().ask('/free', { from: '127.0.0.17' })).status).toBe(200)
  })

  it('adds to an application’s own RateLimit list and takes nothing from it', async () => {
    const { headers } = await world().ask('/own-list', { from: '127.0.0.18' })
    const items = String(headers.ratelimit).split(', ').sort()
    expect(items).toEqual(['"app";r=1;t=9', expect.stringMatching(/^"own";r=99;t=/)])
  })
}

/** Everything the decision API would believe of a proxy on this machine. */
const forgeries: readonly Readonly<Record<string, string>>[] = [
  { 'x-forwarded-for': '203.0.113.9' },
  { 'x-real-ip': '203.0.113.9' },
  { 'x-forwarded-uri': '/free' },
  { 'x-original-uri': '/free' },
  { 'x-original-url': 'http://shop.example/free' },
  { 'x-envoy-original-path': '/free' },
  { 'x-forwarded-method': 'POST' },
  { 'x-original-method': 'POST' },
  { 'x-forwarded-host': 'elsewhere.example' },
  { 'grapevine-ratelimit': '"forged";r=9;t=9', 'x-ratelimit-denied': '1' },
]

function spoofTests(world: () => RecipeWorld): void {
  it.each(forgeries)('a client gains nothing by sending %o', async forged => {
    const from = `127.0.0.${20 + forgeries.indexOf(forged)}`
    const answers: Answer[] = []
    for (let n = 0; n < 4; n++)
      answers.push(await world().ask('/api/x', { headers: { ...forged }, from }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(answers[0]?.headers.ratelimit).toMatch(/^"api";r=2;/)
    const posts: number[] = []
    for (let n = 0; n < 2; n++) {
      const post = { method: 'POST', body: '', headers: { ...forged }, from }
      posts.push((await world().ask('/posts', post)).status)
    }
    expect(posts).toEqual([200, 429])
  })

  it('a client does not choose the host it is counted under', async () => {
    const statuses: number[] = []
    for (const forged of ['a', 'b', 'c']) {
      const headers = { host: 'one.example', 'x-forwarded-host': forged }
      statuses.push((await world().ask('/hosted/b', { headers, from: '127.0.0.19' })).status)
    }
    expect(statuses).toEqual([200, 200, 429])
  })
}
