/** Asks a running sidecar's admin listener; every failure becomes one clear sentence. */
import { CommandError } from './host.js'

/** Longest wait for an answer, in milliseconds; the listener answers from memory. */
const answerTimeoutMs = 5_000

export class AdminClient {
  readonly #base: string

  /** `address`: `http://host:port`, a trailing slash allowed. */
  constructor(address: string) {
    this.#base = adminBase(address)
  }

  get(path: string): Promise<unknown> {
    return this.#ask('GET', path, undefined, answerTimeoutMs)
  }

  /** `timeoutMs` covers operations that take their time (a drain that waits). */
  post(path: string, body?: unknown, timeoutMs = answerTimeoutMs): Promise<unknown> {
    return this.#ask('POST', path, body, timeoutMs)
  }

  async #ask(method: string, path: string, body: unknown, timeoutMs: number): Promise<unknown> {
    const init: RequestInit = {
      method,
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    }
    if (body !== undefined) {
      init.body = JSON.stringify(body)
      init.headers = { accept: 'application/json', 'content-type': 'application/json' }
    }
    let status: number
    let text: string
    try {
      const response = await fetch(this.#base + path, init)
      status = response.status
      text = await response.text()
    } catch (error) {
      throw new CommandError(`cannot reach the admin listener at ${this.#base}: ${cause(error)}`)
    }
    if (status >= 400) throw new CommandError(`${method} ${path}: ${status} ${problemText(text)}`)
    return parsed(text, this.#base)
  }
}

function adminBase(address: string): string {
  const withScheme = /^[a-z]+:\/\//i.test(address) ? address : `http://${address}`
  const url = URL.canParse(withScheme) ? new URL(withScheme) : null
  if (url === null || url.protocol !== 'http:' || url.pathname !== '/') {
    throw new CommandError(`--admin: expected http://HOST:PORT, got "${address}"`, 2)
  }
  return url.origin
}

function parsed(text: string, base: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    throw new CommandError(`${base} does not answer in JSON; is it the admin listener?`)
  }
}

function problemText(text: string): string {
  try {
    const problem: unknown = JSON.parse(text)
    const { detail, title } = problem as { detail?: unknown; title?: unknown }
    return String(detail ?? title ?? text)
  } catch {
    return text.slice(0, 200)
  }
}

function cause(error: unknown): string {
  const { name, message, cause: inner } = error as Error & { cause?: { code?: string } }
  if (name === 'TimeoutError') return 'no answer in time'
  return inner?.code ?? message
}
