import { describe, expect, it } from 'vitest'
import { denialAnswer } from '../../../src/http/problem.js'
import type { OnExceededSpec } from '../../../src/limiter/rule.js'
import type { RuleName } from '../../../src/vocabulary.js'
import { denied } from '../../helpers/fake-core.js'

const noJitter = (): number => 0

function onExceeded(parts: Partial<OnExceededSpec>): OnExceededSpec {
  return { status: 429, headers: {}, body: null, staleForMs: 0, ...parts }
}

function headersOf(list: readonly string[]): Record<string, string> {
  const pairs: [string, string][] = []
  for (let index = 0; index < list.length; index += 2) {
    pairs.push([list[index] ?? '', list[index + 1] ?? ''])
  }
  return Object.fromEntries(pairs)
}

describe('denialAnswer', () => {
  it('is a quota-exceeded problem with plain members that agree with the headers', () => {
    const answer = denialAnswer(denied(), undefined, noJitter)
    expect(answer.status).toBe(429)
    expect(headersOf(answer.headers)).toEqual({
      'Cache-Control': 'no-store',
      'Retry-After': '2',
      'Content-Type': 'application/problem+json',
    })
    expect(JSON.parse(answer.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Rate limit exceeded',
      status: 429,
      detail: 'Rule "api" admits no more for now; retry in 2 s.',
      'violated-policies': ['api'],
      error: 'Rate limit exceeded',
      retryAfter: 2,
      limit: 100,
    })
  })

  it('names every rule that was violated', () => {
    const violated = ['api', 'login'] as RuleName[]
    const answer = denialAnswer(denied({ violated }), undefined, noJitter)
    expect(JSON.parse(answer.body)['violated-policies']).toEqual(violated)
  })

  it('jitter moves header and body together', () => {
    const answer = denialAnswer(denied({ retryAfterMs: 60_000 }), undefined, () => 0.99)
    expect(headersOf(answer.headers)['Retry-After']).toBe('65')
    expect(JSON.parse(answer.body).retryAfter).toBe(65)
  })

  it.each([
    ['blocked', 403, undefined],
    ['missing-key', 429, undefined],
    ['degraded', 503, '2'],
  ] as const)('%s is %d with Retry-After %s', (reason, status, retryAfter) => {
    const answer = denialAnswer(denied({ reason }), undefined, noJitter)
    expect(answer.status).toBe(status)
    expect(headersOf(answer.headers)['Retry-After']).toBe(retryAfter)
    expect(JSON.parse(answer.body).status).toBe(status)
  })

  it('fills a template in the body and in headers, and leaves unknown names alone', () => {
    const spec = onExceeded({
      status: 420,
      headers: { 'X-Wait': '{{retryAfter}}', 'Content-Type': 'text/calm' },
      body: '{{ rule }} {{limit}}/{{window}} {{remaining}} {{retryAfter}} {{status}} {{key}} {x}',
    })
    const answer = denialAnswer(denied(), spec, noJitter)
    expect(answer.status).toBe(420)
    expect(answer.body).toBe('api 100/1 0 2 420 {{key}} {x}')
    expect(headersOf(answer.headers)).toMatchObject({
      'X-Wait': '2',
      'Content-Type': 'text/calm',
      'Retry-After': '2',
    })
  })

  it.each([
    ['{"a":1}', 'application/json'],
    ['[1]', 'application/json'],
    ['<p>no</p>', 'text/html; charset=utf-8'],
    ['no', 'text/plain; charset=utf-8'],
    ['', 'text/plain; charset=utf-8'],
  ])('a body of %j is sent as %s', (body, type) => {
    const answer = denialAnswer(denied(), onExceeded({ body }), noJitter)
    expect(headersOf(answer.headers)['Content-Type']).toBe(type)
    expect(answer.body).toBe(body)
  })

  it('a rule’s template is not used for what is not its limit', () => {
    const spec = onExceeded({ status: 418, body: 'x', headers: { 'X-A': '1' } })
    const answer = denialAnswer(denied({ reason: 'blocked' }), spec, noJitter)
    expect(answer.status).toBe(403)
    expect(headersOf(answer.headers)['X-A']).toBeUndefined()
  })
})
