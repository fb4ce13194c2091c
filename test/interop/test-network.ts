/**
 * Hosts on one machine: network namespaces of the test's own, on two bridges joined by one cable that
 * can be pulled. Needs root and iproute2; nothing outside the namespaces is touched.
 */
import { execFileSync } from 'node:child_process'

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Whether this process may make namespaces and bridges here. */
export function canMakeNetworks(): boolean {
  const probe = `gvprobe${process.pid}`
  try {
    ip('netns', 'add', probe)
  } catch {
    return false
  }
  try {
    ip('-n', probe, 'link', 'add', 'bridge', 'type', 'bridge')
    return true
  } catch {
    return false
  } finally {
    ip('netns', 'del', probe)
  }
}

export interface Host {
  readonly namespace: string
  readonly address: string
}

export class TestNetwork {
  readonly left: readonly Host[]
  readonly right: readonly Host[]
  readonly #hub: string
  readonly #spaces: string[] = []

  /** `perSide` hosts left and right of the cable. */
  constructor(perSide: number) {
    const id = `gv${process.pid}`
    this.#hub = `${id}hub`
    this.#space(this.#hub)
    for (const side of ['left', 'right']) this.#inHub('link', 'add', side, 'type', 'bridge')
    for (const side of ['left', 'right']) this.#inHub('link', 'set', side, 'up')
    this.#inHub('link', 'add', 'cable-l', 'type', 'veth', 'peer', 'name', 'cable-r')
    this.#inHub('link', 'set', 'cable-l', 'master', 'left')
    this.#inHub('link', 'set', 'cable-r', 'master', 'right')
    this.join()
    const side = (name: string, base: number) =>
      Array.from({ length: perSide }, (_, index) =>
        this.#host(`${id}${name}${index}`, name, `10.99.0.${base + index}`, `${name}-${index}`),
      )
    this.left = side('left', 10)
    this.right = side('right', 20)
  }

  #space(name: string): void {
    ip('netns', 'add', name)
    this.#spaces.push(name)
  }

  #inHub(...words: string[]): void {
    ip('-n', this.#hub, ...words)
  }

  #host(namespace: string, bridge: string, address: string, port: string): Host {
    this.#space(namespace)
    this.#inHub('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
    this.#inHub('link', 'set', port, 'master', bridge, 'up')
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
    ip('-n', namespace, 'link', 'set', 'eth0', 'up')
    ip('-n', namespace, 'link', 'set', 'lo', 'up')
    return { namespace, address }
  }

  /** Pulls the cable between left and right. */
  split(): void {
    this.#inHub('link', 'set', 'cable-l', 'down')
  }

  join(): void {
    this.#inHub('link', 'set', 'cable-l', 'up')
    this.#inHub('link', 'set', 'cable-r', 'up')
  }

  close(): void {
    for (const space of this.#spaces.splice(0)) ip('netns', 'del', space)
  }
}
