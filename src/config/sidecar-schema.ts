/** The sidecar file: single source of its validator, its JSON Schema and its type. */
import { type Static, type TSchemaOptions, Type } from 'typebox'
import { rulesKeys, versionKey } from './rules-schema.js'
import { GrammarText, Strict } from './schema-terms.js'
import { logLevels } from './sidecar-config.js'

/** product.md §2 and §3. */
export const sidecarDefaults = {
  proxyListen: '0.0.0.0:7980',
  apiListen: '127.0.0.1:7981',
  grpcListen: '127.0.0.1:7982',
  gossipBind: '0.0.0.0:7946',
  telemetryListen: '0.0.0.0:7990',
  adminListen: '127.0.0.1:7991',
  counterKeys: 100_000,
  drainTimeout: '3s',
  logLevel: 'info',
} as const

/** Port of a discovered peer that names none. */
export const gossipPort = 7946

// An entry takes a few hundred bytes with its origins: ten million is about what a pod could hold.
const counterKeysMax = 10_000_000

const Listen = (standard: string) =>
  Type.Optional(GrammarText('listen', { default: standard, description: 'HOST:PORT.' }))

const Networks = (description: string) =>
  Type.Optional(Type.Array(GrammarText('cidr'), { maxItems: 1000, description }))

/**
 * `off` is the word, but a writer of YAML 1.1 (Helm among them) turns it into `false` on the way.
 */
const Switch = <T extends string>(words: readonly T[], options: TSchemaOptions) =>
  Type.Optional(
    Type.Union([Type.Enum([...words, 'off']), Type.Literal(false)], {
      ...options,
      'x-expected': [...words, 'off'].join(', '),
    }),
  )

const ProxySection = Strict({
  // Behind a unix socket every client would be one address, and none could be told from the other.
  listen: Type.Optional(
    GrammarText('address', { default: sidecarDefaults.proxyListen, description: 'HOST:PORT.' }),
  ),
  upstream: GrammarText('upstream', {
    description: 'http://HOST:PORT, h2c://HOST:PORT or unix:/path.',
  }),
  trustedProxies: Networks('Whose X-Forwarded-For is believed; absent: nobody.'),
})

const Gossip = Strict({
  bind: Type.Optional(GrammarText('address', { default: sidecarDefaults.gossipBind })),
  advertise: Type.Optional(
    GrammarText('address', { description: 'Address that peers are told; absent: from bind.' }),
  ),
  label: Type.Optional(
    Type.String({
      maxLength: 255,
      pattern: '^[\\x20-\\x7e]*$',
      default: '',
      description: 'Keeps clusters apart.',
      'x-expected': 'printable ASCII, at most 255 characters',
    }),
  ),
  encryptionKeys: Type.Optional(
    Type.Array(GrammarText('gossipKey'), {
      maxItems: 16,
      description: 'The first encrypts, all decrypt; base64 or file:PATH, read again on change.',
    }),
  ),
  allow: Networks('Whose packets are read; absent: anybody.'),
})

const Counters = Strict({
  keys: Type.Optional(
    Type.Integer({
      minimum: 1000,
      maximum: counterKeysMax,
      default: sidecarDefaults.counterKeys,
      description: 'Size of the key table.',
    }),
  ),
  secret: Type.Optional(
    GrammarText('secret', {
      minLength: 16,
      description: 'Keys the hashes of counters, the same in all pods; absent: from the label.',
      'x-expected': 'at least 16 characters, or file:PATH',
    }),
  ),
  checkpoint: Type.Optional(
    Type.String({ minLength: 1, description: 'File that totals are saved to.' }),
  ),
})

const Discovery = Strict({
  static: Type.Optional(Type.Array(GrammarText('address'), { maxItems: 1000 })),
  dns: Type.Optional(
    GrammarText('dnsName', { description: 'Headless Service, resolved every 30 s.' }),
  ),
  kubernetes: Type.Optional(
    Strict({
      service: Type.String({ minLength: 1, maxLength: 253 }),
      namespace: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
    }),
  ),
})

const Jwt = Strict({
  jwks: Type.Optional(GrammarText('jwks', { description: 'URL or file:PATH; asymmetric only.' })),
  secret: Type.Optional(GrammarText('secret', { minLength: 6, description: 'HS256 only.' })),
  issuer: Type.Optional(Type.String({ minLength: 1 })),
  audience: Type.Optional(Type.String({ minLength: 1 })),
})

export const SidecarFile = Strict(
  {
    ...versionKey,
    node: Type.Optional(
      Strict({
        name: Type.Optional(
          Type.String({
            pattern: '^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$',
            description: 'Absent: GRAPEVINE_NODE, then the hostname.',
            'x-expected': 'letters, digits, ".", "_" and "-", at most 253 characters',
          }),
        ),
      }),
    ),
    proxy: Type.Optional(ProxySection),
    api: Type.Optional(Strict({ listen: Listen(sidecarDefaults.apiListen) })),
    grpc: Type.Optional(Strict({ listen: Listen(sidecarDefaults.grpcListen) })),
    telemetry: Type.Optional(Strict({ listen: Listen(sidecarDefaults.telemetryListen) })),
    admin: Type.Optional(
      Strict({
        listen: Listen(sidecarDefaults.adminListen),
        revealKeys: Type.Optional(Type.Boolean({ default: false })),
      }),
    ),
    gossip: Type.Optional(Gossip),
    counters: Type.Optional(Counters),
    discovery: Type.Optional(Discovery),
    headers: Type.Optional(
      Strict({
        ietf: Switch(['draft-11'], { default: 'draft-11' }),
        legacy: Switch(['x-ratelimit', 'github'], { default: 'x-ratelimit' }),
        reset: Switch(['epoch', 'delta'], { default: 'epoch' }),
      }),
    ),
    identity: Type.Optional(Strict({ jwt: Type.Optional(Jwt) })),
    onStartupError: Type.Optional(Type.Enum(['open', 'fail'], { default: 'open' })),
    drainTimeout: Type.Optional(GrammarText('duration', { default: sidecarDefaults.drainTimeout })),
    log: Type.Optional(
      Strict({
        level: Type.Optional(Type.Enum([...logLevels], { default: sidecarDefaults.logLevel })),
      }),
    ),
    rulesFrom: Type.Optional(
      Strict({
        configMap: Type.String({ minLength: 1, maxLength: 253 }),
        namespace: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
      }),
    ),
    ...rulesKeys,
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://grapevine.dev/schema/sidecar-v1.schema.json',
    title: 'Grapevine sidecar',
  },
)

export type SidecarText = Static<typeof SidecarFile>
