/** `gossip.allow`: whose packets and streams are read at all. */
import { BlockList, isIP } from 'node:net'

/** Verdicts remembered, so that a packet costs a map look-up; forgotten together when full. */
const rememberedMax = 4096

export class AllowList {
  readonly #networks: BlockList | null
  readonly #remembered = new Map<string, boolean>()

  /** `networks` in CIDR form or single addresses, validated before; empty admits everyone. */
  constructor(networks: readonly string[]) {
    this.#networks = networks.length === 0 ? null : toBlockList(networks)
  }

  admits(host: string): boolean {
    if (this.#networks === null) return true
    const known = this.#remembered.get(host)
    if (known !== undefined) return known
    const kind = isIP(host)
    const admitted = kind !== 0 && this.#networks.check(host, kind === 4 ? 'ipv4' : 'ipv6')
    if (this.#remembered.size >= rememberedMax) this.#remembered.clear()
    this.#remembered.set(host, admitted)
    return admitted
  }
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [host = '', bits] = network.split('/')
    const family = isIP(host) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(host, family)
    else list.addSubnet(host, Number(bits), family)
  }
  return list
}
