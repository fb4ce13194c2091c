/** How much a repeated piece of work leaves on the heap, for tests and benchmarks of the hot path. */
import '../../src/tune-v8.js'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void

/** Calls between two looks at the heap: few enough that V8 does not collect meanwhile. */
const callsPerLook = 2000

/**
 * Bytes that each call of `work` leaves behind, one figure per look. A call gets two times that went by
 * half a microsecond since the call before, as milliseconds with fractions that are on the heap already:
 * making them is the caller's business.
 */
export function heapGrowth(
  looks: number,
  startMs: number,
  wallMs: number,
  work: (monotonicMs: number, wallMs: number) => void,
): number[] {
  // The null keeps V8 from storing plain doubles, which it would put on the heap at each use.
  const monotonic: (number | null)[] = [null]
  const wall: (number | null)[] = [null]
  for (let call = 0; call < callsPerLook; call++) {
    monotonic.push(startMs + 0.0005 * call + 0.0001)
    wall.push(wallMs + startMs + 0.0005 * call + 0.25)
  }
  const growth: number[] = []
  collect()
  for (let look = 0; look < looks; look++) {
    collect({ type: 'minor' })
    const before = process.memoryUsage().heapUsed
    for (let call = 1; call <= callsPerLook; call++) {
      work(monotonic[call] as number, wall[call] as number)
    }
    growth.push((process.memoryUsage().heapUsed - before) / callsPerLook)
  }
  return growth
}
