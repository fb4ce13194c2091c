/** The rules file: single source of its validator, its JSON Schema and its type. */
import { type Static, Type } from 'typebox'
import { costMax } from '../limiter/rule-matcher.js'
import { GrammarText, OneOrMore, Strict } from './schema-terms.js'

/** Most rules, and most entries of `allow` and of `deny`, in all files together. */
export const rulesMax = 1000

const Version = Type.Optional(
  Type.Literal(1, { description: 'Format of the file; absent: 1.', 'x-expected': '1' }),
)

const Method = Type.String({
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$",
  'x-expected': 'a method, as GET',
})

const Methods = Type.Union([Method, Type.Array(Method, { minItems: 1, maxItems: 32 })], {
  description: 'Method or list of methods.',
  'x-expected': 'a method, as GET, or a list of these',
})

const HeaderEquals = Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
  description: 'Headers and the exact value each must have.',
  'x-key-grammar': 'headerName',
  minProperties: 1,
  maxProperties: 32,
  additionalProperties: false,
})

const matchParts = {
  path: Type.Optional(
    GrammarText('path', {
      description: 'Glob over the path without query: * within a segment, ** over segments.',
    }),
  ),
  method: Type.Optional(Methods),
  header: Type.Optional(HeaderEquals),
}

const Match = Strict(matchParts, {
  description: 'All given parts must match; absent: every request.',
})

const ListEntry = Strict(
  { cidr: Type.Optional(GrammarText('cidr', { description: 'Client addresses.' })), ...matchParts },
  { minProperties: 1, description: 'All given parts must match.' },
)

const Cost = Type.Number({
  minimum: -costMax,
  maximum: costMax,
  'x-expected': 'a finite number within ±1e9',
})

const Limit = GrammarText('limit', { description: 'COUNT/DURATION, as 100/1s or 10000/day.' })

const Tier = Strict(
  {
    by: GrammarText('keyPart', { description: 'What names the tier; sources as in key.' }),
    default: Type.String({ description: 'The tier of everybody else; a key of limits.' }),
    limits: Type.Record(Type.String(), Limit, {
      description: 'Limit by tier.',
      minProperties: 1,
      maxProperties: 256,
      additionalProperties: false,
    }),
  },
  { description: 'Limits by the kind of client, instead of limit.' },
)

const Costs = Strict(
  {
    default: Type.Optional(Cost),
    match: Type.Optional(
      Type.Array(Strict({ ...matchParts, cost: Cost }), {
        maxItems: 256,
        description: 'The first entry that matches gives the cost.',
      }),
    ),
    requestHeader: Type.Optional(
      GrammarText('headerName', { description: 'Cost named by trusted callers, 0 or more.' }),
    ),
    responseHeader: Type.Optional(
      GrammarText('headerName', { description: 'Cost named by the upstream, settled afterwards.' }),
    ),
  },
  { description: 'What a request costs; absent: 1.' },
)

const OnExceeded = Strict(
  {
    status: Type.Optional(Type.Integer({ minimum: 400, maximum: 599, default: 429 })),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 4096, pattern: '^[^\\r\\n\\0]*$' }), {
        'x-key-grammar': 'headerName',
        maxProperties: 32,
        additionalProperties: false,
      }),
    ),
    body: Type.Optional(
      Type.String({ maxLength: 65536, description: 'Template; empty: problem+json.' }),
    ),
    staleFor: Type.Optional(
      GrammarText('duration', { description: 'How long a cached 200 may stand in.' }),
    ),
  },
  { description: 'The answer to a request over the limit.' },
)

const Rule = Strict({
  name: Type.String({
    pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
    description: 'Identity of the counters: usage survives a change of the numbers, not of this.',
    'x-expected': 'a name of a-z, 0-9 and "-", at most 63 characters',
  }),
  match: Type.Optional(Match),
  key: OneOrMore('keyPart', {
    description: 'A list is a compound key; "|" takes the first one present.',
  }),
  limit: Type.Optional(Limit),
  tier: Type.Optional(Tier),
  concurrency: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1e9,
      description: 'Requests in flight over the fleet, instead of limit.',
    }),
  ),
  burst: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      maximum: 1e12,
      description: 'Bucket size; token bucket only; absent: COUNT.',
    }),
  ),
  algorithm: Type.Optional(
    Type.Enum(['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window', 'sliding-log'], {
      description: 'Absent: token-bucket, for calendar windows fixed-window.',
    }),
  ),
  queue: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1e6,
      description: 'Leaky bucket only: requests that may wait.',
    }),
  ),
  maxWait: Type.Optional(
    GrammarText('duration', { description: 'Leaky bucket only: the longest wait.' }),
  ),
  onPartition: Type.Optional(Type.Enum(['open', 'share', 'closed'], { default: 'share' })),
  failureMode: Type.Optional(Type.Enum(['open', 'closed'], { default: 'open' })),
  mode: Type.Optional(Type.Enum(['enforce', 'shadow'], { default: 'enforce' })),
  missing: Type.Optional(
    Type.Enum(['ip', 'skip', 'deny'], { default: 'ip', description: 'What an absent key does.' }),
  ),
  stop: Type.Optional(
    Type.Boolean({ default: false, description: 'A match hides the later rules.' }),
  ),
  count: Type.Optional(
    Type.Enum(['all', 'success', 'failure'], {
      default: 'all',
      description: 'Which requests count, by how they end.',
    }),
  ),
  cost: Type.Optional(Costs),
  onExceeded: Type.Optional(OnExceeded),
  timezone: Type.Optional(GrammarText('timezone')),
})

/** Keys that rules are made of; also allowed inline in the sidecar file. */
export const rulesKeys = {
  timezone: Type.Optional(
    GrammarText('timezone', {
      default: 'UTC',
      description: 'Zone of calendar windows; also per rule.',
    }),
  ),
  allow: Type.Optional(
    Type.Array(ListEntry, { maxItems: rulesMax, description: 'Never limited, never counted.' }),
  ),
  deny: Type.Optional(
    Type.Array(ListEntry, {
      maxItems: rulesMax,
      description: '403 at once; allow wins over deny.',
    }),
  ),
  rules: Type.Optional(
    Type.Array(Rule, { maxItems: rulesMax, description: 'Applied in order, charged all or none.' }),
  ),
}

export const versionKey = { version: Version }

export const RulesFile = Strict(
  { ...versionKey, ...rulesKeys },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://grapevine.dev/schema/rules-v1.schema.json',
    title: 'Grapevine rules',
  },
)

export type RulesText = Static<typeof RulesFile>
export type RuleText = Static<typeof Rule>
export type MatchText = Static<typeof Match>
export type ListEntryText = Static<typeof ListEntry>
