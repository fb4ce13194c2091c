import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { ClosingLineReporter } from './helpers/closing-line-reporter.js'

const processes = 'test/integration/e2e-*.test.ts'

/**
 * `npm test`: everything that needs Node and npm only. Other programs are for `vitest.peers.config.ts`.
 * Tests with processes of their own run after the rest and one file at a time: they measure rates.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    reporters: ['default', new ClosingLineReporter()],
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'core',
          include: ['test/**/*.test.ts'],
          exclude: ['test/interop/**', 'test/chart/**', processes],
          sequence: { groupOrder: 0 },
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: [processes],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
          // Each test starts several programs, a second apiece on a busy machine.
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
