import { createHash } from 'node:crypto'
import { Script } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { statusPage, statusPageSecurityPolicy } from '../../../src/http/status-page.js'

const script = /<script>([\s\S]*)<\/script>/.exec(statusPage)?.[1] ?? ''

describe('the status page', () => {
  it('has a script that compiles, and whose hash the policy allows', () => {
    expect(script).not.toBe('')
    expect(() => new Script(script)).not.toThrow()
    const hash = createHash('sha256').update(script).digest('base64')
    expect(statusPageSecurityPolicy).toContain(`script-src 'sha256-${hash}'`)
  })

  it('has every element that its script looks for', () => {
    const wanted = [...script.matchAll(/(?:at|fill)\('(\w+)'/g)].map(match => match[1])
    expect(wanted.length).toBeGreaterThan(5)
    for (const id of wanted) expect(statusPage).toContain(`id="${id}"`)
  })

  it('puts text into the page as text only', () => {
    expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write/)
  })

  it('labels every input, and follows the reader’s choice of light or dark', () => {
    for (const [, id] of statusPage.matchAll(/<(?:input|textarea) id="(\w+)"/g)) {
      expect(statusPage).toContain(`<label for="${id}">`)
    }
    expect(statusPage).toContain('color-scheme: light dark')
  })
})
