/** A Kubernetes API in a test's hands: lists are answered from a queue, the watch is told what to say. */
import type { KubeApi, KubeQuery, LineStream } from '../../src/discovery/kube-api.js'
import { KubeError } from '../../src/discovery/kube-api.js'

export interface FakeCall {
  readonly path: string
  readonly query: KubeQuery
}

interface Watching {
  readonly stream: LineStream
  readonly end: () => void
  readonly fail: (error: KubeError) => void
}

export class FakeKubeApi implements KubeApi {
  readonly lists: FakeCall[] = []
  readonly watches: FakeCall[] = []
  readonly posts: { readonly path: string; readonly body: unknown }[] = []
  /** Answers to the next reads, in order; the last one stays. An error is thrown. */
  answers: unknown[] = []
  /** What the next watches are refused with, in order. */
  refusals: KubeError[] = []
  postError: KubeError | null = null
  #watching: Watching | null = null

  namespace(): Promise<string> {
    return Promise.resolve('shop')
  }

  async get(path: string, query: KubeQuery): Promise<unknown> {
    this.lists.push({ path, query })
    const answer = this.answers.length > 1 ? this.answers.shift() : this.answers[0]
    if (answer instanceof Error) throw answer
    return answer
  }

  async post(path: string, body: unknown): Promise<unknown> {
    this.posts.push({ path, body })
    if (this.postError !== null) throw this.postError
    return {}
  }

  async lines(stream: LineStream): Promise<void> {
    this.watches.push({ path: stream.path, query: stream.query })
    const refusal = this.refusals.shift()
    if (refusal !== undefined) throw refusal
    stream.onOpen()
    await new Promise<void>((resolve, reject) => {
      this.#watching = { stream, end: resolve, fail: reject }
      stream.signal.addEventListener('abort', () => reject(new KubeError('connect', 'aborted')))
    })
  }

  get watching(): boolean {
    return this.#watching !== null
  }

  event(type: string, object: unknown): void {
    this.line(JSON.stringify({ type, object }))
  }

  line(text: string): void {
    this.#open().stream.onLine(text)
  }

  /** The API ends the watch as it should. */
  end(): void {
    const { end } = this.#open()
    this.#watching = null
    end()
  }

  /** The watch breaks. */
  break(): void {
    const { fail } = this.#open()
    this.#watching = null
    fail(new KubeError('connect', 'socket hang up'))
  }

  #open(): Watching {
    if (this.#watching === null) throw new Error('nobody watches')
    return this.#watching
  }
}

export function listOf(version: string, ...items: unknown[]): unknown {
  return { metadata: { resourceVersion: version }, items }
}

export function objectOf(name: string, version: string, more: object = {}): object {
  return { metadata: { name, resourceVersion: version }, ...more }
}
