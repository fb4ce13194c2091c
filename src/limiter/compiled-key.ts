/** A rule's key, compiled: from a request to the canonical text of its counter. */
import { canonicalValue, partHead, partText, readSource, sourceText } from './key-source.js'
import type { RequestFacts } from './request-facts.js'
import type { KeyPart, KeySource } from './rule.js'

interface Alternative {
  readonly source: KeySource
  readonly head: string
}

/** Slots of the cache that every rule with a one-part key has; a power of two. */
const cacheSlots = 1024
/** Longest value that is cached, so that hostile headers cannot hold memory. */
const cachedLengthMax = 256

const ipSource: KeySource = { kind: 'ip' }
const ipAlternative: Alternative = { source: ipSource, head: partHead(ipSource) }

export class CompiledKey {
  readonly #parts: readonly (readonly Alternative[])[]
  readonly #missing: 'ip' | 'skip' | 'deny'
  readonly #cache: KeyCache | null
  readonly usesPath: boolean
  /** How many values a caller of `/v1/check` gives: one per part that is not `global`. */
  readonly valuesExpected: number

  constructor(parts: readonly KeyPart[], missing: 'ip' | 'skip' | 'deny') {
    this.#parts = parts.map(part => part.map(source => ({ source, head: partHead(source) })))
    this.#missing = missing
    this.#cache = parts.length === 1 ? new KeyCache() : null
    this.usesPath = parts.some(part => part.some(source => source.kind === 'path'))
    this.valuesExpected = parts.filter(part => part[0]!.kind !== 'global').length
  }

  /**
   * The canonical text; null when a part is absent and `missing` does not put the address there.
   */
  read(facts: RequestFacts): string | null {
    if (this.#cache !== null) return this.#readSingle(this.#parts[0]!, this.#cache, facts)
    let text = ''
    for (let index = 0; index < this.#parts.length; index++) {
      const part = this.#readPart(this.#parts[index]!, facts)
      if (part === null) return null
      text += part
    }
    return text
  }

  #readSingle(part: readonly Alternative[], cache: KeyCache, facts: RequestFacts): string | null {
    for (let index = 0; index < part.length; index++) {
      const { source, head } = part[index]!
      if (source.kind === 'ip') return cache.ip(head, facts)
      const value = readSource(source, facts)
      if (value !== undefined) return cache.text(head, value)
    }
    return this.#missing === 'ip' ? cache.ip(ipAlternative.head, facts) : null
  }

  #readPart(part: readonly Alternative[], facts: RequestFacts): string | null {
    for (let index = 0; index < part.length; index++) {
      const { source, head } = part[index]!
      const value = readSource(source, facts)
      if (value !== undefined) return partText(head, value)
    }
    if (this.#missing !== 'ip') return null
    return partText(ipAlternative.head, readSource(ipSource, facts)!)
  }

  /** The raw values and the words for how the key came about; null as `read`. */
  explain(facts: RequestFacts): { readonly values: readonly string[]; readonly because: string } {
    const values: string[] = []
    const words: string[] = []
    for (const part of this.#parts) {
      const found = part.find(({ source }) => readSource(source, facts) !== undefined)
      const used = found ?? ipAlternative
      values.push(readSource(used.source, facts)!)
      const wanted = part.map(({ source }) => sourceText(source)).join(' or ')
      words.push(found === undefined ? `no ${wanted}, so ip` : sourceText(used.source))
    }
    return { values, because: `key from ${words.join(', ')}` }
  }

  /** The parts that a request lacks altogether, as text; empty when the key is whole. */
  absent(facts: RequestFacts): string[] {
    return this.#parts
      .filter(part => part.every(({ source }) => readSource(source, facts) === undefined))
      .map(part => part.map(({ source }) => sourceText(source)).join(' | '))
  }

  /**
   * The canonical text for values spelled out by a caller, each as the first alternative of its
   * part. `values` has one per part, or leaves the `global` ones out; missing ones are empty.
   */
  fromValues(values: readonly string[]): string {
    const aligned = values.length >= this.#parts.length
    let text = ''
    let next = 0
    for (let index = 0; index < this.#parts.length; index++) {
      const { source, head } = this.#parts[index]![0]!
      const given = source.kind === 'global' && !aligned ? '' : (values[next++] ?? '')
      text += partText(head, canonicalValue(source, given))
    }
    return text
  }
}

/**
 * Recent keys of one rule, by value: a keep-alive client's key is built once and then found with
 * one comparison. Direct-mapped and of fixed size; a clash only costs building the text again.
 */
class KeyCache {
  // Filled at first use: most of many rules never see a request.
  #values: string[] = []
  #heads: string[] = []
  #texts: string[] = []

  text(head: string, value: string): string {
    const slot = slotOf(value)
    if (this.#values[slot] === value && this.#heads[slot] === head) return this.#texts[slot]!
    return this.#store(slot, head, value, partText(head, value))
  }

  /** Kept by the address as it came, so that grouping IPv6 is also done once. */
  ip(head: string, facts: RequestFacts): string {
    const slot = slotOf(facts.ip)
    if (this.#values[slot] === facts.ip && this.#heads[slot] === head) return this.#texts[slot]!
    return this.#store(slot, head, facts.ip, partText(head, readSource(ipSource, facts)!))
  }

  #store(slot: number, head: string, value: string, text: string): string {
    if (value.length > cachedLengthMax) return text
    if (this.#values.length === 0) {
      this.#values = new Array<string>(cacheSlots).fill('')
      this.#heads = new Array<string>(cacheSlots).fill('')
      this.#texts = new Array<string>(cacheSlots).fill('')
    }
    this.#values[slot] = value
    this.#heads[slot] = head
    this.#texts[slot] = text
    return text
  }
}

/**
 * FNV-1a over the last characters: values differ mostly at their ends (`client-7`, `192.0.2.7`).
 */
function slotOf(value: string): number {
  let hash = 0x811c9dc5 ^ value.length
  for (let index = Math.max(0, value.length - 8); index < value.length; index++) {
    hash = Math.imul(hash ^ value.charCodeAt(index), 0x01000193)
  }
  return (hash ^ (hash >>> 15)) & (cacheSlots - 1)
}
