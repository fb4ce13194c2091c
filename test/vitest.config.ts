import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { ClosingLineReporter } from './helpers/closing-line-reporter.js'
import { LongestFirst } from './helpers/longest-first.js'

const processes = 'test/integration/e2e-*.test.ts'
/** Those that compare rates with bars, and need the machine for themselves. */
const rates = 'test/integration/e2e-{accuracy,crash,demo,limit}.test.ts'
/** What changes or measures the clock, a prototype or the heap of its process. */
const touchy = [
  'test/unit/failure-mode.test.ts',
  'test/unit/counters/key-flood.test.ts',
  'test/unit/discovery/{name-lookup,reflector,rejoiner}.test.ts',
  'test/unit/limiter/allocation.test.ts',
  'test/unit/sidecar/config-map-source.test.ts',
]

/**
 * `npm test`: everything that needs Node and npm only. Other programs are for `vitest.peers.config.ts`.
 * Pure code needs no fresh process for each file, which took a third of its time. What starts sidecars
 * runs after the rest, and what measures their rates last, one file at a time.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    reporters: ['default', new ClosingLineReporter()],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'isolated',
          include: ['test/integration/*.test.ts', ...touchy],
          exclude: [processes],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'pure',
          include: ['test/**/*.test.ts'],
          exclude: ['test/interop/**', 'test/chart/**', 'test/integration/**', ...touchy],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'processes',
          include: [processes],
          exclude: [rates],
          sequence: { groupOrder: 1 },
          // Each test starts several programs, a second apiece on a busy machine.
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'rates',
          include: [rates],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
