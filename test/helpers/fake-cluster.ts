/** The API server as the injector sees it: one Secret, one webhook configuration, some Services. */
import type { Cluster, StoredSecret } from '../../src/injector/cluster.js'
import type { ServicePorts } from '../../src/injector/pod-template.js'

export class FakeCluster implements Cluster {
  secret: Readonly<Record<string, string>> | null = {}
  bundles: readonly string[] = ['', '']
  services_: readonly ServicePorts[] = []
  down = false
  writes = 0
  #revision = 1

  async readSecret(): Promise<StoredSecret | null> {
    this.#reach()
    if (this.secret === null) return null
    return { data: this.secret, revision: String(this.#revision) }
  }

  async writeSecret(data: Readonly<Record<string, string>>, revision: string): Promise<boolean> {
    this.#reach()
    if (revision !== String(this.#revision)) return false
    this.secret = { ...this.secret, ...data }
    this.writes++
    this.#revision++
    return true
  }

  async readBundles(): Promise<readonly string[]> {
    this.#reach()
    return this.bundles
  }

  async writeBundles(authorities: string): Promise<void> {
    this.#reach()
    this.bundles = this.bundles.map(() => authorities)
  }

  async services(): Promise<readonly ServicePorts[]> {
    this.#reach()
    return this.services_
  }

  #reach(): void {
    if (this.down) throw new Error('the API is down')
  }
}
