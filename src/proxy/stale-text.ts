/** A kept response as the text that stands in for a denial. */
import { type CheckedResponse, clientResponseHead } from './heads.js'
import type { StaleResponse } from './stale-cache.js'

/** The upstream's response with its age, marked as stale, with the fields of the denial. */
export function staleText(
  { response, body, ageSeconds }: StaleResponse,
  connection: 'close' | 'keep' | 'silent',
  limits: string,
): string {
  const { head, names } = response
  const headers: string[] = []
  for (let index = 0; index < names.length; index++) {
    const known = names[index]
    if (known === undefined || known.lower === 'age') continue
    headers.push(known.spelling, head.headers[2 * index + 1] as string)
  }
  const kept: CheckedResponse = {
    ...response,
    head: { ...head, headers },
    names: names.filter(name => name.lower !== 'age'),
    length: String(body.length),
  }
  const withAge = `${limits}Age: ${ageSeconds}\r\nX-RateLimit-Degraded: stale\r\n`
  const text = clientResponseHead(
    { ...kept, limitsItself: false },
    { framing: 'length', connection, limits: withAge },
  )
  // Everything is written as Latin-1: the body goes as the text of its bytes.
  return text + body.toString('latin1')
}
