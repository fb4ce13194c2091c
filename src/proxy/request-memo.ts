/**
 * The latest request of a connection, as bytes and as what they mean. A client that polls, or that
 * comes back although it was denied, sends the same bytes again: they are parsed and checked once.
 * Only of its own connection: no client's bytes are ever compared with another's.
 */
import type { CheckedRequest } from './request-check.js'

/** Longer requests are not kept, bytes. */
const requestBytesMax = 1_024

/** What all connections of a proxy may keep together; beyond it requests are parsed each time. */
export class MemoBudget {
  #bytes = 0
  readonly #bytesMax: number

  constructor(bytesMax = 2_097_152) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Exchanges `before` bytes for `after`; false, and nothing changes, where they do not fit. */
  exchange(before: number, after: number): boolean {
    const bytes = this.#bytes - before + after
    if (after > before && bytes > this.#bytesMax) return false
    this.#bytes = bytes
    return true
  }
}

export class RequestMemo {
  readonly #budget: MemoBudget
  #bytes: Buffer | null = null
  #request: CheckedRequest | null = null

  constructor(budget: MemoBudget) {
    this.#budget = budget
  }

  /** The request that `chunk` is, if it is the latest one again; null: parse it. */
  find(chunk: Buffer): CheckedRequest | null {
    return this.#bytes?.equals(chunk) === true ? this.#request : null
  }

  /** Keeps a whole request without a body. `bytes` must not be changed afterwards. */
  keep(bytes: Buffer, request: CheckedRequest): void {
    const plain = request.bodyBytes === 0 && request.upgrade === null
    if (!plain || bytes.length > requestBytesMax) {
      this.forget()
      return
    }
    if (!this.#budget.exchange(this.#bytes?.length ?? 0, bytes.length)) {
      this.forget()
      return
    }
    this.#bytes = bytes
    this.#request = request
  }

  forget(): void {
    this.#budget.exchange(this.#bytes?.length ?? 0, 0)
    this.#bytes = null
    this.#request = null
  }
}
