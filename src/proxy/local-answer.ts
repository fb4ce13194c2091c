/** Responses that the proxy gives itself: refusals, denials and its own troubles. Texts only. */
import { STATUS_CODES } from 'node:http'
import { denialAnswer, problemBody, problemType } from '../http/problem.js'
import { appendRateLimitHeaders, rateLimitLines } from '../http/rate-limit-headers.js'
import type { Decision } from '../limiter/decision.js'
import type { OnExceededSpec } from '../limiter/rule.js'
import type { Random } from '../ports.js'
import type { ProxyOptions } from './options.js'

export interface LocalAnswer {
  readonly status: number
  /** Fields, a flat list; neither Content-Length nor Connection. */
  readonly headers: readonly string[]
  readonly body: string
}

export function problemAnswer(
  status: number,
  detail: string,
  headers: readonly string[] = [],
): LocalAnswer {
  const title = STATUS_CODES[status] ?? 'Error'
  return {
    status,
    headers: ['Content-Type', problemType, 'Cache-Control', 'no-store', ...headers],
    body: problemBody(status, title, detail),
  }
}

/** The answer to a request that a rule or a list denied, with the rate-limit fields. */
export function denial(
  decision: Decision,
  onExceeded: OnExceededSpec | undefined,
  options: ProxyOptions,
  wallMs: number,
  random: Random,
): LocalAnswer {
  const answer = denialAnswer(decision, onExceeded, random)
  const headers = [...answer.headers]
  appendRateLimitHeaders(headers, decision, options.headers, wallMs, answer.retrySeconds)
  return { status: answer.status, headers, body: answer.body }
}

/** The rate-limit fields of an admitted request, as lines. */
export function limitLines(decision: Decision, options: ProxyOptions, wallMs: number): string {
  return rateLimitLines(decision, options.headers, wallMs, 0)
}

function linesOf(pairs: readonly string[]): string {
  let text = ''
  for (let index = 0; index < pairs.length; index += 2)
    text += `${pairs[index]}: ${pairs[index + 1]}\r\n`
  return text
}

let dateSecond = 0
let dateText = ''

function dateLine(wallMs: number): string {
  const second = Math.floor(wallMs / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return `Date: ${dateText}\r\n`
}

/**
 * The whole response as text. Its body is UTF-8; `toHead` leaves it away and keeps its length.
 */
export function answerText(
  answer: LocalAnswer,
  connection: 'close' | 'keep' | 'silent',
  toHead: boolean,
  wallMs: number,
): string {
  // Everything is written as Latin-1: a UTF-8 body goes as the text of its bytes.
  const body = Buffer.from(answer.body, 'utf8').toString('latin1')
  const reason = STATUS_CODES[answer.status] ?? ''
  let text = `HTTP/1.1 ${answer.status} ${reason}\r\n${dateLine(wallMs)}${linesOf(answer.headers)}`
  // 204 and 304 have no body, and so no length either.
  const bodiless = answer.status === 204 || answer.status === 304
  if (!bodiless) text += `Content-Length: ${body.length}\r\n`
  if (connection === 'close') text += 'Connection: close\r\n'
  else if (connection === 'keep') text += 'Connection: keep-alive\r\n'
  return `${text}\r\n${toHead || bodiless ? '' : body}`
}
