import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files of ten seconds and more. Vitest knows how long files took, but not in a fresh clone. */
const long = [
  'test/unit/counters/key-flood.test.ts',
  'test/unit/limiter/allocation.test.ts',
  'test/integration/proxy-streaming.test.ts',
  'test/sim/accuracy.test.ts',
  'test/sim/large-fleet.test.ts',
  'test/sim/faults.test.ts',
  'test/sim/many-keys.test.ts',
  'test/unit/swim/cluster.test.ts',
  'test/property/reload.test.ts',
  'test/property/merge-laws.test.ts',
]

/** Lets the long files of each project begin first, so that the last worker to end is not alone for long. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    return projects.flatMap(project => {
      const own = sorted.filter(file => file.project === project)
      return [...own.filter(isLong), ...own.filter(file => !isLong(file))]
    })
  }
}

const isLong = ({ moduleId }: TestSpecification) => long.some(path => moduleId.endsWith(`/${path}`))
