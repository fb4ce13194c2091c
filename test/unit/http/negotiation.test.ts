import { describe, expect, it } from 'vitest'
import { escapeHtml, prefersHtml } from '../../../src/http/negotiation.js'

describe('prefersHtml', () => {
  it.each([
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['text/html', true],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['application/json, text/html;q=0.5', false],
    ['text/html;q=0.4, application/json;q=0.5', false],
    ['text/*, */*;q=0.1', true],
    ['text/html;q=0, */*', false],
    ['image/png', false],
  ])('%s: %s', (accept, expected) => {
    expect(prefersHtml(accept)).toBe(expected)
  })

  it('falls back to what the page wants where the client does not care', () => {
    expect(prefersHtml('*/*', true)).toBe(true)
    expect(prefersHtml(undefined, true)).toBe(true)
    expect(prefersHtml('application/json', true)).toBe(false)
  })
})

describe('escapeHtml', () => {
  it('leaves no character that ends text', () => {
    expect(escapeHtml(`<a href="x" id='y'>&`)).not.toMatch(/[<>"']|&(?!#)/)
  })
})
