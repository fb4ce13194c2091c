/**
 * YAML text to plain values, with the place of each. Pure. Everything is bounded and nothing
 * thrown: size, depth and the number of values (aliases counted as often as they are used).
 */
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  Parser,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { type ConfigPath, type Finding, findingsMax, formatPath } from './finding.js'

/** Longest text in UTF-16 units, and largest file in bytes; a ConfigMap holds no more. */
export const textLengthMax = 1024 * 1024
/** Most values in one document. */
export const valuesMax = 100_000
/** Deepest nesting of lists and maps. */
export const depthMax = 32
/**
 * Deepest stack of the tokenizer, which is not recursive while what comes after it is: an overflow
 * there is caught too late, as V8 may give up for good when it compiles something with no stack
 * left.
 */
const stackMax = 3 * depthMax
/** Most tokens in one text. */
const tokensMax = 20 * valuesMax
/** Most uses of aliases in one document; looking one up takes as long as the document. */
export const aliasesMax = 100

/** A place in a text, both from 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** One YAML document. */
export interface YamlDocument {
  /** Maps are objects with own properties only; an empty document is null. */
  readonly value: unknown
  /** Where the value at `path` stands, or the nearest thing around it. */
  valueAt(path: ConfigPath): Place
  /** Where the key that leads to `path` stands; for a list entry, the entry. */
  keyAt(path: ConfigPath): Place
  /** The block or flow text of a scalar, for positions inside it; null for anything else. */
  scalarAt(path: ConfigPath): ScalarText | null
}

/** How a text value is written in its file. */
export interface ScalarText {
  /** `|`: each line of the value is one line of the file, below the line of `place`. */
  readonly literal: boolean
  readonly place: Place
  /** Columns that a literal block is indented by. */
  readonly indent: number
}

export interface YamlParse {
  readonly documents: readonly YamlDocument[]
  /** Errors only; when there are any, `documents` must not be used. */
  readonly findings: readonly Finding[]
}

/** Every document of `text`; `file` is what findings call it. */
export function parseYaml(text: string, file: string): YamlParse {
  const start = { line: 1, column: 1 }
  if (text.length > textLengthMax) {
    return failed(file, start, 'too-large', `longer than ${textLengthMax} characters`)
  }
  try {
    return parseWithin(text, file)
  } catch (error) {
    // Not known to happen; a fault in the library must not end a running sidecar.
    return failed(file, start, 'yaml', `cannot be read: ${error}`)
  }
}

function failed(file: string, place: Place, code: string, message: string): YamlParse {
  return { documents: [], findings: [finding(file, place, code, '', message)] }
}

function finding(file: string, place: Place, code: string, path: string, message: string): Finding {
  return { level: 'error', code, file, ...place, path, message }
}

function parseWithin(text: string, file: string): YamlParse {
  const lineCounter = new LineCounter()
  const tokens = tokenize(text, lineCounter)
  if (!Array.isArray(tokens)) {
    return failed(file, placeOf(lineCounter, tokens.offset), tokens.code, tokens.message)
  }
  const composer = new Composer({ lineCounter, prettyErrors: false, uniqueKeys: false })
  const documents = [...composer.compose(tokens)]
  const findings = documents.flatMap(document =>
    document.errors.map(error => {
      const place = placeOf(lineCounter, error.pos[0])
      return finding(file, place, 'yaml', '', yamlMessage(error.message))
    }),
  )
  const readers = documents.map(document => new PlainReader(document, lineCounter, file, text))
  const read = readers.map(reader => reader.read())
  findings.push(...readers.flatMap(reader => reader.findings))
  return { documents: read, findings }
}

interface Overrun {
  readonly offset: number
  readonly code: string
  readonly message: string
}

function tokenize(text: string, lineCounter: LineCounter): CST.Token[] | Overrun {
  const parser = new Parser(lineCounter.addNewLine)
  const tokens: CST.Token[] = []
  let lexemes = 0
  lineCounter.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme))
    const { offset } = parser
    if (parser.stack.length > stackMax) {
      return { offset, code: 'too-deep', message: `nested deeper than ${depthMax}` }
    }
    if (++lexemes > tokensMax) {
      return { offset, code: 'too-large', message: `more than ${tokensMax} tokens` }
    }
  }
  tokens.push(...parser.end())
  return tokens
}

function yamlMessage(message: string): string {
  const first = message.split('\n')[0]!
  return `not YAML: ${first.charAt(0).toLowerCase()}${first.slice(1)}`
}

function placeOf(lineCounter: LineCounter, offset: number): Place {
  const { line, col } = lineCounter.linePos(offset)
  return { line: Math.max(1, line), column: Math.max(1, col) }
}

interface Spot {
  readonly key: number
  readonly value: number
  readonly scalar: Scalar | null
}

/** Turns one document into plain values while noting where each stands. */
class PlainReader {
  readonly findings: Finding[] = []
  readonly #spots = new Map<string, Spot>()
  #values = 0
  #aliases = 0

  constructor(
    private readonly document: Document.Parsed,
    private readonly lineCounter: LineCounter,
    private readonly file: string,
    private readonly text: string,
  ) {}

  read(): YamlDocument {
    const root = this.document.contents as Node | null
    const start = root?.range?.[0] ?? this.document.range[0]
    const value = this.#plain(root, [], start, start)
    return {
      value,
      valueAt: path => this.#place(this.#spotAt(path).value),
      keyAt: path => this.#place(this.#spotAt(path).key),
      scalarAt: path => this.#scalarText(path),
    }
  }

  #place(offset: number): Place {
    return placeOf(this.lineCounter, offset)
  }

  /** The spot of the path, else of the longest part of it that exists; the root always does. */
  #spotAt(path: ConfigPath): Spot {
    for (let length = path.length; length > 0; length--) {
      const spot = this.#spots.get(pathKey(path.slice(0, length)))
      if (spot !== undefined) return spot
    }
    return this.#spots.get('')!
  }

  #refuse(offset: number, code: string, path: ConfigPath, message: string): null {
    if (this.findings.length < findingsMax) {
      const place = this.#place(offset)
      this.findings.push(finding(this.file, place, code, formatPath(path), message))
    }
    return null
  }

  #plain(node: Node | null, path: ConfigPath, keyOffset: number, fallback: number): unknown {
    const offset = node?.range?.[0] ?? fallback
    const scalar = isScalar(node) ? node : null
    this.#spots.set(pathKey(path), { key: keyOffset, value: offset, scalar })
    if (++this.#values > valuesMax) {
      if (this.#values > valuesMax + 1) return null
      return this.#refuse(
        offset,
        'too-large',
        path,
        `more than ${valuesMax} values, aliases included`,
      )
    }
    if (path.length > depthMax) {
      return this.#refuse(offset, 'too-deep', path, `nested deeper than ${depthMax}`)
    }
    if (node === null || node === undefined) return null
    if (isAlias(node)) {
      if (++this.#aliases > aliasesMax) {
        const message = `more than ${aliasesMax} aliases`
        return this.#aliases > aliasesMax + 1
          ? null
          : this.#refuse(offset, 'aliases', path, message)
      }
      const target = node.resolve(this.document)
      if (target === undefined) return this.#refuse(offset, 'yaml', path, 'unknown alias')
      return this.#plain(target as Node, path, keyOffset, offset)
    }
    if (isScalar(node)) return this.#scalar(node, path, offset)
    if (isMap(node)) return this.#map(node, path)
    if (isSeq(node)) {
      return node.items.map((item, index) => {
        const start = (item as Node | null)?.range?.[0] ?? offset
        return this.#plain(item as Node, [...path, index], start, offset)
      })
    }
    return this.#refuse(offset, 'yaml', path, 'expected a value, a list or a map')
  }

  #scalar(node: Scalar, path: ConfigPath, offset: number): unknown {
    const { value } = node
    if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value
    return this.#refuse(offset, 'yaml', path, 'expected text, a number, true or false')
  }

  #map(node: YAMLMap, path: ConfigPath): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    for (const pair of node.items as Pair<Node | null, Node | null>[]) {
      const offset = pair.key?.range?.[0] ?? node.range?.[0] ?? 0
      if (!isScalar(pair.key) || pair.key.value === null || pair.key.value === '') {
        this.#refuse(offset, 'yaml', path, 'a key must be text')
        continue
      }
      const key = String(pair.key.value)
      if (Object.hasOwn(value, key)) {
        const first = this.#place(this.#spots.get(pathKey([...path, key]))!.key)
        const message = `"${key}" stands twice, first in line ${first.line}`
        this.#refuse(offset, 'duplicate-key', [...path, key], message)
        continue
      }
      if (key === '<<') this.#refuse(offset, 'yaml', path, 'merge keys (<<) are not read')
      const plain = this.#plain(pair.value, [...path, key], offset, offset)
      // An assignment to __proto__ would not make a property of that name.
      Object.defineProperty(value, key, {
        value: plain,
        enumerable: true,
        writable: true,
        configurable: true,
      })
    }
    return value
  }

  #scalarText(path: ConfigPath): ScalarText | null {
    const scalar = this.#spots.get(pathKey(path))?.scalar
    if (scalar === undefined || scalar === null || typeof scalar.value !== 'string') return null
    const offset = scalar.range?.[0] ?? 0
    const place = this.#place(offset)
    const literal = scalar.type === 'BLOCK_LITERAL'
    return { literal, place, indent: literal ? this.#indentBelow(offset, scalar.value) : 0 }
  }

  /** The first line with text is longer in the file than in the value by the block's indent. */
  #indentBelow(offset: number, value: string): number {
    const body = this.text.slice(this.text.indexOf('\n', offset) + 1)
    const written = body.split('\n').find(line => line.trim() !== '')
    const meant = value.split('\n').find(line => line.trim() !== '')
    if (written === undefined || meant === undefined) return 0
    return Math.max(0, written.trimEnd().length - meant.trimEnd().length)
  }
}

function pathKey(path: ConfigPath): string {
  return path.map(step => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
