/**
 * The sidecar's configuration after validation: defaults filled in (product.md §2), durations in
 * milliseconds, addresses parsed. Secrets stay references; `secrets.ts` reads them when needed.
 */
import type { Address } from '../vocabulary.js'

/** Where a server listens: TCP (port 0: any free one) or a unix socket. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** What the proxy forwards to. */
export interface Upstream {
  readonly protocol: 'http' | 'h2c'
  readonly address: ListenAddress
  /** As configured, for messages. */
  readonly text: string
}

/** Secret text in the configuration itself, or a file that is read again when it changes. */
export type SecretRef =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly path: string }

/** Public keys by URL or file, or one shared secret. Exactly one of `jwks` and `secret` is set. */
export interface JwtConfig {
  readonly jwks:
    | { readonly kind: 'url'; readonly url: string }
    | { readonly kind: 'file'; readonly path: string }
    | null
  readonly secret: SecretRef | null
  readonly issuer: string | null
  readonly audience: string | null
}

export interface SidecarConfig {
  readonly node: { readonly name: string }
  /** Null: no proxy. */
  readonly proxy: {
    readonly listen: Address
    readonly upstream: Upstream
    /** Networks in CIDR form whose forwarding headers are believed; loopback only if listed. */
    readonly trustedProxies: readonly string[]
  } | null
  readonly api: { readonly listen: ListenAddress }
  readonly telemetry: { readonly listen: ListenAddress }
  readonly admin: { readonly listen: ListenAddress; readonly revealKeys: boolean }
  readonly gossip: {
    readonly bind: Address
    /** Null: what `bind` says, or the first address of the machine when that is a wildcard. */
    readonly advertise: Address | null
    /** Keeps clusters apart; '' is a label like any other. */
    readonly label: string
    /** The first encrypts, all decrypt; empty: gossip is plain. */
    readonly encryptionKeys: readonly SecretRef[]
    /** Networks in CIDR form whose packets are read; null: any. */
    readonly allow: readonly string[] | null
  }
  readonly counters: {
    /** Size of the key table. */
    readonly keysMax: number
    /** Null: derived from the label. */
    readonly secret: SecretRef | null
    /** File that totals are saved to; null: none. */
    readonly checkpointPath: string | null
  }
  readonly discovery: {
    readonly static: readonly Address[]
    /** A name resolved again and again; the port defaults to gossip's own. */
    readonly dns: Address | null
    readonly kubernetes: {
      readonly service: string
      /** Null: the pod's own. */
      readonly namespace: string | null
    } | null
  }
  readonly headers: {
    readonly ietf: 'draft-11' | 'off'
    readonly legacy: 'x-ratelimit' | 'github' | 'off'
    readonly reset: 'epoch' | 'delta' | 'off'
  }
  readonly identity: { readonly jwt: JwtConfig | null }
  readonly onStartupError: 'open' | 'fail'
  readonly drainTimeoutMs: number
  readonly log: { readonly level: LogLevel }
  /** A ConfigMap whose entries are the rules, watched through the API; null: files or inline. */
  readonly rulesFrom: {
    readonly configMap: string
    readonly namespace: string | null
  } | null
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]
