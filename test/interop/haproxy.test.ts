import { describe, inject } from 'vitest'
import { recipeSuite } from './recipe-suite.js'

const haproxy = inject('peers').haproxy

describe.skipIf(haproxy === null)('the HAProxy recipe', () => {
  recipeSuite(
    {
      file: 'haproxy.cfg',
      beside: ['haproxy.lua'],
      program: file => ({ command: haproxy ?? '', args: ['-db', '-f', file] }),
    },
    { sidecarDown: 200 },
  )
})
