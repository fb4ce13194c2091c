/**
 * A local copy of a few objects of the Kubernetes API: listed, then watched, for as long as the
 * process runs. Nothing ends it but `stop`: not a restarted or dead API server (the copy stays as
 * it was), not an expired watch or token. Knows nothing of what the objects mean.
 *
 *        ┌────────── any end: wait, longer the longer the trouble lasts ◄─┐
 *        ▼                                                                │
 *      list ──► changed(all) ──► watch ──► event ──► changed(all) ──► … ──┤ end, reset, timeout
 *        ▲                         ▲                                      │
 *        └── version expired ──────┴────────── version still good ────────┘
 */
import { type Fields, fieldsOf, textOf } from '../lib/untrusted.js'
import type { Clock, Random } from '../ports.js'
import { failureOfStatus, type KubeApi, KubeError, type KubeFailure } from './kube-api.js'

export interface KubeObject {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string }
}

export interface ReflectorOptions {
  /** Plural name of the resource, for metrics: `endpointslices`. */
  readonly resource: string
  /** Path of the collection; called before each list, since the namespace may come from the API. */
  readonly path: (api: KubeApi) => Promise<string>
  /** Selectors, the same for list and watch. */
  readonly query: Readonly<Record<string, string>>
  /** Most objects kept; what is beyond is left out and counted. */
  readonly objectsMax: number
}

export interface ReflectorPorts {
  readonly api: KubeApi
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly random: Random
}

export interface ReflectorListener {
  /** All objects as of now, sorted by name: after each list and after each event. */
  changed(objects: readonly KubeObject[]): void
  /** Told when trouble begins and whenever it becomes another one, not at each try. */
  failed(text: string): void
}

export interface ReflectorStats {
  readonly resource: string
  /** Since the API last told anything (answer, event, bookmark), in milliseconds; null: never. */
  readonly silentMs: number | null
  readonly objects: number
  readonly events: number
  readonly lists: number
  /** Ends of a list or a watch that were no clean ends, by reason. */
  readonly failures: Readonly<Partial<Record<KubeFailure, number>>>
  /** Objects beyond `objectsMax`, and events that could not be read. */
  readonly ignored: number
}

/** How long a watch is asked to last, in seconds, give or take a quarter: a fleet spreads. */
const watchSeconds = 240
/** The API ends a watch on its own clock; it is cut this much later, in milliseconds. */
const watchGraceMs = 10_000
/** A watch that lasted this long ends a time of trouble. */
const stableMs = 10_000
/** Waits between tries, in milliseconds: a sixteenth of the time of trouble, within these. */
const retryMsMin = 200
const retryMsMax = 30_000
const retryShare = 1 / 16
const pageSize = '500'

/**
 * How long to wait after trouble that began `troubledMs` ago: an exponential back-off by the clock.
 * A server that was away for 30 s is asked again within 2.5 s, one away for eight minutes twice a
 * minute.
 */
export function retryDelayMs(troubledMs: number, random: Random): number {
  const plain = Math.min(retryMsMax, Math.max(retryMsMin, troubledMs * retryShare))
  return plain * (0.75 + random() / 2)
}

export class Reflector {
  readonly #options: ReflectorOptions
  readonly #ports: ReflectorPorts
  readonly #objects = new Map<string, KubeObject>()
  readonly #failures: Partial<Record<KubeFailure, number>> = {}
  readonly #stopping = new AbortController()
  #listener: ReflectorListener | null = null
  /** Null: the copy must be listed anew. */
  #version: string | null = null
  #path = ''
  #lists = 0
  #events = 0
  #ignored = 0
  #heardMs: number | null = null
  /** When the watch under way was granted. */
  #openedMs: number | null = null
  #troubledSinceMs: number | null = null
  #trouble: string | null = null
  #wake: (() => void) | null = null

  constructor(options: ReflectorOptions, ports: ReflectorPorts) {
    this.#options = options
    this.#ports = ports
  }

  start(listener: ReflectorListener): void {
    this.#listener = listener
    void this.#run()
  }

  /** Nothing is reported after this. */
  stop(): void {
    this.#listener = null
    this.#stopping.abort()
    this.#wake?.()
  }

  stats(): ReflectorStats {
    return {
      resource: this.#options.resource,
      silentMs: this.#heardMs === null ? null : this.#now() - this.#heardMs,
      objects: this.#objects.size,
      events: this.#events,
      lists: this.#lists,
      failures: { ...this.#failures },
      ignored: this.#ignored,
    }
  }

  async #run(): Promise<void> {
    while (this.#listener !== null) {
      this.#openedMs = null
      const error = await this.#round()
      if (this.#listener === null) return
      const nowMs = this.#now()
      // One end after a long quiet watch is no trouble; it is asked again at once, nearly.
      const stable = this.#openedMs !== null && nowMs - this.#openedMs >= stableMs
      if (stable) this.#troubledSinceMs = null
      this.#troubledSinceMs ??= nowMs
      const delayMs = retryDelayMs(nowMs - this.#troubledSinceMs, this.#ports.random)
      await this.#pause(Math.max(delayMs, error?.retryAfterMs ?? 0))
    }
  }

  /** One watch, and the list before it if need be. Null: it ended as it should. */
  async #round(): Promise<KubeError | null> {
    try {
      if (this.#version === null) await this.#list()
      await this.#watch()
      this.#trouble = null
      return null
    } catch (caught) {
      const error = caught instanceof KubeError ? caught : new KubeError('malformed', `${caught}`)
      if (this.#listener === null) return null
      this.#failures[error.failure] = (this.#failures[error.failure] ?? 0) + 1
      if (error.failure === 'expired') this.#version = null
      this.#tell(error)
      return error
    }
  }

  /** An expired version is everyday life; and a try that fails as the one before is no news. */
  #tell({ failure, message }: KubeError): void {
    if (failure === 'expired') return
    const text = `${this.#options.resource}: ${failure}: ${message}`
    if (text === this.#trouble) return
    this.#trouble = text
    this.#listener?.failed(text)
  }

  async #list(): Promise<void> {
    const { api } = this.#ports
    this.#path = await this.#options.path(api)
    // The first list may be a little old, which spares the store; the watch brings what came since.
    // Later ones must not be older than what is known.
    const first: Record<string, string> = this.#lists === 0 ? { resourceVersion: '0' } : {}
    const found: KubeObject[] = []
    let page: Page = { items: [], version: null, next: '' }
    do {
      const more: Record<string, string> = page.next === '' ? first : { continue: page.next }
      const query = { ...this.#options.query, limit: pageSize, ...more }
      page = readPage(await api.get(this.#path, query, this.#stopping.signal))
      found.push(...page.items)
    } while (page.next !== '' && found.length < this.#options.objectsMax)
    if (this.#listener === null) return
    this.#objects.clear()
    for (const object of found) this.#put(object)
    this.#version = page.version
    this.#lists += 1
    this.#heardMs = this.#now()
    this.#trouble = null
    this.#changed()
  }

  async #watch(): Promise<void> {
    const seconds = Math.round(watchSeconds * (0.75 + this.#ports.random() / 2))
    const watching = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(seconds),
      resourceVersion: this.#version ?? '',
    }
    const ended = new AbortController()
    const stop = () => ended.abort()
    this.#stopping.signal.addEventListener('abort', stop)
    let refused: KubeError | null = null
    try {
      await this.#ports.api.lines({
        path: this.#path,
        query: { ...this.#options.query, ...watching },
        durationMsMax: seconds * 1000 + watchGraceMs,
        signal: ended.signal,
        onOpen: () => {
          this.#openedMs = this.#now()
          this.#heardMs = this.#openedMs
        },
        onLine: line => {
          if (refused !== null || this.#listener === null) return
          refused = this.#handle(line)
          if (refused !== null) ended.abort()
        },
      })
    } catch (error) {
      throw refused ?? error
    } finally {
      this.#stopping.signal.removeEventListener('abort', stop)
    }
    if (refused !== null) throw refused
  }

  /** Takes one event. What is returned ends the watch. */
  #handle(line: string): KubeError | null {
    const event = readEvent(line)
    if (event === null) {
      // What was missed is unknown, so the copy is: list again.
      this.#ignored += 1
      this.#version = null
      return new KubeError('malformed', 'an event cannot be read')
    }
    if (event.type === 'ERROR') {
      this.#version = null
      return new KubeError(failureOfStatus(event.code), event.message)
    }
    this.#heardMs = this.#now()
    this.#trouble = null
    this.#version = event.version ?? this.#version
    if (event.type === 'BOOKMARK') return null
    this.#events += 1
    if (event.type === 'DELETED') this.#objects.delete(event.object.metadata.name)
    else this.#put(event.object)
    this.#changed()
    return null
  }

  #put(object: KubeObject): void {
    const { name } = object.metadata
    if (!this.#objects.has(name) && this.#objects.size >= this.#options.objectsMax) {
      this.#ignored += 1
      return
    }
    this.#objects.set(name, object)
  }

  #changed(): void {
    const names = [...this.#objects.keys()].sort()
    this.#listener?.changed(names.map(name => this.#objects.get(name)!))
  }

  async #pause(durationMs: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, durationMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = null
  }

  #now(): number {
    return this.#ports.clock.monotonicMs()
  }
}

interface Page {
  readonly items: readonly KubeObject[]
  readonly version: string | null
  /** Token of the next page; '': this is the last. */
  readonly next: string
}

function readPage(answer: unknown): Page {
  const { items, metadata } = fieldsOf(answer)
  const { resourceVersion, continue: next } = fieldsOf(metadata)
  const version = textOf(resourceVersion)
  if (!Array.isArray(items) || version === '') {
    throw new KubeError('malformed', 'the answer is not a list of objects')
  }
  return { items: items.filter(isObject), version, next: textOf(next) }
}

function isObject(value: unknown): value is KubeObject {
  return textOf(fieldsOf(fieldsOf(value).metadata).name) !== ''
}

type WatchEvent =
  | { readonly type: 'ERROR'; readonly code: number; readonly message: string }
  | { readonly type: 'BOOKMARK'; readonly version: string | null }
  | {
      readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
      readonly version: string | null
      readonly object: KubeObject
    }

/** Null: not an event. */
function readEvent(line: string): WatchEvent | null {
  let event: Fields
  try {
    event = fieldsOf(JSON.parse(line))
  } catch {
    return null
  }
  const { type, object } = event
  const version = textOf(fieldsOf(fieldsOf(object).metadata).resourceVersion) || null
  switch (type) {
    case 'ERROR': {
      const { code, message } = fieldsOf(object)
      return {
        type,
        code: typeof code === 'number' ? code : 0,
        message: textOf(message) || 'the API ended the watch',
      }
    }
    case 'BOOKMARK':
      return { type, version }
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return isObject(object) ? { type, version, object } : null
    default:
      return null
  }
}
