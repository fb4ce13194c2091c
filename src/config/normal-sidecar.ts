/** From a valid sidecar file to `SidecarConfig`, with the defaults of product.md §2 filled in. */
import type { Address } from '../vocabulary.js'
import { readAddress, readDuration, readListen, readSecretRef, readUpstream } from './grammar.js'
import { known } from './normal-rules.js'
import type { JwtConfig, ListenAddress, SecretRef, SidecarConfig } from './sidecar-config.js'
import { gossipPort, type SidecarText, sidecarDefaults } from './sidecar-schema.js'

/** `hostname` names the node when nothing else does. */
export function normalSidecar(text: SidecarText, hostname: string): SidecarConfig {
  const { admin, counters, discovery, rulesFrom } = text
  return {
    node: { name: text.node?.name ?? hostname },
    proxy: normalProxy(text.proxy),
    api: { listen: listen(text.api?.listen ?? sidecarDefaults.apiListen) },
    telemetry: { listen: listen(text.telemetry?.listen ?? sidecarDefaults.telemetryListen) },
    admin: {
      listen: listen(admin?.listen ?? sidecarDefaults.adminListen),
      revealKeys: admin?.revealKeys ?? false,
    },
    gossip: normalGossip(text.gossip),
    counters: {
      keysMax: counters?.keys ?? sidecarDefaults.counterKeys,
      secret: counters?.secret === undefined ? null : secret(counters.secret),
      checkpointPath: counters?.checkpoint ?? null,
    },
    discovery: {
      static: (discovery?.static ?? []).map(address),
      dns: discovery?.dns === undefined ? null : known(readAddress(discovery.dns, gossipPort)),
      kubernetes:
        discovery?.kubernetes === undefined
          ? null
          : {
              service: discovery.kubernetes.service,
              namespace: discovery.kubernetes.namespace ?? null,
            },
    },
    headers: normalHeaders(text.headers),
    identity: { jwt: text.identity?.jwt === undefined ? null : normalJwt(text.identity.jwt) },
    onStartupError: text.onStartupError ?? 'open',
    drainTimeoutMs: known(readDuration(text.drainTimeout ?? sidecarDefaults.drainTimeout)),
    log: { level: text.log?.level ?? sidecarDefaults.logLevel },
    rulesFrom:
      rulesFrom === undefined
        ? null
        : { configMap: rulesFrom.configMap, namespace: rulesFrom.namespace ?? null },
  }
}

function normalProxy(text: SidecarText['proxy']): SidecarConfig['proxy'] {
  if (text === undefined) return null
  return {
    listen: address(text.listen ?? sidecarDefaults.proxyListen),
    upstream: known(readUpstream(text.upstream)),
    trustedProxies: text.trustedProxies ?? [],
  }
}

function normalGossip(text: SidecarText['gossip']): SidecarConfig['gossip'] {
  return {
    bind: address(text?.bind ?? sidecarDefaults.gossipBind),
    advertise: text?.advertise === undefined ? null : address(text.advertise),
    label: text?.label ?? '',
    encryptionKeys: (text?.encryptionKeys ?? []).map(secret),
    allow: text?.allow ?? null,
  }
}

function normalHeaders(text: SidecarText['headers']): SidecarConfig['headers'] {
  return {
    ietf: text?.ietf === undefined ? 'draft-11' : text.ietf || 'off',
    legacy: text?.legacy === undefined ? 'x-ratelimit' : text.legacy || 'off',
    reset: text?.reset === undefined ? 'epoch' : text.reset || 'off',
  }
}

type JwtText = NonNullable<NonNullable<SidecarText['identity']>['jwt']>

function normalJwt(text: JwtText): JwtConfig {
  return {
    jwks: text.jwks === undefined ? null : jwksSource(text.jwks),
    secret: text.secret === undefined ? null : secret(text.secret),
    issuer: text.issuer ?? null,
    audience: text.audience ?? null,
  }
}

function jwksSource(text: string): NonNullable<JwtConfig['jwks']> {
  const reference = secret(text)
  return reference.kind === 'file' ? reference : { kind: 'url', url: text }
}

function listen(text: string): ListenAddress {
  return known(readListen(text))
}

function address(text: string): Address {
  return known(readAddress(text))
}

function secret(text: string): SecretRef {
  return known(readSecretRef(text))
}
