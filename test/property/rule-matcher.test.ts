import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import {
  canonicalIp,
  cidrContains,
  clientGroup,
  ipv6ClientBits,
  parseCidr,
  parseIp,
} from '../../src/limiter/cidr.js'
import { partHead, partText } from '../../src/limiter/key-source.js'
import { createMatchResult } from '../../src/limiter/match-result.js'
import { normalisePath } from '../../src/limiter/normal-path.js'
import { parsePathPattern } from '../../src/limiter/path-pattern.js'
import type { MatchSpec } from '../../src/limiter/rule.js'
import { RuleMatcher } from '../../src/limiter/rule-matcher.js'
import { matchSpec, requestFacts, ruleSet, ruleSpec } from '../helpers/rule-specs.js'

const segment = fc.stringMatching(/^[ab.]{1,4}$/).filter(text => text !== '.' && text !== '..')
const path = fc.array(segment, { maxLength: 5 }).map(parts => `/${parts.join('/')}`)
const rawPath = fc
  .array(
    fc.constantFrom('/', '.', '..', 'a', 'B', '%61', '%2e', '%2F', '%00', '%', '%C3%A9', '\\', '~'),
    {
      maxLength: 12,
    },
  )
  .map(parts => `/${parts.join('')}`)
const patternSegment = fc.oneof(segment, fc.constantFrom('*', '**', 'a*', '*b', '?', 'a?*', '*a*'))
const pattern = fc
  .array(patternSegment, { minLength: 1, maxLength: 5 })
  .map(parts => `/${parts.join('/')}`)

/** The glob as a regular expression: slow and simple. */
function oracle(glob: string, text: string): boolean {
  const parts = glob.split('/').filter(part => part !== '')
  const source = parts
    .map(part => {
      if (part === '**') return '(?:/[^/]+)*'
      const body = part.replace(/[.]/g, '\\.').replaceAll('*', '[^/]*').replaceAll('?', '[^/]')
      return `/(?=[^/])${body}`
    })
    .join('')
  return new RegExp(`^(?:${source})/?$`).test(text)
}

describe('normalisePath', () => {
  it('is idempotent on what needs no decoding', () => {
    fc.assert(
      fc.property(rawPath, raw => {
        const once = normalisePath(raw)
        if (once === null || /[%\\]/.test(once)) return
        expect(normalisePath(once)).toBe(once)
      }),
    )
  })

  it('leaves no dot segment, no double slash, no NUL and no backslash', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          rawPath,
          fc.string().map(text => `/${text}`),
        ),
        raw => {
          const normal = normalisePath(raw)
          if (normal === null) return
          expect(normal).toMatch(/^\//)
          expect(normal).not.toMatch(/\/\/|\/\.\.?(\/|$)|[\0\\]/)
        },
      ),
    )
  })

  it('reads an escape of any plain character as the character', () => {
    fc.assert(
      fc.property(path, fc.nat(), (text, at) => {
        const index = 1 + (at % Math.max(1, text.length - 1))
        const char = text[index]
        if (char === undefined || char === '/') return
        const hex = char.charCodeAt(0).toString(16).padStart(2, '0')
        const escaped = `${text.slice(0, index)}%${hex}${text.slice(index + 1)}`
        expect(normalisePath(escaped)).toBe(normalisePath(text))
      }),
    )
  })
})

describe('a path pattern', () => {
  it('takes what the same glob as a regular expression takes', () => {
    fc.assert(
      fc.property(pattern, path, fc.boolean(), (glob, text, slash) => {
        const parsed = parsePathPattern(glob)
        if (!parsed.ok) throw new Error(`${glob}: ${parsed.error}`)
        const asked = slash && text !== '/' ? `${text}/` : text
        expect(parsed.pattern.matches(asked)).toBe(oracle(glob, asked))
      }),
      { numRuns: 2000 },
    )
  })

  it('is a value or a sentence for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[/{},*?a]{0,12}$/)), text => {
        const parsed = parsePathPattern(text)
        if (parsed.ok) expect(typeof parsed.pattern.matches('/a/b')).toBe('boolean')
        else expect(parsed.error).not.toBe('')
      }),
    )
  })
})

const match: fc.Arbitrary<MatchSpec> = fc.record({
  path: fc.option(fc.constantFrom('/a/**', '/a', '/b', '/**'), { nil: null }),
  method: fc.option(fc.subarray(['GET', 'POST'], { minLength: 1 }), { nil: null }),
  header: fc.option(fc.constantFrom({ 'x-a': '1' }, { 'x-a': '2' }), { nil: null }),
})

describe('RuleMatcher', () => {
  it('finds the rules that a plain reading of the text finds', () => {
    const rules = fc.array(fc.record({ match, stop: fc.boolean() }), { maxLength: 6 })
    const request = fc.record({
      path: fc.constantFrom('/', '/a', '/a/b', '/b', '/c'),
      method: fc.constantFrom('GET', 'POST', 'PUT'),
      header: fc.constantFrom('1', '2', undefined),
    })
    fc.assert(
      fc.property(rules, request, (specs, asked) => {
        const headers = asked.header === undefined ? {} : { 'x-a': asked.header }
        const facts = requestFacts({ path: asked.path, method: asked.method, headers })
        const set = ruleSet(
          specs.map((spec, index) =>
            ruleSpec({ name: `r${index}`, ...spec, match: matchSpec(spec.match) }),
          ),
        )
        const out = createMatchResult(specs.length)
        new RuleMatcher(set).match(facts, out)

        const expected: number[] = []
        for (const [index, { match: wanted, stop }] of specs.entries()) {
          const taken =
            (wanted.path === null || oracle(wanted.path, asked.path)) &&
            (wanted.method === null || wanted.method.includes(asked.method)) &&
            (wanted.header === null || wanted.header['x-a'] === asked.header)
          if (taken) expected.push(index)
          if (taken && stop) break
        }
        expect(Array.from(out.rule.slice(0, out.count))).toEqual(expected)
      }),
    )
  })

  it('gives two lists of key parts the same text only when they are the same', () => {
    const value = fc.stringMatching(/^[0-9:a]{0,5}$/)
    const name = fc.stringMatching(/^[0-9:a]{1,5}$/)
    const part = fc.oneof(
      value.map(text => ({ source: { kind: 'ip' } as const, value: text })),
      fc.record({ source: name.map(text => ({ kind: 'header', name: text }) as const), value }),
      fc.record({ source: name.map(text => ({ kind: 'cookie', name: text }) as const), value }),
    )
    const parts = fc.array(part, { minLength: 1, maxLength: 3 })
    const text = (list: readonly { source: Parameters<typeof partHead>[0]; value: string }[]) =>
      list.map(entry => partText(partHead(entry.source), entry.value)).join('')
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const same = JSON.stringify(one) === JSON.stringify(other)
        expect(text(one) === text(other)).toBe(same)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('addresses', () => {
  it('have one canonical text, which reads as the same address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), text => {
        const canonical = canonicalIp(text)
        expect(canonical).not.toBeNull()
        expect(canonicalIp(canonical!)).toBe(canonical)
        expect(parseIp(canonical!)).toEqual(parseIp(text))
      }),
    )
  })

  it('are read and written as ipaddr.js does, odd spellings included', () => {
    const odd = fc.stringMatching(/^[0-9a-fA-F:]{0,24}$/)
    const groups = fc
      .array(fc.constantFrom('', '0', '0', '1', 'abcd', '00a', '12345'), { maxLength: 9 })
      .map(parts => parts.join(':'))
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), odd, groups), text => {
        // It takes ::192.0.2.7 for the mapped address, and we do not.
        if (text.includes('.')) return
        const valid = ipaddr.IPv6.isValid(text)
        const parsed = valid ? ipaddr.IPv6.parse(text) : null
        const expected = parsed?.isIPv4MappedAddress()
          ? parsed.toIPv4Address().toString()
          : (parsed?.toRFC5952String() ?? null)
        expect(canonicalIp(text)).toBe(expected)
      }),
      { numRuns: 3000 },
    )
  })

  it('are in the group that stands for them', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), text => {
        const group = clientGroup(text)
        const network = parseCidr(group)!
        expect(cidrContains(network, parseIp(text)!)).toBe(true)
        if (group.includes('/')) {
          expect(network.prefixBits).toBe(ipv6ClientBits)
          expect(group).toBe(`${canonicalIp(group.slice(0, -3))}/64`)
        }
        const again = group.includes('/') ? group.slice(0, group.indexOf('/')) : group
        expect(clientGroup(again)).toBe(group)
      }),
    )
  })

  it('are read or refused, and never throw, for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:./%]{0,20}$/)), text => {
        const bits = parseIp(text)
        expect(bits === null).toBe(canonicalIp(text) === null)
        expect(typeof clientGroup(text)).toBe('string')
        parseCidr(text)
      }),
    )
  })
})
