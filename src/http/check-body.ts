/**
 * The bodies that `POST /v1/check` and `POST /explain` accept; what is not named here is refused.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { type Static, Type } from 'typebox'
import { canonicalIp } from '../limiter/cidr.js'

/** Costs are finite and within this, either way. */
export const costMax = 1e9
/** Checks in one batch. */
export const batchMax = 1_000
const textCharsMax = 8_192
const headersMax = 200

const text = Type.String({ maxLength: textCharsMax })

const describedRequest = Type.Object(
  {
    method: Type.Optional(Type.String({ minLength: 1, maxLength: 32, pattern: '^[!-~]+$' })),
    /** Path with query, or an absolute URI. */
    path: Type.Optional(Type.String({ minLength: 1, maxLength: textCharsMax })),
    host: Type.Optional(text),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.Union([text, Type.Array(text, { maxItems: headersMax })]), {
        maxProperties: headersMax,
      }),
    ),
    ip: Type.Optional(Type.String({ maxLength: 64, format: 'IP address' })),
  },
  { additionalProperties: false },
)

const ruleCheck = Type.Object(
  {
    rule: Type.String({ minLength: 1, maxLength: 63 }),
    key: Type.Optional(Type.Union([text, Type.Array(text, { minItems: 1, maxItems: 16 })])),
    cost: Type.Optional(Type.Number({ minimum: -costMax, maximum: costMax })),
  },
  { additionalProperties: false },
)

const requestCheck = Type.Object({ request: describedRequest }, { additionalProperties: false })

export type DescribedRequest = Static<typeof describedRequest>
export type RuleCheck = Static<typeof ruleCheck>
export type RequestCheck = Static<typeof requestCheck>
export type Check = RuleCheck | RequestCheck

const ajv = new Ajv({ allErrors: false, coerceTypes: false, removeAdditional: false })
ajv.addFormat('IP address', { type: 'string', validate: text => canonicalIp(text) !== null })
const validateRuleCheck = ajv.compile(ruleCheck)
const validateRequestCheck = ajv.compile(requestCheck)
const validateDescribed = ajv.compile(describedRequest)

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: string }

/** One check. Which of the two forms it is follows from its members. */
export function parseCheck(value: unknown): Parsed<Check> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, error: 'a check is an object with "rule" and "key", or with "request"' }
  }
  return 'request' in value
    ? parseWith<RequestCheck>(validateRequestCheck, value)
    : parseWith<RuleCheck>(validateRuleCheck, value)
}

export function parseDescribedRequest(value: unknown): Parsed<DescribedRequest> {
  return parseWith<DescribedRequest>(validateDescribed, value)
}

function parseWith<T>(validate: ValidateFunction, value: unknown): Parsed<T> {
  if (validate(value)) return { ok: true, value: value as T }
  // Of a union's errors the last one names the union itself; the first is the closest miss.
  return { ok: false, error: errorText(validate.errors?.[0]) }
}

function errorText(error: ErrorObject | undefined): string {
  if (!error) return 'the body is not valid'
  const where = error.instancePath === '' ? 'the body' : error.instancePath.slice(1)
  if (error.keyword === 'additionalProperties') {
    const name = String((error.params as { additionalProperty: string }).additionalProperty)
    return `${where} has an unknown member ${JSON.stringify(name.slice(0, 64))}`
  }
  return `${where} ${error.message ?? 'is not valid'}`
}
