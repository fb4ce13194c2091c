/**
 * What a recipe is about, on loopback: an application, a real sidecar process, and another program as
 * the proxy, run with the very file of `docs/recipes`, its three ports apart.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SidecarProcess } from '../../src/cli/demo/sidecar-process.js'
import { ensureBuilt, Fleet, freePort } from '../helpers/sidecars.js'
import { until } from '../helpers/until.js'

const recipes = fileURLToPath(new URL('../../docs/recipes', import.meta.url))

/** Limits of a few units that do not refill while a slow test runs. */
export const recipeRules = `version: 1
deny: [{ path: /blocked }]
rules:
  - { name: api, match: { path: "/api/**" }, key: [ip], limit: 3/1h }
  - { name: posts, match: { path: /posts, method: POST }, key: [ip], limit: 1/1h }
  - { name: hosted, match: { path: "/hosted/**" }, key: [host], limit: 2/1h }
  - { name: keyed, match: { path: "/keyed/**" }, key: ["header:x-api-key"], limit: 1/1h }
  - { name: needy, match: { path: /needy }, key: ["header:x-api-key"], missing: deny, limit: 1/1h }
  - { name: own, match: { path: /own-list }, key: [ip], limit: 100/1h }
`

export interface Program {
  readonly command: string
  readonly args: readonly string[]
}

export interface RecipeOptions {
  /** The recipe's file in `docs/recipes`. */
  readonly file: string
  /** Files beside it that it loads. */
  readonly beside?: readonly string[]
  /** Paths in it that only root or only one process can have; exact text to text. */
  readonly replace?: (directory: string) => Readonly<Record<string, string>>
  /** How the program is run in the foreground, in `directory`. */
  readonly program: (file: string, directory: string) => Program
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Port of this end: equal ports, one connection. */
  readonly localPort: number
}

export interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Source address, 127.0.0.0/8: another address, another client. */
  readonly from?: string
  readonly body?: string
}

export class RecipeWorld {
  readonly directory = mkdtempSync(join(tmpdir(), 'grapevine-recipe-'))
  readonly agents = new Map<string, Agent>()
  /** Requests that the application saw, `METHOD URL`. */
  readonly seen: { readonly line: string; readonly headers: IncomingHttpHeaders }[] = []
  readonly #server = createServer((message, response) => {
    this.seen.push({ line: `${message.method} ${message.url}`, headers: message.headers })
    if (message.url === '/api/own-403') response.statusCode = 403
    if (message.url === '/own-list') response.setHeader('RateLimit', '"app";r=1;t=9')
    response.setHeader('X-App', 'yes')
    let body = ''
    message.setEncoding('utf8').on('data', chunk => (body += chunk))
    message.on('end', () => response.end(`app: ${message.method} ${message.url} ${body}\n`))
  })
  #fleet: Fleet | null = null
  #sidecar: SidecarProcess | null = null
  #proxy: ChildProcess | null = null
  #output = ''
  #port = 0

  static async start(options: RecipeOptions): Promise<RecipeWorld> {
    const world = new RecipeWorld()
    try {
      await world.#start(options)
    } catch (error) {
      await world.stop()
      throw error
    }
    return world
  }

  async #start(options: RecipeOptions): Promise<void> {
    ensureBuilt()
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    this.#fleet = await Fleet.create(recipeRules)
    this.#sidecar = await this.#fleet.start({ name: 'beside-the-proxy' })
    this.#port = await freePort()
    const places: Record<string, string> = {
      ':8080': `:${this.#port}`,
      '127.0.0.1:3000': `127.0.0.1:${(this.#server.address() as AddressInfo).port}`,
      '127.0.0.1:7981': this.#sidecar.addresses.api ?? '',
      ...options.replace?.(this.directory),
    }
    const file = join(this.directory, options.file)
    writeFileSync(file, filledIn(join(recipes, options.file), places))
    for (const name of options.beside ?? [])
      copyFileSync(join(recipes, name), join(this.directory, name))
    const { command, args } = options.program(file, this.directory)
    const child = spawn(command, args, { cwd: this.directory, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#proxy = child
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', chunk => (this.#output += chunk))
    child.on('error', error => (this.#output += error.message))
    const ended = () => child.exitCode !== null || child.signalCode !== null
    await until('the proxy listens', async () => ended() || (await accepts(this.#port)), 30_000)
    if (ended()) throw new Error(`${command} ended: ${this.#output}`)
  }

  /** What the proxy wrote, for the message of a failing test. */
  get output(): string {
    return this.#output
  }

  get sidecar(): SidecarProcess {
    if (this.#sidecar === null) throw new Error('not started')
    return this.#sidecar
  }

  /** One request through the proxy, on a kept-alive connection of its source address. */
  async ask(path: string, { method = 'GET', headers = {}, from, body }: Ask = {}): Promise<Answer> {
    const source = from ?? '127.0.0.1'
    const agent = this.agents.get(source) ?? new Agent({ keepAlive: true, maxSockets: 1 })
    this.agents.set(source, agent)
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.#port, localAddress: source, agent }
      const sent = request({ ...options, path, method, headers }, resolve)
      sent.on('error', reject)
      sent.end(body)
    })
    const localPort = message.socket.localPort ?? 0
    let text = ''
    for await (const chunk of message.setEncoding('utf8')) text += chunk
    return { status: message.statusCode ?? 0, headers: message.headers, body: text, localPort }
  }

  async stop(): Promise<void> {
    for (const agent of this.agents.values()) agent.destroy()
    const proxy = this.#proxy
    if (proxy !== null && proxy.exitCode === null && proxy.signalCode === null) {
      const gone = new Promise(resolve => proxy.once('exit', resolve))
      proxy.kill('SIGTERM')
      const killer = setTimeout(() => proxy.kill('SIGKILL'), 5_000)
      await gone
      clearTimeout(killer)
    }
    await this.#fleet?.stop()
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** The file with every place exchanged; a place that is not in it is a mistake of the test's. */
function filledIn(file: string, places: Readonly<Record<string, string>>): string {
  let text = readFileSync(file, 'utf8')
  for (const [from, to] of Object.entries(places)) {
    if (!text.includes(from)) throw new Error(`${file} does not say ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => socket.destroy(resolve(true) as undefined))
    socket.once('error', () => resolve(false))
  })
}
