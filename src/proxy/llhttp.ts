/**
 * llhttp, the strict HTTP/1 parser of Node.js, in its WebAssembly build that undici carries. This
 * file binds it: bytes in, one message at a time out. No leniency flag is ever set. It knows no
 * sockets and does not judge what a well-formed message means (see `request-check.ts`).
 *
 * The parser never calls back into the proxy: a call to `feed` records what it saw (positions only)
 * and returns, so nothing can be freed or fed again while WebAssembly is on the stack.
 */
import assert from 'node:assert/strict'
import wasm from 'undici/lib/llhttp/llhttp-wasm.js'

export interface ParserLimits {
  /** Request line or status line with all header fields, in bytes. Beyond: refused (431). */
  readonly headBytesMax: number
  /** Header fields of a head, and again of a trailer section. Beyond: refused (431). */
  readonly headerCountMax: number
}

export type ParseError =
  /** Not HTTP/1 as llhttp understands it strictly. */
  | 'malformed'
  /** `headBytesMax` or `headerCountMax` is exceeded. */
  | 'head-too-large'
  /** The HTTP/2 preface. */
  | 'http2-preface'

/** The start line and the header fields of a message. */
export interface MessageHead {
  /** Requests: upper-case method. Responses: ''. */
  readonly method: string
  /** Requests: the target as sent. Responses: the reason phrase. */
  readonly text: string
  /** Responses: status code. Requests: 0. */
  readonly status: number
  readonly major: number
  readonly minor: number
  /** Names and values in turn as sent, values without surrounding blanks. */
  readonly headers: readonly string[]
  /** The connection may carry another message after this one. */
  readonly keepAlive: boolean
  /** An upgrade is asked for (request) or done (response 101). */
  readonly upgrade: boolean
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_free(parser: number): void
  llhttp_reset(parser: number): void
  llhttp_execute(parser: number, data: number, length: number): number
  llhttp_finish(parser: number): number
  llhttp_get_error_pos(parser: number): number
  llhttp_get_method(parser: number): number
  llhttp_get_http_major(parser: number): number
  llhttp_get_http_minor(parser: number): number
  llhttp_method_name(method: number): number
}

/** What @types/node 20 leaves out; the rest of the API is not used. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: unknown }
}

const typeRequest = 1
const typeResponse = 2
const errorPaused = 21
const errorPausedH2Upgrade = 23
/** Returned by a callback to make llhttp stop with an error of ours. */
const errorOurs = -1

/** Bytes handed to WebAssembly at once; libuv reads at most as many. */
export const feedBytesMax = 65_536

/** Kinds of recorded spans. The same kind twice in a row is one token that was cut. */
const spanStart = 0
const spanName = 1
const spanValue = 2
const spanBody = 3
/** Two spans per header field of at least four bytes: no feed can fill this. */
const spans = new Int32Array(3 * feedBytesMax)
let spanCount = 0

let current: MessageParser | null = null
let input = 0

function record(kind: number, at: number, length: number): number {
  spans[spanCount] = kind
  spans[spanCount + 1] = at - input
  spans[spanCount + 2] = length
  spanCount += 3
  return 0
}

const callbacks = {
  wasm_on_message_begin: () => 0,
  wasm_on_url: (_parser: number, at: number, length: number) => record(spanStart, at, length),
  wasm_on_status: (_parser: number, at: number, length: number) => record(spanStart, at, length),
  wasm_on_header_field: (_parser: number, at: number, length: number) =>
    current?.countName() ? record(spanName, at, length) : errorOurs,
  wasm_on_header_value: (_parser: number, at: number, length: number) =>
    record(spanValue, at, length),
  wasm_on_headers_complete: (_parser: number, status: number, upgrade: number, alive: number) =>
    current?.noteHead(status, upgrade === 1, alive === 1) ?? errorOurs,
  wasm_on_body: (_parser: number, at: number, length: number) => record(spanBody, at, length),
  wasm_on_message_complete: () => current?.noteComplete() ?? errorOurs,
}

let loaded: Exports | null = null
let memory = new Uint8Array(0)
const methodNames: string[] = []

function load(): Exports {
  if (loaded) return loaded
  const instance = new WebAssembly.Instance(new WebAssembly.Module(wasm), { env: callbacks })
  loaded = instance.exports as Exports
  input = loaded.malloc(feedBytesMax)
  return loaded
}

/** WebAssembly memory may grow, and its old view is dead then. */
function view(lib: Exports): Uint8Array {
  if (memory.buffer !== lib.memory.buffer) memory = new Uint8Array(lib.memory.buffer)
  return memory
}

function methodName(lib: Exports, method: number): string {
  const known = methodNames[method]
  if (known !== undefined) return known
  const bytes = view(lib)
  const at = lib.llhttp_method_name(method)
  const name = Buffer.from(bytes.subarray(at, bytes.indexOf(0, at))).toString('latin1')
  methodNames[method] = name
  return name
}

const noHeaders: readonly string[] = []

/** One direction of one connection. `free` must be called exactly once. */
export class MessageParser {
  readonly #lib: Exports
  readonly #limits: ParserLimits
  #pointer: number
  #names = 0
  /** Kind of the span recorded last in earlier feeds of this message. */
  #lastKind = spanBody
  /** Where in `spans` the head ended, when it ended in the last feed. */
  #headSpans = 0
  #headBytes = 0
  #headDone = false
  /** Tokens of a head or trailer section that came in pieces. */
  #pieces: Piece[] | null = null
  #status = 0
  #upgrade = false
  #keepAlive = false
  #tooMany = false

  /** The message under way answers a HEAD request: it has no body whatever its head says. */
  bodiless = false
  /** The head, once it is whole; stays until `reset`. */
  head: MessageHead | null = null
  /** The head became whole in the last feed. */
  headFresh = false
  /** Body bytes of the last feed, chunk framing removed; may share memory with the input. */
  body: Buffer | null = null
  /** The message is over; `reset` before the next one. */
  complete = false
  /** Trailer fields, names and values in turn; valid once complete. */
  trailers: readonly string[] = noHeaders
  error: ParseError | null = null
  /** Some byte of a message was seen since the last reset. */
  started = false

  constructor(kind: 'request' | 'response', limits: ParserLimits) {
    this.#lib = load()
    this.#limits = limits
    this.#pointer = this.#lib.llhttp_alloc(kind === 'request' ? typeRequest : typeResponse)
  }

  /**
   * Parses `chunk` from `from` on, at most `feedBytesMax` bytes and never past the end of a
   * message, and returns the position after what was consumed. Afterwards `headFresh`, `body`,
   * `complete` and `error` say what was found. After an error or a complete message only `reset`
   * or `free` may follow.
   */
  feed(chunk: Buffer, from: number): number {
    assert(this.#pointer !== 0, 'a freed parser is not fed')
    const lib = this.#lib
    const end = Math.min(chunk.length, from + feedBytesMax)
    const part = from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end)
    view(lib).set(part, input)
    spanCount = 0
    current = this
    this.headFresh = false
    this.body = null
    this.started = true
    const result = lib.llhttp_execute(this.#pointer, input, part.length)
    current = null
    const used = result === 0 ? part.length : lib.llhttp_get_error_pos(this.#pointer) - input
    this.#collect(part, used)
    if (result !== 0 && !(result === errorPaused && this.complete)) this.#fail(result)
    return from + used
  }

  /**
   * The peer closed its side: a message that only the end of the connection ends is complete now.
   */
  finish(): void {
    assert(this.#pointer !== 0, 'a freed parser is not finished')
    spanCount = 0
    current = this
    this.#lib.llhttp_finish(this.#pointer)
    current = null
    this.headFresh = false
    this.body = null
  }

  /** Makes ready for the next message. */
  reset(): void {
    assert(this.#pointer !== 0, 'a freed parser is not reset')
    this.#lib.llhttp_reset(this.#pointer)
    this.#names = 0
    this.#lastKind = spanBody
    this.#headSpans = 0
    this.#headBytes = 0
    this.#headDone = false
    this.#pieces = null
    this.#tooMany = false
    this.bodiless = false
    this.head = null
    this.headFresh = false
    this.body = null
    this.complete = false
    this.trailers = noHeaders
    this.started = false
  }

  /** Gives the memory back; no other call may follow, a second `free` does nothing. */
  free(): void {
    if (this.#pointer === 0) return
    this.#lib.llhttp_free(this.#pointer)
    this.#pointer = 0
  }

  /** For the binding: a header name, or the next piece of one, begins. False: too many. */
  countName(): boolean {
    const last = spanCount === 0 ? this.#lastKind : spans[spanCount - 3]
    if (last !== spanName) this.#names++
    this.#tooMany = this.#names > this.#limits.headerCountMax
    return !this.#tooMany
  }

  /** For the binding: the blank line after the head. */
  noteHead(status: number, upgrade: boolean, keepAlive: boolean): number {
    this.#headDone = true
    this.headFresh = true
    this.#headSpans = spanCount
    this.#status = status
    this.#upgrade = upgrade
    this.#keepAlive = keepAlive
    this.#names = 0
    return this.bodiless ? 1 : 0
  }

  /** For the binding: the message is over. Stops the parser there. */
  noteComplete(): number {
    this.complete = true
    return errorPaused
  }

  #collect(part: Buffer, used: number): void {
    if (spanCount > 0) this.#lastKind = spans[spanCount - 3] ?? spanBody
    let first = 0
    if (this.headFresh) {
      first = this.#headSpans
      const last = first - 3
      const headEnd = last < 0 ? 0 : (spans[last + 1] ?? 0) + (spans[last + 2] ?? 0)
      this.#headBytes += headEnd
      if (this.#headBytes <= this.#limits.headBytesMax) this.head = this.#makeHead(part, headEnd)
    } else if (!this.#headDone) {
      first = spanCount
      this.#headBytes += used
      this.#keepPieces(part, 0, spanCount)
    }
    if (this.#headBytes > this.#limits.headBytesMax) {
      this.error = 'head-too-large'
      return
    }
    if (this.headFresh) this.#headBytes = 0
    if (first < spanCount) this.#collectBody(part, first)
    if (this.complete && this.#pieces !== null) this.trailers = pairsOf(this.#pieces)
  }

  #makeHead(part: Buffer, headEnd: number): MessageHead {
    const pieces = this.#pieces
    this.#pieces = null
    let text = ''
    let headers: readonly string[]
    if (pieces === null) {
      const head = part.toString('latin1', 0, headEnd)
      const first = this.#headSpans > 0 && spans[0] === spanStart ? 3 : 0
      if (first > 0) text = head.slice(spans[1], (spans[1] ?? 0) + (spans[2] ?? 0))
      headers = cutPairs(head, first, this.#headSpans)
    } else {
      addPieces(pieces, part, 0, this.#headSpans)
      if (pieces[0]?.kind === spanStart) text = pieces.shift()?.text ?? ''
      headers = pairsOf(pieces)
    }
    const lib = this.#lib
    const isRequest = this.#status === 0
    return {
      method: isRequest ? methodName(lib, lib.llhttp_get_method(this.#pointer)) : '',
      text,
      status: this.#status,
      major: lib.llhttp_get_http_major(this.#pointer),
      minor: lib.llhttp_get_http_minor(this.#pointer),
      headers,
      keepAlive: this.#keepAlive,
      upgrade: this.#upgrade,
    }
  }

  #keepPieces(part: Buffer, first: number, end: number): void {
    if (first >= end) return
    this.#pieces ??= []
    addPieces(this.#pieces, part, first, end)
  }

  /** Joins the body spans from `first` on; what follows them are trailer fields. */
  #collectBody(part: Buffer, first: number): void {
    let end = first
    let bodyBytes = 0
    while (end < spanCount && spans[end] === spanBody) {
      bodyBytes += spans[end + 2] ?? 0
      end += 3
    }
    if (end === first + 3) {
      const at = spans[first + 1] ?? 0
      this.body = part.subarray(at, at + bodyBytes)
    } else if (end > first) {
      const body = Buffer.allocUnsafe(bodyBytes)
      let to = 0
      for (let span = first; span < end; span += 3) {
        const at = spans[span + 1] ?? 0
        to += part.copy(body, to, at, at + (spans[span + 2] ?? 0))
      }
      this.body = body
    }
    for (let span = end; span < spanCount; span += 3) this.#headBytes += spans[span + 2] ?? 0
    this.#keepPieces(part, end, spanCount)
    if (this.#headBytes > this.#limits.headBytesMax) this.error = 'head-too-large'
  }

  #fail(result: number): void {
    if (this.error !== null) return
    if (this.#tooMany) this.error = 'head-too-large'
    // Upgrades are paused at the end of the message already; this pause would come after it.
    else if (result === errorPausedH2Upgrade) this.error = 'http2-preface'
    else this.error = 'malformed'
  }
}

interface Piece {
  readonly kind: number
  text: string
}

/** Appends spans as text. Two of one kind in a row are one token: each name has its value span. */
function addPieces(pieces: Piece[], part: Buffer, first: number, end: number): void {
  for (let span = first; span < end; span += 3) {
    const kind = spans[span] ?? spanBody
    const at = spans[span + 1] ?? 0
    const text = part.toString('latin1', at, at + (spans[span + 2] ?? 0))
    const last = pieces.at(-1)
    if (last !== undefined && last.kind === kind) last.text += text
    else pieces.push({ kind, text })
  }
}

function pairsOf(pieces: readonly Piece[]): string[] {
  return pieces.map(piece => (piece.kind === spanValue ? trimEnd(piece.text) : piece.text))
}

/** Names and values out of a head that stands in one string. */
function cutPairs(head: string, first: number, end: number): string[] {
  const pairs: string[] = []
  for (let span = first; span < end; span += 3) {
    const at = spans[span + 1] ?? 0
    let until = at + (spans[span + 2] ?? 0)
    const cut = span + 3 < end && spans[span + 3] === spans[span]
    if (spans[span] === spanValue && !cut) {
      while (until > at && isBlank(head.charCodeAt(until - 1))) until--
    }
    // A token that WebAssembly reported in two spans of one feed is glued together again.
    const last = pairs.length - 1
    if (span > first && spans[span] === spans[span - 3]) pairs[last] += head.slice(at, until)
    else pairs.push(head.slice(at, until))
  }
  return pairs
}

function trimEnd(value: string): string {
  let end = value.length
  while (end > 0 && isBlank(value.charCodeAt(end - 1))) end--
  return end === value.length ? value : value.slice(0, end)
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9
}
