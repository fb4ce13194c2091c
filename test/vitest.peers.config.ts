import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { ClosingLineReporter } from './helpers/closing-line-reporter.js'

/** `npm run test:peers`: what needs other programs (Go memberlist nodes, promtool and the like). */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    reporters: ['default', new ClosingLineReporter()],
    include: ['test/interop/**/*.test.ts', 'test/chart/**/*.test.ts'],
    globalSetup: ['test/interop/peers-setup.ts'],
    testTimeout: 180_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
})
