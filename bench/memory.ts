/**
 * What 100,000 live keys take, each touched by three pods: resident memory of a process that holds
 * them, the state kept ready for push/pulls included, over that of one which did the same work on
 * 1,000 keys. In turns, medians.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from './median.js'

export interface MemoryRow {
  readonly name: string
  readonly mebibytes: number
  readonly bytesEach: number
}

const keyCount = 100_000
const bareKeyCount = 1000
const origins = 3
const requests = 200_000
const rounds = 3
const child = fileURLToPath(new URL('./memory-child.ts', import.meta.url))

export function memoryBench(): MemoryRow[] {
  const bare: number[] = []
  const full: number[] = []
  for (let round = 0; round < rounds; round++) {
    bare.push(residentBytes(bareKeyCount))
    full.push(residentBytes(keyCount))
  }
  const bytes = median(full) - median(bare)
  const name = '100,000 keys of 3 origins, over the bare process'
  return [{ name, mebibytes: bytes / 2 ** 20, bytesEach: bytes / keyCount }]
}

function residentBytes(keys: number): number {
  const args = ['--expose-gc', '--import', 'tsx', child, keys, origins, requests].map(String)
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}
