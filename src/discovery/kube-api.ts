/**
 * The Kubernetes API as far as Grapevine asks it: one answer, or a stream of lines. Whom to ask and
 * as whom is client-node's to know (kubeconfig, in-cluster token, exec plugins); what is asked is
 * the callers'. Of client-node only its `config.js` is loaded, and that late: its generated classes
 * for every kind of object cost 70 MiB and most of a second, and a bundle that is told so drops
 * them.
 *
 * `Watch` of client-node is not used: until the first byte of an answer it can be neither given up
 * nor timed out, so an API server that accepts and stays silent would hold a socket for every
 * attempt.
 */
import type { IncomingMessage } from 'node:http'
import http from 'node:http'
import https from 'node:https'
import { LineSplitter } from './line-splitter.js'

/** Why the API gave no answer, or none that can be used; a closed set, for metrics. */
export const kubeFailures = [
  'config',
  'connect',
  'timeout',
  'unauthorized',
  'forbidden',
  'missing',
  'conflict',
  'expired',
  'throttled',
  'server',
  'malformed',
] as const
export type KubeFailure = (typeof kubeFailures)[number]

export class KubeError extends Error {
  readonly failure: KubeFailure
  /** What the API asked to be waited before the next try, in milliseconds; 0: nothing. */
  readonly retryAfterMs: number

  constructor(failure: KubeFailure, message: string, retryAfterMs = 0) {
    super(message)
    this.failure = failure
    this.retryAfterMs = retryAfterMs
  }
}

export type KubeQuery = Readonly<Record<string, string>>

export interface LineStream {
  readonly path: string
  readonly query: KubeQuery
  /** The stream is cut after this, in milliseconds, whatever the API thinks. */
  readonly durationMsMax: number
  /** The API has granted the stream. */
  readonly onOpen: () => void
  readonly onLine: (line: string) => void
  readonly signal: AbortSignal
}

/** Every method rejects with a `KubeError`, and with nothing else. */
export interface KubeApi {
  /** The namespace this pod, or the kubeconfig's context, is in. */
  namespace(): Promise<string>
  get(path: string, query: KubeQuery, signal?: AbortSignal): Promise<unknown>
  post(path: string, body: unknown): Promise<unknown>
  /** Resolves when the API ends the stream. */
  lines(stream: LineStream): Promise<void>
}

/** Longest wait for a whole answer, or for the head of a stream, in milliseconds. */
const answerTimeoutMs = 15_000
/** Between looks whether a silent connection is still one, in milliseconds. */
const keepAliveMs = 20_000
/** A page of 500 slices of a hundred endpoints each takes about 20 MB. */
const answerBytesMax = 32 << 20
/** A ConfigMap has a MiB at most; the records of who wrote what may double it. */
const lineBytesMax = 4 << 20
const retryAfterMsMax = 60_000
/** What client-node asks when it found no configuration at all. */
const clientsLastResort = 'http://localhost:8080'

const kindByStatus: Readonly<Record<number, KubeFailure>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'missing',
  409: 'conflict',
  410: 'expired',
  429: 'throttled',
}

export function failureOfStatus(status: number): KubeFailure {
  return kindByStatus[status] ?? 'server'
}

type Config = InstanceType<typeof import('@kubernetes/client-node/dist/config.js')['KubeConfig']>

interface Call {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly query: KubeQuery
  readonly body: unknown
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** The API that KUBECONFIG, else `~/.kube/config`, else the service account of the pod names. */
export class ClusterApi implements KubeApi {
  readonly #answerTimeoutMs: number
  #config: Config | null = null

  constructor(options: { readonly answerTimeoutMs?: number } = {}) {
    this.#answerTimeoutMs = options.answerTimeoutMs ?? answerTimeoutMs
  }

  async namespace(): Promise<string> {
    const config = await this.#access()
    const name = config.getContextObject(config.getCurrentContext())?.namespace?.trim()
    return name === undefined || name === '' ? 'default' : name
  }

  async get(path: string, query: KubeQuery, signal?: AbortSignal): Promise<unknown> {
    const call = { method: 'GET', path, query, body: null, signal } as const
    return await this.#ask({ ...call, timeoutMs: this.#answerTimeoutMs }, readJson)
  }

  async post(path: string, body: unknown): Promise<unknown> {
    const call = { method: 'POST', path, query: {}, body, signal: undefined } as const
    return await this.#ask({ ...call, timeoutMs: this.#answerTimeoutMs }, readJson)
  }

  async lines(stream: LineStream): Promise<void> {
    const { path, query, signal, durationMsMax } = stream
    const call = { method: 'GET', path, query, body: null, signal } as const
    await this.#ask({ ...call, timeoutMs: durationMsMax }, response => {
      stream.onOpen()
      return readLines(response, stream.onLine)
    })
  }

  async #ask<T>(call: Call, read: (response: IncomingMessage) => Promise<T>): Promise<T> {
    const cancel = new AbortController()
    let late = false
    const giveUp = () => {
      late = true
      cancel.abort()
    }
    const stop = () => cancel.abort()
    const cut = setTimeout(giveUp, call.timeoutMs)
    const headLate = setTimeout(giveUp, Math.min(this.#answerTimeoutMs, call.timeoutMs))
    call.signal?.addEventListener('abort', stop)
    try {
      const response = await this.#send(call, cancel.signal)
      clearTimeout(headLate)
      const status = response.statusCode ?? 0
      if (status >= 200 && status < 300) return await read(response)
      // The next try reads token and kubeconfig again instead of waiting for their caches.
      if (status === 401) this.#config = null
      throw await refusal(response, status)
    } catch (error) {
      if (error instanceof KubeError) throw error
      if (late) throw new KubeError('timeout', 'the API gave no answer in time')
      throw new KubeError('connect', reasonOf(error))
    } finally {
      clearTimeout(cut)
      clearTimeout(headLate)
      call.signal?.removeEventListener('abort', stop)
    }
  }

  async #send(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    const config = await this.#access()
    const cluster = config.getCurrentCluster()
    if (cluster === null) throw new KubeError('config', 'no Kubernetes API is configured')
    const headers: Record<string, string> = { accept: 'application/json' }
    const options: https.RequestOptions = { headers, method: call.method, signal }
    try {
      await config.applyToHTTPSOptions(options)
    } catch (error) {
      this.#config = null
      throw new KubeError('config', reasonOf(error))
    }
    // A token file may end in a newline, which no header may hold.
    if (headers.Authorization !== undefined) headers.Authorization = headers.Authorization.trim()
    const url = new URL(cluster.server.replace(/\/+$/, '') + call.path)
    for (const [name, value] of Object.entries(call.query)) url.searchParams.set(name, value)
    const body = call.body === null ? null : JSON.stringify(call.body)
    if (body !== null) headers['content-type'] = 'application/json'
    const request = (url.protocol === 'http:' ? http : https).request(url, options)
    return await new Promise((resolve, reject) => {
      request.once('response', resolve)
      // Stays: an error after the head has come must not be an uncaught one.
      request.on('error', reject)
      request.once('socket', socket => socket.setKeepAlive(true, keepAliveMs))
      request.end(body ?? undefined)
    })
  }

  async #access(): Promise<Config> {
    if (this.#config !== null) return this.#config
    const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js')
    const config = new KubeConfig()
    try {
      config.loadFromDefault()
    } catch (error) {
      throw new KubeError('config', reasonOf(error))
    }
    if (config.getCurrentCluster()?.server === clientsLastResort) {
      throw new KubeError('config', 'no service account, KUBECONFIG or ~/.kube/config is here')
    }
    this.#config = config
    return config
  }
}

/** Loads the client ahead of its first use: what is parsed now does not stall requests later. */
export async function preloadKubeClient(): Promise<void> {
  await import('@kubernetes/client-node/dist/config.js')
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  const text = await readText(response, answerBytesMax)
  try {
    return JSON.parse(text)
  } catch {
    throw new KubeError('malformed', 'the answer is not JSON')
  }
}

async function readText(response: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bytesMax) throw new KubeError('malformed', `the answer exceeds ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function readLines(response: IncomingMessage, onLine: (line: string) => void): Promise<void> {
  const splitter = new LineSplitter(lineBytesMax)
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (const line of splitter.push(chunk)) onLine(line)
    if (splitter.overflowed) throw new KubeError('malformed', 'an event is too large')
  }
}

async function refusal(response: IncomingMessage, status: number): Promise<KubeError> {
  const text = await readText(response, answerBytesMax).catch(() => '')
  const seconds = Number(response.headers['retry-after'] ?? 0)
  const retryAfterMs = Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : 0
  const message = `${status} ${statusMessage(text) || response.statusMessage || ''}`.trim()
  return new KubeError(failureOfStatus(status), message, Math.min(retryAfterMs, retryAfterMsMax))
}

/** The text of a `Status` object, cut to a line of a log. */
function statusMessage(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown }
    return typeof message === 'string' ? message.slice(0, 300) : ''
  } catch {
    return ''
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return message ? `${message}` : (code ?? String(error))
}
