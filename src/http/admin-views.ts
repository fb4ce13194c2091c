/**
 * What the admin listener shows of the core's views, as JSON; who may see a key is decided here.
 */
import type { Explanation, KeyView, MemberView, OriginPart } from '../core-types.js'
import type { Address, OriginId } from '../vocabulary.js'

export interface KeyJson {
  readonly rule: string
  readonly hash: string
  /** Only with `revealKeys`. */
  readonly key?: readonly string[]
  readonly limit: number
  readonly capacity: number
  readonly windowMs: number
  readonly remaining: number
  readonly resetAfterMs: number
  readonly scarce: boolean
  readonly hits: number
  readonly denied: number
  /** This pod's part; null when it has none. */
  readonly own: OriginPart | null
  /** The other pods' parts, each with its age. */
  readonly peers: readonly OriginPart[]
}

export function keyJson(view: KeyView, revealKeys: boolean, own: OriginId | null): KeyJson {
  const { key, parts, ...plain } = view
  const shown = parts.map(part => ({ ...part, ageMs: Math.round(part.ageMs) }))
  return {
    ...plain,
    resetAfterMs: Math.ceil(view.resetAfterMs),
    ...(revealKeys && key ? { key } : {}),
    own: shown.find(part => part.origin === own) ?? null,
    peers: shown.filter(part => part.origin !== own),
  }
}

export function ownOrigin(members: readonly MemberView[]): OriginId | null {
  return members.find(member => member.self)?.meta?.origin ?? null
}

export function memberJson(member: MemberView): object {
  return { ...member, address: addressText(member.address) }
}

export function explanationJson(
  explanation: Explanation,
  revealKeys: boolean,
  own: OriginId | null,
): object {
  return {
    ...explanation,
    rules: explanation.rules.map(rule => ({
      ...rule,
      key: rule.key && keyJson(rule.key, revealKeys, own),
    })),
  }
}

function addressText({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
