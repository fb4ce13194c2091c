/** What is wrong with a configuration, or may surprise later: one value per place. */

export interface Finding {
  /** A warning never makes a file invalid. */
  readonly level: 'error' | 'warning'
  /** A stable word; for warnings, a section of docs/config.md. */
  readonly code: string
  /**
   * File as it was named, a manifest with its entry (`cm.yaml (rules.yaml)`), or a variable or
   * flag.
   */
  readonly file: string
  /** From 1; 0 where the place is not in a file. */
  readonly line: number
  /** From 1; 0 where the place is not in a file. */
  readonly column: number
  /** Where in the document, as `rules[0].limit`; '' for the whole. */
  readonly path: string
  readonly message: string
}

/** Steps from the root of a document to a value. */
export type ConfigPath = readonly (string | number)[]

/** Most findings kept of one file; what is beyond is summed up in one more. */
export const findingsMax = 200

/** `FILE:LINE:COLUMN: error: PATH: MESSAGE [CODE]`, in the form editors can jump to. */
export function formatFinding(finding: Finding): string {
  const place = finding.line > 0 ? `:${finding.line}:${finding.column}` : ''
  const path = finding.path === '' ? '' : `${finding.path}: `
  return `${finding.file}${place}: ${finding.level}: ${path}${finding.message} [${finding.code}]`
}

/** `rules[0].match.path`; keys that are no plain words are quoted. */
export function formatPath(path: ConfigPath): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (/^[\w-]+$/.test(step)) text += text === '' ? step : `.${step}`
    else text += `[${JSON.stringify(step.slice(0, 80))}]`
  }
  return text
}

/** By file, then place, errors before warnings at the same place; not more than `findingsMax`. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  const sorted = [...findings].sort(
    (a, b) =>
      (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) ||
      a.line - b.line ||
      a.column - b.column ||
      (a.level < b.level ? -1 : a.level > b.level ? 1 : 0),
  )
  if (sorted.length <= findingsMax) return sorted
  const errors = sorted.filter(finding => finding.level === 'error')
  const kept = (errors.length > 0 ? errors : sorted).slice(0, findingsMax)
  const rest = sorted.length - kept.length
  const last = kept.at(-1)!
  return [...kept, { ...last, code: 'more', path: '', message: `and ${rest} more findings` }]
}

export function hasErrors(findings: readonly Finding[]): boolean {
  return findings.some(finding => finding.level === 'error')
}

/** A value as it is shown in messages: JSON, cut short. */
export function showValue(value: unknown): string {
  if (typeof value === 'number') return String(value)
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}
