import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { ClosingLineReporter } from './helpers/closing-line-reporter.js'

/** `npm test`: everything that needs Node and npm only. Other programs are for `vitest.peers.config.ts`. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    reporters: ['default', new ClosingLineReporter()],
    include: ['test/**/*.test.ts'],
    exclude: ['test/interop/**', 'test/chart/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
  },
})
