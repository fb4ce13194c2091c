import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { jsonSchemaText } from '../../../src/config/json-schema.js'

// `npx vitest run --config test/vitest.config.ts test/unit/config/json-schema.test.ts -u` writes them.
describe('the shipped JSON Schemas', () => {
  it.each(['rules', 'sidecar'] as const)('%s is what the validator runs on', async kind => {
    await expect(jsonSchemaText(kind)).toMatchFileSnapshot(
      `../../../docs/schema/${kind}.schema.json`,
    )
  })

  it.each(['rules', 'sidecar'] as const)('%s compiles in strict mode', kind => {
    const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false })
    const check = ajv.compile(JSON.parse(jsonSchemaText(kind)))
    expect(check({ version: 1 })).toBe(true)
    expect(check({ version: 1, unknown: true })).toBe(false)
  })
})
