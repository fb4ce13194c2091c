import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one plain line of counts, so that whoever reads only the end knows what ran. */
export class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      let own = 0
      for (const test of module.children.allTests()) {
        counts[test.result().state] += 1
        own += 1
      }
      // A file that could not be loaded has no tests to count and has failed all the same.
      if (own === 0 && module.errors().length > 0) counts.failed += 1
    }
    const skipped = counts.skipped + counts.pending
    const tail = skipped > 0 ? `, ${skipped} skipped` : ''
    console.log(`\n${counts.passed} passed, ${counts.failed} failed${tail}`)
  }
}
