/**
 * A Kubernetes API of the tests' own: etcd and kube-apiserver with RBAC, on loopback of a network
 * namespace that nothing else is in. It has no kubelet and no controllers: pods are sidecar processes
 * and the tests write what controllers would. Needs root and iproute2.
 *
 * The namespace also lends the pods their addresses, since the API takes no loopback address for an
 * endpoint. Tests reach what runs inside by unix sockets and by programs started inside.
 */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../helpers/until.js'
import type { PeerPrograms } from '../interop/peers-setup.js'
import { canMakeNetworks } from '../interop/test-network.js'

const run = promisify(execFile)

const apiPort = 6443
export const apiUrl = `https://127.0.0.1:${apiPort}`
const adminToken = 'token-of-the-test-admin'
/** What pods may have: 10.98.0.1 up to this many. */
export const podAddressesMax = 40

/** A start with an empty store on two busy cores. */
const startTimeoutMs = 120_000

/** Why there can be no cluster here; null: there can. */
export function whyNoCluster(peers: PeerPrograms): string | null {
  if (peers.etcd === null) return 'etcd is not to be had'
  if (peers.kubernetes === null) return 'kube-apiserver is not to be had'
  return canMakeNetworks() ? null : 'network namespaces cannot be made here'
}

export function podAddress(index: number): string {
  return `10.98.0.${index}`
}

interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<void>
}

export class TestCluster {
  readonly directory: string
  readonly space: string
  readonly #peers: PeerPrograms
  #etcd: Running | null = null
  #api: Running | null = null

  private constructor(peers: PeerPrograms) {
    this.#peers = peers
    this.directory = mkdtempSync(join(tmpdir(), 'grapevine-cluster-'))
    this.space = `gvk${process.pid}`
  }

  /** An empty cluster, ready to be asked. */
  static async start(peers: PeerPrograms): Promise<TestCluster> {
    const cluster = new TestCluster(peers)
    try {
      cluster.#makeNetwork()
      cluster.#writeFiles()
      cluster.#etcd = cluster.#spawn('etcd', peers.etcd!, [
        `--data-dir=${join(cluster.directory, 'etcd')}`,
        '--unsafe-no-fsync',
      ])
      await cluster.startApi()
    } catch (error) {
      await cluster.stop()
      throw error
    }
    return cluster
  }

  get adminConfig(): string {
    return join(this.directory, 'admin.conf')
  }

  /** The authorities that the API server's certificate is of. */
  get authorityFile(): string {
    return join(this.directory, 'certificates', 'apiserver.crt')
  }

  async startApi(): Promise<void> {
    this.#api = this.#spawn('kube-apiserver', join(this.#peers.kubernetes!, 'kube-apiserver'), [
      '--etcd-servers=http://127.0.0.1:2379',
      '--bind-address=127.0.0.1',
      `--secure-port=${apiPort}`,
      `--advertise-address=${podAddress(podAddressesMax)}`,
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.96.0.0/16',
      '--authorization-mode=RBAC',
      `--token-auth-file=${join(this.directory, 'tokens.csv')}`,
      `--cert-dir=${join(this.directory, 'certificates')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${join(this.directory, 'accounts.pub')}`,
      `--service-account-signing-key-file=${join(this.directory, 'accounts.key')}`,
    ])
    await until(
      'the API server is ready',
      async () => {
        if (this.#api?.child.exitCode !== null) throw new Error('kube-apiserver ended')
        return (await this.#kubectl(['get', '--raw', '/readyz'])) === 'ok'
      },
      startTimeoutMs,
      250,
    )
  }

  /** As a node that loses power: connections break, nothing is said. */
  async killApi(): Promise<void> {
    this.#api?.child.kill('SIGKILL')
    await this.#api?.ended
    this.#api = null
  }

  /** kubectl as the administrator; what it prints. */
  async kubectl(words: readonly string[], input = ''): Promise<string> {
    return await this.inside(
      join(this.#peers.kubernetes!, 'kubectl'),
      [...this.#asAdmin(), ...words],
      {
        input,
      },
    )
  }

  /** Creates or changes objects, given as plain values. */
  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects }
    await this.kubectl(['apply', '-f', '-'], JSON.stringify(list))
  }

  /** A namespace with the account that every one has, which no controller makes here. */
  async makeNamespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
    await this.apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default', namespace: name },
    })
  }

  /** A directory as the kubelet mounts it into a pod: token, ca.crt, namespace. */
  async serviceAccountFiles(namespace: string, account: string): Promise<string> {
    const folder = mkdtempSync(join(this.directory, `${namespace}-${account}-`))
    const token = await this.kubectl(['create', 'token', account, '-n', namespace])
    writeFileSync(join(folder, 'token'), token.trim())
    writeFileSync(join(folder, 'namespace'), namespace)
    execFileSync('cp', [this.authorityFile, join(folder, 'ca.crt')])
    return folder
  }

  /** The words that run `command` inside, in a pod's place: its account's files where they belong. */
  podCommand(accountFiles: string, command: readonly string[]): string[] {
    const mount = '/run/secrets/kubernetes.io/serviceaccount'
    // Each `ip netns exec` has mounts of its own: these are seen by the pod alone.
    const script = `mount -t tmpfs tmpfs /run && mkdir -p ${mount} && mount --bind "$0" ${mount} && exec "$@"`
    return ['netns', 'exec', this.space, 'sh', '-c', script, accountFiles, ...command]
  }

  /** What a pod's environment says of the API. */
  get podEnvironment(): Readonly<Record<string, string | undefined>> {
    return {
      PATH: process.env.PATH,
      HOME: this.directory,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(apiPort),
    }
  }

  /** Runs a program inside to its end; rejects when it fails, with what it said. */
  async inside(
    program: string,
    words: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<string> {
    const running = run('ip', ['netns', 'exec', this.space, program, ...words], {
      maxBuffer: 1 << 26,
      env: { ...process.env, HOME: this.directory, KUBECONFIG: this.adminConfig, ...options.env },
    })
    running.child.stdin?.end(options.input ?? '')
    return (await running).stdout
  }

  async stop(): Promise<void> {
    for (const running of [this.#api, this.#etcd]) {
      running?.child.kill('SIGKILL')
      await running?.ended
    }
    spawnSync('ip', ['netns', 'del', this.space], { stdio: 'ignore' })
    rmSync(this.directory, { recursive: true, force: true })
  }

  async #kubectl(words: readonly string[]): Promise<string | null> {
    return await this.kubectl(words).catch(() => null)
  }

  #asAdmin(): string[] {
    return ['--kubeconfig', this.adminConfig, '--cache-dir', join(this.directory, 'kubectl-cache')]
  }

  #makeNetwork(): void {
    const ip = (...words: string[]) =>
      execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] })
    ip('netns', 'add', this.space)
    ip('-n', this.space, 'link', 'set', 'lo', 'up')
    for (let index = 1; index <= podAddressesMax; index += 1)
      ip('-n', this.space, 'addr', 'add', `${podAddress(index)}/32`, 'dev', 'lo')
  }

  #writeFiles(): void {
    const keys = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    })
    const write = (name: string, text: string) => writeFileSync(join(this.directory, name), text)
    write('accounts.key', keys.privateKey)
    write('accounts.pub', keys.publicKey)
    write('tokens.csv', `${adminToken},admin,admin,"system:masters"\n`)
    write(
      'admin.conf',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'test',
        clusters: [
          {
            name: 'test',
            cluster: { server: apiUrl, 'certificate-authority': this.authorityFile },
          },
        ],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
        users: [{ name: 'admin', user: { token: adminToken } }],
      }),
    )
    mkdirSync(join(this.directory, 'logs'))
  }

  /** A program inside, its output in a file of the cluster's directory. */
  #spawn(name: string, program: string, words: readonly string[]): Running {
    if (!existsSync(program)) throw new Error(`${program} is gone`)
    // A test run that is killed takes its cluster with it.
    const bound = ['setpriv', '--pdeathsig', 'KILL', program, ...words]
    const child = spawn('ip', ['netns', 'exec', this.space, ...bound], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: this.directory,
    })
    const log = createWriteStream(join(this.directory, 'logs', `${name}.log`), { flags: 'a' })
    child.stdout?.pipe(log, { end: false })
    child.stderr?.pipe(log, { end: false })
    const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
    return { child, ended }
  }
}
