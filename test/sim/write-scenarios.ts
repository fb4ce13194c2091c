/** Writes the matrix' scenario files: `node --import tsx test/sim/write-scenarios.ts`. */
import { writeFileSync } from 'node:fs'
import { cellYaml, matrixCells } from './matrix.js'

for (const cell of matrixCells()) {
  writeFileSync(new URL(`scenarios/${cell.file}.yaml`, import.meta.url), cellYaml(cell))
}
