/** What a schema cannot say of the sidecar file. Only for files valid by the schema. */
import type { Address } from '../vocabulary.js'
import type { Reporter } from './locator.js'
import type { ListenAddress, SidecarConfig } from './sidecar-config.js'
import type { SidecarText } from './sidecar-schema.js'

export function checkSidecar(text: SidecarText, config: SidecarConfig, report: Reporter): void {
  checkJwt(text, report)
  checkListeners(text, config, report)
  const { advertise } = config.gossip
  if (advertise !== null && isWildcard(advertise.host)) {
    const message = 'peers cannot reach a wildcard address; give the address of this pod'
    report.error(['gossip', 'advertise'], 'advertise-wildcard', message)
  }
}

function checkJwt(text: SidecarText, report: Reporter): void {
  const jwt = text.identity?.jwt
  if (jwt === undefined) return
  const path = ['identity', 'jwt']
  if (jwt.jwks === undefined && jwt.secret === undefined) {
    report.error(path, 'jwt-keys', 'one of jwks and secret is needed')
  } else if (jwt.jwks !== undefined && jwt.secret !== undefined) {
    const message = 'only one of jwks and secret may stand: algorithms are pinned by which one'
    report.errorAtKey([...path, 'secret'], 'jwt-keys', message)
  }
}

/** Two TCP listeners with one port would stop the process at start, where nobody looks. */
function checkListeners(text: SidecarText, config: SidecarConfig, report: Reporter): void {
  const tcp = (address: Address): ListenAddress => ({ kind: 'tcp', ...address })
  const { proxy, gossip } = config
  const listeners: readonly (readonly [string, string, ListenAddress])[] = [
    ...(proxy === null ? [] : [['proxy', 'listen', tcp(proxy.listen)] as const]),
    ['api', 'listen', config.api.listen],
    ['telemetry', 'listen', config.telemetry.listen],
    ['admin', 'listen', config.admin.listen],
    ['gossip', 'bind', tcp(gossip.bind)],
  ]
  listeners.forEach(([section, key, address], index) => {
    const other = listeners.slice(0, index).find(([, , earlier]) => clash(earlier, address))
    if (other === undefined) return
    // Reported where it was written: the other one may be a default.
    const written = Object.hasOwn(text, section)
    const [path, rival] = written ? [[section, key], other[0]] : [[other[0], other[1]], section]
    report.error(path, 'same-address', `${rival} listens on the same address`)
  })
}

function clash(a: ListenAddress, b: ListenAddress): boolean {
  if (a.kind === 'unix' || b.kind === 'unix') {
    return a.kind === b.kind && 'path' in a && 'path' in b && a.path === b.path
  }
  if (a.port !== b.port || a.port === 0) return false
  return a.host === b.host || isWildcard(a.host) || isWildcard(b.host)
}

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::' || host === ''
}
