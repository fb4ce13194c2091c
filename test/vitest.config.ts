import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** `npm test`: everything that needs Node and npm only. Other programs are for `vitest.peers.config.ts`. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/interop/**', 'test/chart/**'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
  },
})
