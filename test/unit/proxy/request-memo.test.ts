import { describe, expect, it } from 'vitest'
import type { CheckedRequest } from '../../../src/proxy/request-check.js'
import { MemoBudget, RequestMemo } from '../../../src/proxy/request-memo.js'

const request = (parts: Partial<CheckedRequest> = {}) =>
  ({ bodyBytes: 0, upgrade: null, ...parts }) as CheckedRequest

const bytes = (text: string) => Buffer.from(text)

describe('RequestMemo', () => {
  it('knows the latest request by its bytes, whole', () => {
    const memo = new RequestMemo(new MemoBudget())
    const kept = request()
    expect(memo.find(bytes('GET /a'))).toBeNull()
    memo.keep(bytes('GET /a'), kept)
    expect(memo.find(bytes('GET /a'))).toBe(kept)
    expect(memo.find(bytes('GET /b'))).toBeNull()
    expect(memo.find(bytes('GET /a '))).toBeNull()
    expect(memo.find(bytes('GET /'))).toBeNull()
    memo.keep(bytes('GET /b'), request())
    expect(memo.find(bytes('GET /a'))).toBeNull()
  })

  it.each([
    ['with a body', request({ bodyBytes: 5 })],
    ['with a chunked body', request({ bodyBytes: -1 })],
    ['for an upgrade', request({ upgrade: 'websocket' })],
  ])('keeps no request %s, and drops the one before', (_name, other) => {
    const budget = new MemoBudget()
    const memo = new RequestMemo(budget)
    memo.keep(bytes('GET /a'), request())
    memo.keep(bytes('POST /a'), other)
    expect(memo.find(bytes('GET /a'))).toBeNull()
    expect(memo.find(bytes('POST /a'))).toBeNull()
    expect(budget.bytes).toBe(0)
  })

  it('keeps no long request, and no more of all connections than the budget', () => {
    const budget = new MemoBudget(100)
    const memos = Array.from({ length: 4 }, () => new RequestMemo(budget))
    memos[0]?.keep(Buffer.alloc(2_000), request())
    expect(budget.bytes).toBe(0)
    for (const memo of memos) memo.keep(Buffer.alloc(40), request())
    expect(budget.bytes).toBe(80)
    expect(memos.map(memo => memo.find(Buffer.alloc(40)) !== null)).toEqual([
      true,
      true,
      false,
      false,
    ])
    memos[0]?.forget()
    memos[0]?.forget()
    expect(budget.bytes).toBe(40)
    memos[2]?.keep(Buffer.alloc(40), request())
    expect(memos[2]?.find(Buffer.alloc(40))).not.toBeNull()
    expect(budget.bytes).toBe(80)
  })
})
