/** `${VAR}` in the sidecar file. Rules never come here: they cannot read the environment. */
import { didYouMean } from './did-you-mean.js'
import type { ConfigPath } from './finding.js'
import type { Reporter } from './locator.js'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * `value` with `${NAME}` replaced in every text below it and `$$` by one `$`; a `$` before anything
 * else stands for itself. Top-level keys in `except` are left alone.
 */
export function expandVariables(
  value: unknown,
  env: Environment,
  report: Reporter,
  except: ReadonlySet<string>,
): unknown {
  const expand = (part: unknown, path: ConfigPath): unknown => {
    if (typeof part === 'string') return expandText(part, env, path, report)
    if (Array.isArray(part)) return part.map((entry, index) => expand(entry, [...path, index]))
    if (typeof part !== 'object' || part === null) return part
    const entries = Object.entries(part).map(([key, child]) => {
      const kept = path.length === 0 && except.has(key)
      return [key, kept ? child : expand(child, [...path, key])]
    })
    return Object.fromEntries(entries)
  }
  return expand(value, [])
}

function expandText(text: string, env: Environment, path: ConfigPath, report: Reporter): string {
  if (!text.includes('$')) return text
  return text.replace(/\$\$|\$\{([^}]*)(\}?)/g, (match, name: string, close: string) => {
    if (match === '$$') return '$'
    if (close === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      report.error(path, 'variable', `expected \${NAME}, got ${match}; a plain $ is written $$`)
      return ''
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value === undefined) {
      const near = didYouMean(name, Object.keys(env))
      report.error(path, 'variable', `environment variable ${name} is not set${near}`)
    }
    return value ?? ''
  })
}
