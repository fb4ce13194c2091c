/**
 * Keys of the contract that the program does not run yet. They are known to the schema and refused
 * here, so that nobody believes in a setting that does nothing. `[]` stands for any list entry.
 */
import type { ConfigPath } from './finding.js'
import type { Reporter } from './locator.js'

export const unsupportedKeys: readonly string[] = ['grpc']

/** Reports every key of `value` that is not supported yet. */
export function reportUnsupported(
  value: unknown,
  report: Reporter,
  keys: readonly string[] = unsupportedKeys,
): void {
  for (const key of keys) {
    const steps = key.split('.').flatMap(step => step.split(/(?=\[\])/))
    for (const path of present(value, steps, [])) {
      const shown = key.replaceAll('[]', '')
      report.errorAtKey(path, 'not-supported', `${shown} is not supported yet`)
    }
  }
}

function present(value: unknown, steps: readonly string[], path: ConfigPath): ConfigPath[] {
  const [step, ...rest] = steps
  if (step === undefined) return [path]
  if (step === '[]') {
    if (!Array.isArray(value)) return []
    return value.flatMap((entry, index) => present(entry, rest, [...path, index]))
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return []
  return present((value as Record<string, unknown>)[step], rest, [...path, step])
}
