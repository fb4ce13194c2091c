import { describe, inject } from 'vitest'
import { recipeSuite } from './recipe-suite.js'

const caddy = inject('peers').caddy

describe.skipIf(caddy === null)('the Caddy recipe', () => {
  recipeSuite(
    {
      file: 'Caddyfile',
      program: file => ({
        command: caddy ?? '',
        args: ['run', '--config', file, '--adapter', 'caddyfile'],
      }),
    },
    { sidecarDown: 200 },
  )
})
