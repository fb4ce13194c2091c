// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the text under test has such variables.
/** No text, however odd, makes the configuration reader throw or report a place that is not there. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { documentsOf, kindOf } from '../../src/config/documents.js'
import { type Finding, formatFinding } from '../../src/config/finding.js'
import { parseRules, parseSidecar } from '../../src/config/parse.js'

/** Longest a property may run, in milliseconds; it ends early rather than late. */
const budgetMs = 3000

const env = { A: 'a', N: '5' }

function judge(text: string): void {
  const file = { name: 'f.yaml', text }
  documentsOf(file)
  const rules = parseRules([file])
  const sidecar = parseSidecar(file, { env, flags: {}, hostname: 'h' })
  const lines = text.split('\n').length
  const told: readonly Finding[] = [
    ...(rules.ok ? rules.warnings : rules.findings),
    ...(sidecar.ok ? sidecar.warnings : sidecar.findings),
  ]
  if (!rules.ok) expect(rules.findings.some(({ level }) => level === 'error')).toBe(true)
  if (!sidecar.ok) expect(sidecar.findings.some(({ level }) => level === 'error')).toBe(true)
  for (const finding of told) {
    expect(finding.line, formatFinding(finding)).toBeGreaterThan(0)
    expect(finding.line, formatFinding(finding)).toBeLessThanOrEqual(lines)
    expect(finding.column, formatFinding(finding)).toBeGreaterThan(0)
    expect(finding.message).not.toBe('')
  }
}

const limits = { interruptAfterTimeLimit: budgetMs, markInterruptAsFailure: false } as const

const scraps = fc.constantFrom(
  ...[
    'version: 1',
    'rules:',
    '  - name: api',
    '    key: [ip]',
    '    limit: 100/1s',
    'allow:',
    '- ',
    '  ',
  ],
  ...[
    '&a ',
    '*a',
    '<<: *a',
    '|',
    '>',
    '"',
    "'",
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '? ',
    '# ',
    '---',
    '...',
    '!!binary x',
  ],
  ...[
    '${A}',
    '${',
    '$$',
    '\t',
    '\r\n',
    '\n',
    '\0',
    '\u{1F600}',
    'null',
    '.nan',
    '1e999',
    '%YAML 1.1',
    '__proto__: 1',
  ],
)

const leaf = fc.oneof(
  fc.constantFrom(
    'ip',
    'header:x',
    'jwt:sub',
    'global',
    '100/1s',
    '5/day',
    '1m',
    '/a/**',
    'GET',
    'open',
    'a',
    '',
  ),
  fc.constantFrom(
    '10.0.0.0/8',
    '127.0.0.1:1',
    'http://a:1',
    'file:/x',
    'UTC',
    '${A}',
    '${N}',
    'token-bucket',
  ),
  fc.constantFrom(null, true, false, 0, 1, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e300),
  fc.string(),
)

const knownKey = fc.constantFrom(
  ...[
    'version',
    'node',
    'name',
    'proxy',
    'listen',
    'upstream',
    'trustedProxies',
    'gossip',
    'bind',
    'label',
  ],
  ...[
    'discovery',
    'static',
    'headers',
    'ietf',
    'identity',
    'jwt',
    'secret',
    'jwks',
    'rules',
    'allow',
    'deny',
  ],
  ...[
    'timezone',
    'match',
    'path',
    'method',
    'header',
    'key',
    'limit',
    'burst',
    'algorithm',
    'tier',
    'by',
    'default',
  ],
  ...[
    'limits',
    'cost',
    'responseHeader',
    'onExceeded',
    'status',
    'body',
    'queue',
    'maxWait',
    'concurrency',
    'cidr',
  ],
  ...[
    'apiVersion',
    'kind',
    'data',
    'rules.yaml',
    'items',
    'metadata',
    '__proto__',
    'constructor',
    'toString',
  ],
)

const { tree } = fc.letrec(tie => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof({ weight: 9, arbitrary: knownKey }, { weight: 1, arbitrary: fc.string() }),
      tie('tree'),
      {
        maxKeys: 6,
      },
    ),
  ),
}))

/** Nearly valid rules: the right keys with values that may fit or not. */
const nearlyRule = fc.record(
  {
    name: fc.oneof(fc.constantFrom('a', 'b'), leaf),
    key: fc.oneof(fc.constant(['ip']), leaf, fc.array(leaf, { maxLength: 3 })),
    limit: fc.oneof(fc.constantFrom('5/1s', '5/day', '1/30s'), leaf),
    tier: fc.oneof(
      fc.record({ by: leaf, default: leaf, limits: fc.dictionary(fc.string(), leaf) }),
      leaf,
    ),
    concurrency: fc.oneof(fc.nat(), leaf),
    burst: leaf,
    algorithm: fc.constantFrom('token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-log', 'x'),
    queue: fc.oneof(fc.nat(), leaf),
    match: fc.oneof(
      fc.record({ path: leaf, method: leaf, header: fc.dictionary(fc.string(), leaf) }),
      leaf,
    ),
    cost: fc.oneof(fc.record({ default: leaf, responseHeader: leaf }), leaf),
    stop: fc.oneof(fc.boolean(), leaf),
    mode: fc.constantFrom('shadow', 'enforce', 'x'),
  },
  { requiredKeys: ['name', 'key'] },
)

describe('the configuration reader', () => {
  it('takes any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), judge), limits)
  })

  it('takes scraps of YAML in any order', () => {
    const text = fc.array(scraps, { maxLength: 20 }).map(parts => parts.join(''))
    const lines = fc.array(scraps, { maxLength: 20 }).map(parts => parts.join('\n'))
    fc.assert(fc.property(fc.oneof(text, lines), judge), { ...limits, numRuns: 500 })
  })

  it('takes any tree of known keys and values of any kind', () => {
    const text = tree.map(value => stringify(value))
    fc.assert(fc.property(text, judge), { ...limits, numRuns: 500 })
  })

  it('takes rules that are nearly valid', () => {
    const text = fc
      .array(nearlyRule, { minLength: 1, maxLength: 3 })
      .map(rules => stringify({ version: 1, rules }))
    fc.assert(fc.property(text, judge), { ...limits, numRuns: 500 })
  })

  it('takes manifests with anything in them', () => {
    const text = fc
      .record({
        entry: fc.oneof(
          tree.map(value => stringify(value)),
          fc.string(),
        ),
        extra: tree,
      })
      .map(({ entry, extra }) => {
        const data = { 'rules.yaml': entry, other: extra }
        return stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: extra, data })
      })
    fc.assert(fc.property(text, judge), { ...limits, numRuns: 300 })
  })

  it('calls anything a sidecar file that shows no sign of rules', () => {
    fc.assert(
      fc.property(fc.anything(), value => {
        expect(['sidecar', 'rules']).toContain(kindOf(value))
      }),
    )
  })
})
