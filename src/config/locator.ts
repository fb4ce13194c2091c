/**
 * Where the parts of a configuration come from: a document, an entry of a manifest, or a variable.
 */
import { type ConfigPath, type Finding, formatPath } from './finding.js'
import type { Place, ScalarText, YamlDocument } from './yaml-text.js'

/** A place and the file it is in; line and column are 0 outside of files. */
export interface Located {
  readonly file: string
  readonly line: number
  readonly column: number
}

export interface Locator {
  valueAt(path: ConfigPath): Located
  keyAt(path: ConfigPath): Located
}

/** Places in a document that is a file of its own. */
export function documentLocator(file: string, document: YamlDocument): Locator {
  return {
    valueAt: path => ({ file, ...document.valueAt(path) }),
    keyAt: path => ({ file, ...document.keyAt(path) }),
  }
}

/** A place inside a text that stands as a value in another file. */
export function placeWithin(outer: ScalarText, inner: Place): Place {
  if (!outer.literal) return outer.place
  return { line: outer.place.line + inner.line, column: inner.column + outer.indent }
}

/** Values that did not come from the file are reported by what set them. */
export function overriddenLocator(base: Locator, origins: ReadonlyMap<string, string>): Locator {
  const originOf = (path: ConfigPath): Located | null => {
    for (let length = path.length; length > 0; length--) {
      const origin = origins.get(formatPath(path.slice(0, length)))
      if (origin !== undefined) return { file: origin, line: 0, column: 0 }
    }
    return null
  }
  return {
    valueAt: path => originOf(path) ?? base.valueAt(path),
    keyAt: path => originOf(path) ?? base.keyAt(path),
  }
}

/** Collects findings of one document. */
export class Reporter {
  readonly findings: Finding[] = []
  readonly locator: Locator

  constructor(locator: Locator) {
    this.locator = locator
  }

  error(path: ConfigPath, code: string, message: string): void {
    this.#add('error', this.locator.valueAt(path), path, code, message)
  }

  errorAtKey(path: ConfigPath, code: string, message: string): void {
    this.#add('error', this.locator.keyAt(path), path, code, message)
  }

  warning(path: ConfigPath, code: string, message: string): void {
    this.#add('warning', this.locator.valueAt(path), path, code, message)
  }

  #add(
    level: 'error' | 'warning',
    at: Located,
    path: ConfigPath,
    code: string,
    message: string,
  ): void {
    this.findings.push({ level, code, ...at, path: formatPath(path), message })
  }
}
