/** The schemas as shipped in docs/schema, for editors. Made from what the validator runs on. */
import { RulesFile } from './rules-schema.js'
import { SidecarFile } from './sidecar-schema.js'
import type { ConfigKind } from './validate.js'

/** JSON Schema 2020-12 as text. Keywords of our own are left out: editors would warn of them. */
export function jsonSchemaText(kind: ConfigKind): string {
  const schema = kind === 'rules' ? RulesFile : SidecarFile
  const text = JSON.stringify(schema, (key, value) => (key.startsWith('x-') ? undefined : value), 2)
  return `${text}\n`
}
