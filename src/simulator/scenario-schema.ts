/**
 * The shape of a scenario file (product.md §9). Every leaf's `description` completes the sentence
 * "must be …", which is what an error says.
 */
import { type Static, Type } from 'typebox'

/** Fleet sizes up to here are meant to be run; beyond it a typing error is likelier. */
export const podsMax = 1000

const duration = Type.String({
  pattern: '^\\d+(\\.\\d+)?(ms|s|min|m|h|d)$',
  description: 'a duration such as 500ms, 20s or 1.5m',
})

const podNumber = Type.Integer({ minimum: 0, description: 'the number of a pod, from 0' })

const podList = Type.Array(podNumber, {
  minItems: 1,
  uniqueItems: true,
  description: 'a list of pod numbers such as [0, 1]',
})

const chance = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'a chance between 0 and 1 (0.05 is 5 %)',
})

const strict = { additionalProperties: false } as const

function oneOf(names: readonly string[]) {
  return Type.Unsafe<string>({ enum: names, description: `one of ${names.join(', ')}` })
}

const rule = Type.Object(
  {
    limit: Type.String({ description: 'COUNT/DURATION, such as 1000/1s or 100/m' }),
    burst: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'a number of requests above 0 (only a token bucket uses it)',
      }),
    ),
    algorithm: Type.Optional(
      oneOf(['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window', 'sliding-log']),
    ),
    onPartition: Type.Optional(oneOf(['open', 'share', 'closed'])),
    key: Type.Optional(
      Type.Array(Type.String({ description: 'a key source: global, ip or header:x-client' }), {
        minItems: 1,
        description: 'a list of key sources such as [global]',
      }),
    ),
    queue: Type.Optional(
      Type.Number({ minimum: 0, description: 'how many requests may wait, at least 0' }),
    ),
    maxWait: Type.Optional(duration),
  },
  { ...strict, description: 'a rule such as { limit: 1000/1s }' },
)

const trafficEntry = Type.Object(
  {
    pods: Type.Union([Type.Literal('all'), podList], {
      description: 'all or a list of pod numbers such as [0, 1]',
    }),
    rate: Type.Number({
      exclusiveMinimum: 0,
      maximum: 1e6,
      description: 'requests per second of each pod, above 0 and at most 1000000',
    }),
    from: Type.Optional(duration),
    to: Type.Optional(duration),
    period: Type.Optional(duration),
    on: Type.Optional(duration),
    keys: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'a number of clients, 1 to 1000000',
      }),
    ),
  },
  { ...strict, description: 'an entry such as { pods: all, rate: 200 }' },
)

const network = Type.Object(
  {
    latency: Type.Optional(duration),
    jitter: Type.Optional(duration),
    loss: Type.Optional(chance),
    duplicate: Type.Optional(chance),
    reorder: Type.Optional(chance),
    mtu: Type.Optional(
      Type.Integer({ minimum: 508, maximum: 65507, description: 'bytes, 508 to 65507' }),
    ),
  },
  { ...strict, description: 'a mapping such as { latency: 2ms, jitter: 1ms }' },
)

const event = Type.Object(
  {
    at: duration,
    until: Type.Optional(duration),
    partition: Type.Optional(
      Type.Array(podList, {
        minItems: 2,
        description: 'two or more groups of pods, such as [[0, 1, 2], [3, 4]]',
      }),
    ),
    block: Type.Optional(
      Type.Object(
        { from: podList, to: podList },
        { ...strict, description: 'a direction such as { from: [0], to: [1] }' },
      ),
    ),
    pause: Type.Optional(podList),
    join: Type.Optional(
      Type.Integer({ minimum: 1, maximum: podsMax, description: 'how many pods join, from 1' }),
    ),
    kill: Type.Optional(podList),
    leave: Type.Optional(podList),
    restart: Type.Optional(podList),
  },
  { ...strict, description: 'an event such as { at: 5s, kill: [0] }' },
)

export const scenarioSchema = Type.Object(
  {
    pods: Type.Integer({
      minimum: 1,
      maximum: podsMax,
      description: `a number of pods, 1 to ${podsMax}`,
    }),
    duration,
    rule,
    traffic: Type.Array(trafficEntry, {
      minItems: 1,
      description: 'a list such as [{ pods: all, rate: 200 }]',
    }),
    network: Type.Optional(network),
    events: Type.Optional(
      Type.Array(event, { description: 'a list such as [{ at: 5s, kill: [0] }]' }),
    ),
  },
  { ...strict, description: 'a mapping with pods, duration, rule and traffic' },
)

/** What a file holds once it fits the schema: the same names, durations still text. */
export type RawScenario = Static<typeof scenarioSchema>
export type RawTraffic = Static<typeof trafficEntry>
export type RawEvent = Static<typeof event>
