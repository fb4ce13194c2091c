/**
 * House rules as tests, one each. They read the sources as text; what a rule means and why it stands
 * is said in its message, so that whoever trips over it need not look further.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const src = join(root, 'src')

interface Source {
  /** Path below src with forward slashes. */
  readonly path: string
  /** The text with comments blanked out, lines kept. */
  readonly code: string
  readonly lines: readonly string[]
  readonly imports: readonly { readonly from: string; readonly line: number }[]
}

function walk(folder: string): string[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? walk(path) : path.endsWith('.ts') ? [path] : []
  })
}

/** Blanks comments and keeps line numbers; strings that look like comments do not occur in the core. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, match => match.replace(/[^\n]/g, ' '))
    .replace(/(^|[\s;{}(),])\/\/[^\n]*/g, '$1')
}

function read(path: string): Source {
  const text = readFileSync(path, 'utf8')
  const code = withoutComments(text)
  const imports = [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(match => ({
    from: match[1] ?? '',
    line: code.slice(0, match.index).split('\n').length,
  }))
  return { path: relative(src, path).replaceAll('\\', '/'), code, lines: text.split('\n'), imports }
}

const sources = walk(src).map(read)

/** Which floor a file stands on; imports go down or stay within one room. */
function floorOf(path: string): { readonly floor: number; readonly room: string } {
  const room = path.includes('/') ? path.slice(0, path.indexOf('/')) : path
  if (room === 'lib' || room === 'ports.ts' || room === 'vocabulary.ts') return { floor: 0, room }
  if (room === 'limiter' || room === 'counters' || room === 'swim') return { floor: 1, room }
  if (room.startsWith('core')) return { floor: 2, room: 'core' }
  if (room === 'sidecar.ts' || room === 'simulator') return { floor: 4, room }
  if (room === 'main.ts' || room === 'cli') return { floor: 5, room: 'cli' }
  return { floor: 3, room: 'shells' }
}

const pure = sources.filter(source => floorOf(source.path).floor <= 2 && source.path !== 'ports.ts')

/** Packages that are pure and well kept, each let in by a decision record. */
const corePackages = new Map([['ipaddr.js', 'docs/decisions/0003-ipaddr-in-the-core.md']])

function findings(list: readonly Source[], pattern: RegExp): string[] {
  return list.flatMap(source =>
    source.code
      .split('\n')
      .flatMap((line, index) =>
        pattern.test(line) ? [`${source.path}:${index + 1}: ${line.trim()}`] : [],
      ),
  )
}

describe('tidy', () => {
  it('imports go down or stay within a room, never up and never between siblings', () => {
    const wrong = sources.flatMap(source => {
      const own = floorOf(source.path)
      return source.imports.flatMap(({ from, line }) => {
        if (!from.startsWith('.')) return []
        const target = relative(src, resolve(src, dirname(source.path), from)).replaceAll('\\', '/')
        const other = floorOf(target.replace(/\.js$/, '.ts'))
        const allowed =
          other.floor < own.floor || (other.floor === own.floor && other.room === own.room)
        const sameGround = own.floor === 0 && other.floor === 0
        return allowed || sameGround ? [] : [`${source.path}:${line} imports ${target}`]
      })
    })
    expect(wrong).toEqual([])
  })

  it('the core imports no platform module but node:crypto and no package without a decision record', () => {
    const wrong = pure.flatMap(source =>
      source.imports
        .filter(({ from }) => !from.startsWith('.') && from !== 'node:crypto')
        .filter(({ from }) => !corePackages.has(from))
        .map(({ from, line }) => `${source.path}:${line} imports ${from}`),
    )
    expect(wrong).toEqual([])
  })

  it.each([...corePackages])('the record that lets %s into the core exists', (_name, record) => {
    expect(readFileSync(join(root, record), 'utf8')).toMatch(/^# /)
  })

  it('the core reads no clock: times are arguments, so that a simulation can pass its own', () => {
    // `new Date(ms)` and `Date.UTC` compute; only the forms that read the present are banned.
    expect(findings(pure, /\bDate\.now\b|\bnew Date\(\)|\bperformance\b|\bhrtime\b/)).toEqual([])
  })

  it('the core draws no chance of its own: Random and Entropy are arguments', () => {
    expect(
      findings(pure, /\bMath\.random\b|\brandomBytes\b|\brandomUUID\b|\bgetRandomValues\b/),
    ).toEqual([])
  })

  it('the core starts no timer and awaits nothing: it is a step function', () => {
    expect(
      findings(
        pure,
        /\b(setTimeout|setInterval|setImmediate|queueMicrotask|async|await|Promise)\b/,
      ),
    ).toEqual([])
  })

  it('the core knows no process and prints nothing', () => {
    expect(findings(pure, /\bprocess\.|\bconsole\./)).toEqual([])
  })

  it('only main.ts touches process; others are given what they need of it', () => {
    const others = sources.filter(source => source.path !== 'main.ts')
    expect(
      findings(others, /(?<![.\w])process\.(env|argv|exit|on|stdout|stderr|stdin|kill)\b/),
    ).toEqual([])
  })

  it('swim is a library in its own right: it imports nothing but itself and the ground floor', () => {
    const wrong = sources
      .filter(source => source.path.startsWith('swim/'))
      .flatMap(source =>
        source.imports
          .filter(({ from }) => /limiter|counters|core/.test(from))
          .map(({ from, line }) => `${source.path}:${line} imports ${from}`),
      )
    expect(wrong).toEqual([])
  })

  it('no file is longer than 500 lines', () => {
    expect(
      sources
        .filter(source => source.lines.length > 501)
        .map(source => `${source.path}: ${source.lines.length} lines`),
    ).toEqual([])
  })

  it('no line is longer than 100 columns, long literals apart', () => {
    expect(
      sources.flatMap(source =>
        source.lines.flatMap((line, index) =>
          line.length > 100 && !/['"`]|biome-ignore/.test(line)
            ? [`${source.path}:${index + 1}`]
            : [],
        ),
      ),
    ).toEqual([])
  })

  it('no function is longer than 70 lines', () => {
    expect(sources.flatMap(source => longFunctions(source, 70))).toEqual([])
  })

  it('no work is left behind in a mark', () => {
    expect(
      sources.flatMap(source =>
        source.lines.flatMap((line, index) =>
          /\b(TODO|FIXME|XXX|HACK)\b/.test(line) ? [`${source.path}:${index + 1}`] : [],
        ),
      ),
    ).toEqual([])
  })

  it('a room is not called utils, common, misc, helpers or manager', () => {
    const vague = /(^|\/)(utils?|common|misc|helpers?|managers?)(\/|\.ts$)/
    expect(sources.map(source => source.path).filter(path => vague.test(path))).toEqual([])
  })
})

/** Functions and methods by their opening line and the brace that closes at the same indent. */
function longFunctions(source: Source, most: number): string[] {
  const lines = source.code.split('\n')
  const opening =
    /^(\s*)(?:export |private |protected |public |static |override |readonly |async |get |set )*(?:function\b.*|(?:constructor|[a-zA-Z_#]\w*)(?:<[^>]*>)?\(.*|(?:const )?\w+ = (?:async )?(?:\([^)]*\)|\w+)(?:: [^=]+)? => )\{\s*$/
  const heads = /^\s*(if|for|while|switch|catch|return|else|do|try|describe|it)\b/
  return lines.flatMap((line, start) => {
    const match = opening.exec(line)
    if (!match || heads.test(line)) return []
    const indent = match[1] ?? ''
    const length = lines.slice(start + 1).findIndex(next => next.startsWith(`${indent}}`)) + 2
    return length > most ? [`${source.path}:${start + 1}: ${length} lines`] : []
  })
}
